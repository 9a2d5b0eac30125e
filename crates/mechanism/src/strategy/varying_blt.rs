//! BLTs whose weights vary by step, with d buffers: C is its diagonal plus a lower-triangular part of rank d,
//! C\[t, j\] = sum over i < d of reads\[t, i\] lambda_i^(t-1-j) writes\[j, i\] for j < t.
//!
//! Noise: O(d m) time a step and d vectors of state, as for a BLT, and n (2 d + 1) numbers. BLTs are those
//! with the same weights at all steps; BLTs with columns of norm 1, those with the same `reads`. No entry is
//! negative, so that the sensitivity is exact. The loss takes O(n d^2) time for workloads with a short
//! recursion, and the sensitivity O(n^2) space.

use std::ops::RangeInclusive;

use antinoise_input::{InvalidParameter, between};
use serde::{Deserialize, Serialize};

use super::contract::Strategy;
use crate::decoder::{BufferErrors, Buffers, finite, rows_by_columns, rows_of_listed};
use crate::recursion::varying::written_out;
use crate::{Encoder, Recursion, Result, Workload};

/// Maximum number of steps, whose C has 2 GB.
pub(crate) const MAX_STEPS: usize = 16_384;

/// Maximum number of buffers.
pub(crate) const MAX_ORDER: usize = 16;

/// The weights that are not 0: buffers then neither underflow nor overflow in single precision.
pub(crate) const WEIGHTS: RangeInclusive<f64> = 1.0 / (1u64 << 60) as f64..=(1u64 << 60) as f64;

/// A lower-triangular C, given by its diagonal and by what each step writes to d buffers and reads of them.
///
/// ```
/// use antinoise_mechanism::{Adjacency, Problem, Strategy, design::StrategySpec};
/// let problem = Problem::prefix(64);
/// let loss = |name: &str| {
///     let strategy = name.parse::<StrategySpec>()?.design(&problem)?.value;
///     Ok::<_, antinoise_mechanism::Error>(
///         strategy.loss(&problem.workload, &problem.participation, Adjacency::ZeroOut)?.rms_loss,
///     )
/// };
/// assert!(loss("varying-blt:2")? < 0.99 * loss("blt:2+column-normalized")?);
/// assert!(loss("varying-blt:4")? < 1.001 * loss("dense")?);
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
///
/// # Source
/// Denisov et al. (2022), Section 4 and Appendix H: bands plus low rank, there for B, here for C with one
/// band. Semiseparable matrices of numerical linear algebra.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaryingBlt {
    /// C\[t, t\], one per step.
    diagonal: Vec<f64>,
    /// delta_i = 1 - lambda_i, one per buffer. Complements do not lose digits as decays approach 1.
    decay_complement: Vec<f64>,
    /// The weight of buffer i in step t, at index t d + i.
    reads: Vec<f64>,
    /// The weight of step t in buffer i, at index t d + i.
    writes: Vec<f64>,
}

impl VaryingBlt {
    pub(crate) fn new(
        diagonal: Vec<f64>,
        decay_complement: Vec<f64>,
        reads: Vec<f64>,
        writes: Vec<f64>,
    ) -> Result<Self> {
        let strategy = Self { diagonal, decay_complement, reads, writes };
        strategy.check()?;
        Ok(strategy)
    }

    /// Returns the decays lambda = 1 - delta.
    fn decay(&self) -> Vec<f64> {
        self.decay_complement.iter().map(|delta| 1.0 - delta).collect()
    }

    /// Returns C diag(diagonal)^-1, which has ones on its diagonal, and the factors 1 / diagonal.
    fn unit(&self) -> Buffers {
        let order = self.decay_complement.len();
        let writes = self.writes.iter().enumerate().map(|(at, w)| w / self.diagonal[at / order]).collect();
        let factors = self.diagonal.iter().map(|c| c.recip()).collect();
        Buffers { decay: self.decay(), reads: self.reads.clone(), writes, factors }
    }
}

impl Strategy for VaryingBlt {
    fn steps(&self) -> usize {
        self.diagonal.len()
    }

    fn check(&self) -> Result<()> {
        let (steps, order) = (self.diagonal.len(), self.decay_complement.len());
        between("diagonal's length", steps, 1, MAX_STEPS, "the maximum number of steps")?;
        between("decay_complement's length", order, 0, MAX_ORDER, "the maximum number of buffers")?;
        let refused =
            |name: &str, got: String, must_be: &str| Err(InvalidParameter::new(name, got, must_be).into());
        for (name, weights) in [("reads", &self.reads), ("writes", &self.writes)] {
            if weights.len() != steps * order {
                let must_be = format!("{}, one for each step and buffer", steps * order);
                return refused(name, format!("{} numbers", weights.len()), &must_be);
            }
            if let Some(at) = weights.iter().position(|w| *w != 0.0 && !WEIGHTS.contains(w)) {
                return refused(name, format!("{:?} at index {at}", weights[at]), "0 or from 2^-60 to 2^60");
            }
        }
        if let Some(delta) = self.decay_complement.iter().find(|delta| !(0.0..=1.0).contains(*delta)) {
            return refused("decay_complement", format!("{delta:?}"), "from 0 to 1");
        }
        match self.diagonal.iter().position(|c| !c.is_normal() || *c < 0.0) {
            Some(step) => {
                refused("diagonal", format!("{:?} at step {step}", self.diagonal[step]), "finite and above 0")
            }
            None => Ok(()),
        }
    }

    fn encoder(&self) -> Result<Encoder> {
        Ok(Encoder::Dense(written_out(&self.decay(), &self.reads, &self.writes, &self.diagonal)))
    }

    fn row_errors_squared(&self, workload: &Workload) -> Result<Vec<f64>> {
        workload.check_steps(self.steps())?;
        let (buffers, prefix) = (self.unit(), || self.row_errors_squared(&Workload::Prefix));
        if let Some(rows) =
            rows_of_listed(workload, self.steps(), prefix, |row| buffers.solve_transposed(row))?
        {
            return Ok(rows);
        }
        match BufferErrors::new(workload, self.steps())? {
            Some(errors) => finite(errors.covariances(&buffers).rows()),
            None => rows_by_columns(&self.recursion()?, self.steps(), workload),
        }
    }

    fn recursion(&self) -> Result<Recursion> {
        let Buffers { decay, reads, writes, factors } = self.unit();
        let inner = Box::new(Recursion::VaryingBlt { decay, reads, writes }.checked()?);
        Recursion::Scaled { inner, factors }.checked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_refused_by_name() {
        let of = |diagonal: &[f64], decay: &[f64], reads: &[f64], writes: &[f64]| {
            VaryingBlt::new(diagonal.to_vec(), decay.to_vec(), reads.to_vec(), writes.to_vec())
        };
        assert!(of(&[1.0, 0.5], &[0.25], &[0.0, 1.0], &[0.5, 0.0]).is_ok());
        for (diagonal, decay, reads, writes, named) in [
            (&[][..], &[0.25][..], &[][..], &[][..], "diagonal's length is 0"),
            (&[1.0, 0.0], &[0.25], &[0.0, 1.0], &[0.5, 0.0], "diagonal is 0.0 at step 1"),
            (&[f64::NAN, 1.0], &[0.25], &[0.0, 1.0], &[0.5, 0.0], "diagonal is NaN at step 0"),
            (&[1.0, 0.5], &[1.5], &[0.0, 1.0], &[0.5, 0.0], "decay_complement is 1.5"),
            (&[1.0, 0.5], &[0.25], &[1.0], &[0.5, 0.0], "reads is 1 numbers"),
            (&[1.0, 0.5], &[0.25], &[0.0, -1.0], &[0.5, 0.0], "reads is -1.0 at index 1"),
            (&[1.0, 0.5], &[0.25], &[0.0, 1.0], &[f64::NAN, 0.0], "writes is NaN at index 0"),
            (&[1.0, 0.5], &[0.25], &[0.0, 1.0], &[1e30, 0.0], "writes is 1e30 at index 0"),
        ] {
            let refused = of(diagonal, decay, reads, writes).unwrap_err();
            assert!(refused.to_string().starts_with(named), "{refused}");
        }
    }
}
