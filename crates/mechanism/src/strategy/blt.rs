//! Buffered linear Toeplitz (BLT) strategies with d buffers: c_0 = 1, c_t = sum over i < d of alpha_i
//! lambda_i^(t-1).
//!
//! Noise: O(d m) time a step and d vectors of state. C^-1 is a BLT too, and its decays lambda^ are interlaced
//! with lambda if and only if alpha > 0 and sum alpha_i / lambda_i < 1. The loss takes O(d^2 log k) time for
//! prefix sums, whatever n is, and O(n d) for other Toeplitz workloads.

use antinoise_input::InvalidParameter;
use serde::{Deserialize, Serialize};

use super::contract::Strategy;
use crate::blt_closed_form::cascade::Cascade;
use crate::blt_closed_form::interlaced::residues;
use crate::blt_closed_form::{coefficients, norms};
use crate::decoder::{ErrorNorms, finite, rows_of_toeplitz, running_squares};
use crate::numeric::limits::check_materializable;
use crate::problem::Objective;
use crate::sensitivity::{self, Sensitivity};
use crate::{Encoder, Participation, Recursion, Result, Workload};

/// A BLT, given by the complements of the decays of C and of C^-1: delta = 1 - lambda and delta^ = 1 -
/// lambda^. Complements do not lose digits as decays approach 1.
///
///
/// ```
/// use antinoise_mechanism::strategy::Blt;
/// let blt = Blt::new(3, vec![0.25], vec![0.5])?;
/// assert_eq!(blt.scale(), [0.25]);
/// assert_eq!(blt.coefficients()?, [1.0, 0.25, 0.1875]);
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blt {
    steps: usize,
    decay_complement: Vec<f64>,
    inverse_decay_complement: Vec<f64>,
}

impl Blt {
    /// Creates the BLT with delta = `decay_complement` and delta^ = `inverse_decay_complement`.
    ///
    /// # Errors
    /// When the two are not interlaced in \[0, 1\]: delta_1 < delta^_1 < delta_2 < ... < delta^_d.
    pub fn new(steps: usize, decay_complement: Vec<f64>, inverse_decay_complement: Vec<f64>) -> Result<Self> {
        let blt = Self { steps, decay_complement, inverse_decay_complement };
        blt.check()?;
        Ok(blt)
    }

    /// Returns the BLT for the first `steps` steps: the upper-left block of C. The errors of its queries are
    /// those of the same queries over all steps.
    ///
    /// ```
    /// use antinoise_mechanism::strategy::Blt;
    /// use antinoise_mechanism::{Strategy, Workload};
    /// let endless = Blt::new(10_000_000_000, vec![1e-3], vec![2e-3])?;
    /// let third = endless.leading(3)?.error(&Workload::Prefix)?.max;
    /// let written_out = Blt::new(9, vec![1e-3], vec![2e-3])?.row_errors(&Workload::Prefix)?[2];
    /// assert!((third / written_out - 1.0).abs() < 1e-12);
    /// # Ok::<(), antinoise_mechanism::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `steps` is 0 or exceeds the steps of the strategy.
    pub fn leading(&self, steps: usize) -> Result<Self> {
        antinoise_input::between("steps", steps, 1, self.steps, "the strategy's steps")?;
        Ok(Self { steps, ..self.clone() })
    }

    /// Returns the decays lambda = 1 - delta.
    pub fn decay(&self) -> Vec<f64> {
        self.decay_complement.iter().map(|x| 1.0 - x).collect()
    }

    /// Returns the weights alpha_i = prod_j (delta^_j - delta_i) / prod over j != i of (delta_j - delta_i).
    pub fn scale(&self) -> Vec<f64> {
        residues(&self.nodes()).into_iter().step_by(2).collect()
    }

    /// Returns the coefficients of C: c_0 = 1, c_t = sum_i alpha_i lambda_i^(t-1), n values.
    ///
    /// # Errors
    /// When n is too large.
    pub fn coefficients(&self) -> Result<Vec<f64>> {
        check_materializable(self.steps)?;
        Ok(coefficients(&self.scale(), &self.decay_complement, self.steps))
    }

    fn nodes(&self) -> Vec<f64> {
        self.decay_complement.iter().zip(&self.inverse_decay_complement).flat_map(|(&d, &e)| [d, e]).collect()
    }

    /// Creates the BLT from interlaced nodes. Adjacent nodes that are equal in double precision cancel, and
    /// are left out.
    pub(crate) fn from_nodes(steps: usize, nodes: &[f64]) -> Result<Self> {
        let mut apart: Vec<f64> = Vec::with_capacity(nodes.len());
        for &node in nodes {
            if apart.last() == Some(&node) {
                apart.pop();
            } else {
                apart.push(node);
            }
        }
        Self::new(
            steps,
            apart.iter().copied().step_by(2).collect(),
            apart.iter().copied().skip(1).step_by(2).collect(),
        )
    }

    /// Returns the limit g and the weights beta of B's first column for prefix sums: b_t = g + sum_i beta_i
    /// (1 - delta^_i)^t.
    fn decoder(&self) -> (f64, Vec<f64>) {
        let limit =
            self.decay_complement.iter().zip(&self.inverse_decay_complement).map(|(d, e)| d / e).product();
        let weights = residues(&self.nodes()).into_iter().skip(1).step_by(2);
        (limit, weights.zip(&self.inverse_decay_complement).map(|(r, e)| r / e).collect())
    }
}

impl Strategy for Blt {
    fn steps(&self) -> usize {
        self.steps
    }

    fn check(&self) -> Result<()> {
        antinoise_input::at_least("steps", self.steps, 1)?;
        let nodes = self.nodes();
        let interlaced = self.decay_complement.len() == self.inverse_decay_complement.len()
            && nodes.iter().all(|x| (0.0..=1.0).contains(x))
            && nodes.windows(2).all(|pair| pair[0] < pair[1]);
        if interlaced {
            return Ok(());
        }
        let got = format!("{:?} and {:?}", self.decay_complement, self.inverse_decay_complement);
        let must_be = "interlaced: 0 <= decay_complement[0] < inverse_decay_complement[0] < decay_complement[1] < ... <= 1";
        Err(InvalidParameter::new("decay_complement and inverse_decay_complement", got, must_be).into())
    }

    fn encoder(&self) -> Result<Encoder> {
        Ok(Encoder::Toeplitz { steps: self.steps, coefficients: self.coefficients()? })
    }

    fn sensitivity(&self, participation: &Participation) -> Result<Sensitivity> {
        participation.check(self.steps)?;
        let is_each_epoch = participation.epoch_steps().is_some();
        if matches!(participation, Participation::Patterns { .. })
            || is_each_epoch && self.steps <= sensitivity::MAX_BLT_STEPS_BY_EPOCHS
        {
            return sensitivity::of_toeplitz(&self.coefficients()?, self.steps, participation);
        }
        let separation = participation.separation(self.steps);
        let squared =
            norms::sensitivity(&self.scale(), &self.decay_complement, self.steps, separation).squared;
        if is_each_epoch && separation.max_participations > 1 {
            return Sensitivity::upper_bound(squared.sqrt(), "as many participations at any steps");
        }
        let source = "closed form; a BLT with interlaced decays is positive and non-increasing";
        Sensitivity::exact(squared.sqrt(), source)
    }

    fn error(&self, workload: &Workload) -> Result<ErrorNorms> {
        if *workload != Workload::Prefix {
            return ErrorNorms::of_rows(&self.row_errors_squared(workload)?);
        }
        let (g, beta) = self.decoder();
        let squared =
            |objective| norms::error(g, &beta, &self.inverse_decay_complement, self.steps, objective).squared;
        let rms = (squared(Objective::Rms) / self.steps as f64).sqrt();
        ErrorNorms::new(squared(Objective::Max).sqrt(), rms)
    }

    fn row_errors_squared(&self, workload: &Workload) -> Result<Vec<f64>> {
        let Some(workload) = workload.coefficients(self.steps)? else {
            return rows_of_toeplitz(&self.coefficients()?, self.steps, workload, &self.recursion()?);
        };
        let column = Cascade { nodes: &self.nodes(), workload: &workload }.column();
        finite(running_squares(column))
    }

    fn recursion(&self) -> Result<Recursion> {
        Recursion::Blt { scale: self.scale(), decay: self.decay() }.checked()
    }
}
