//! General banded, column-normalised C: n columns of `bands` free entries each, optimised together. Noise:
//! O(bands m) time a step with bands - 1 vectors of state. Design: O(n bands^2) an iteration, O(n^2 bands)
//! for workloads that are not quotients of short polynomials.

use antinoise_input::{InvalidParameter, between};
use serde::{Deserialize, Serialize};

use super::coefficient_rule::CoefficientRule;
use super::coefficients::coefficients;
use super::column::bands_of;
use super::contract::Strategy;
use super::design::Design;
use super::spec::StrategySpec;
use crate::Problem;
use crate::decoder::BandedErrors;
use crate::numeric::limits::check_materializable;
use crate::optimize::Solution;
use crate::optimize::banded::{minimize_columns, normalize_columns};
use crate::{Encoder, Recursion, Result, Separation, Workload, decoder};

/// A banded lower-triangular matrix given by its rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Banded {
    bands: usize,
    /// C\[t, t - tau\] at index t bands + tau; 0 if tau > t.
    rows: Vec<f64>,
}

impl Strategy for Banded {
    fn steps(&self) -> usize {
        self.rows.len() / self.bands.max(1)
    }

    fn check(&self) -> Result<()> {
        between("bands", self.bands, 1, self.rows.len(), "the rows' entries")?;
        check_materializable(self.rows.len())?;
        let refused = |got: String, must_be: &str| Err(InvalidParameter::new("rows", got, must_be).into());
        if !self.rows.len().is_multiple_of(self.bands) {
            return refused(format!("{} numbers", self.rows.len()), "a multiple of bands");
        }
        if let Some(at) = self.rows.iter().position(|x| !x.is_finite()) {
            return refused(format!("{:?} at index {at}", self.rows[at]), "finite everywhere");
        }
        match self.rows.iter().step_by(self.bands).position(|&x| x <= 0.0) {
            Some(step) => refused(
                format!("{:?} on the diagonal at step {step}", self.rows[step * self.bands]),
                "above 0",
            ),
            None => Ok(()),
        }
    }

    fn encoder(&self) -> Result<Encoder> {
        Ok(Encoder::Banded { bands: self.bands, rows: self.rows.clone() })
    }

    fn row_errors_squared(&self, workload: &Workload) -> Result<Vec<f64>> {
        workload.check_steps(self.steps())?;
        match BandedErrors::new(workload, self.steps(), self.bands) {
            Some(errors) => decoder::finite(errors.covariance(&self.rows).rows()),
            None => decoder::rows_by_columns(&self.recursion()?, self.steps(), workload),
        }
    }

    fn recursion(&self) -> Result<Recursion> {
        Ok(Recursion::Banded { bands: self.bands, rows: self.rows.clone() })
    }
}

impl Design for Banded {
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>> {
        spec.refuse_order()?;
        let bands = bands_of(spec, problem)?;
        let Separation { min_sep: b, max_participations: k } =
            problem.participation.separation(problem.steps);
        if k > 1 {
            // Co-participating columns must be orthogonal for their norms to be the sensitivity.
            between("bands", bands, 1, b, "the separation of participations")?;
        }
        check_materializable(problem.steps.saturating_mul(bands))?;
        let columns = |c: &[f64]| -> Vec<f64> {
            let padded = || (0..bands).map(|tau| c.get(tau).copied().unwrap_or(0.0));
            (0..problem.steps).flat_map(|_| padded()).collect()
        };
        let fixed = columns(&coefficients(problem, bands, CoefficientRule::SquareRoot)?.value);
        if spec.rule == CoefficientRule::SquareRoot {
            let rows = normalize_columns(&fixed, bands).rows;
            return Ok(Solution::closed_form(Self { bands, rows }));
        }
        let mut starts = vec![
            fixed,
            columns(&[1.0]),
            columns(&coefficients(problem, bands, CoefficientRule::Optimized)?.value),
        ];
        if problem.steps * bands <= MAX_SIZE_OF_NARROWER_STARTS && bands > 1 {
            let fewer =
                Self::design(&StrategySpec { bands: Some(bands.div_ceil(2)), ..*spec }, problem)?.value;
            starts.push(fewer.widened(bands));
        }
        let found = minimize_columns(&starts, bands, problem)?;
        Ok(found.map(|rows| Self { bands, rows }))
    }
}

/// Maximum of n x bands for which the design with half of the bands is a start too, recursively.
const MAX_SIZE_OF_NARROWER_STARTS: usize = 1 << 14;

impl Banded {
    /// Returns the rows padded with zeros to more bands.
    fn widened(&self, bands: usize) -> Vec<f64> {
        let zeros = vec![0.0; bands - self.bands];
        self.rows.chunks_exact(self.bands).flat_map(|row| row.iter().chain(&zeros)).copied().collect()
    }
}
