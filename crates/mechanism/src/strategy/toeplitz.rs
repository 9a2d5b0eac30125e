//! All n Toeplitz coefficients: the square root of A, which for prefix sums and a single participation has
//! the least max loss of all Toeplitz matrices, or optimised. Noise: O(n m) time a step by making seed noise
//! again, no state.

use serde::{Deserialize, Serialize};

use super::form::harmonic;
use super::{BandedInverse, Blt, Class, Design, Form, Problem, Strategy, StrategySpec, can_write_out};
use crate::optimize::toeplitz::minimize_banded;
use crate::optimize::{Objective, Solution};
use crate::toeplitz::{divide, square_root};
use crate::{Encoder, Participation, Recursion, Result, Workload};

/// A lower-triangular Toeplitz matrix given by its first column.
///
/// ```
/// use antinoise_mechanism::{Strategy, strategy::Toeplitz};
/// let strategy = Toeplitz::new(4, vec![1.0, 0.5])?;
/// assert_eq!(strategy.encoder()?.to_dense()[(3, 2)], 0.5);
/// assert!(Toeplitz::new(4, vec![0.0, 0.5]).is_err()); // not invertible
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toeplitz {
    steps: usize,
    coefficients: Vec<f64>,
}

impl Toeplitz {
    /// The n x n matrix with first column `coefficients`, zeros where it is short.
    ///
    /// # Errors
    /// When `coefficients` is empty, longer than `steps`, has a number that is not finite or does not begin
    /// with one above 0.
    pub fn new(steps: usize, coefficients: Vec<f64>) -> Result<Self> {
        let strategy = Self { steps, coefficients };
        strategy.check()?;
        Ok(strategy)
    }
}

impl Strategy for Toeplitz {
    fn steps(&self) -> usize {
        self.steps
    }

    fn check(&self) -> Result<()> {
        check_coefficients(self.steps, &self.coefficients)
    }

    fn encoder(&self) -> Result<Encoder> {
        Ok(Encoder::Toeplitz { steps: self.steps, coefficients: self.coefficients.clone() })
    }

    fn recursion(&self) -> Result<Recursion> {
        can_write_out(self.steps)?;
        Recursion::MovingAverage { taps: divide(&[1.0], &self.coefficients, self.steps) }.checked()
    }
}

impl Design for Toeplitz {
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>> {
        spec.refuse_bands()?;
        spec.refuse_order()?;
        spec.refuse_separations()?;
        can_write_out(problem.steps)?;
        let found = coefficients(problem, problem.steps, spec.form)?;
        let strategy = Self::new(problem.steps, found.value.clone())?;
        Ok(found.map(|_| strategy))
    }
}

/// A column that a lower-triangular, invertible Toeplitz matrix can have.
pub(super) fn check_coefficients(steps: usize, coefficients: &[f64]) -> Result<()> {
    antinoise_input::at_least("steps", steps, 1)?;
    Workload::Toeplitz { coefficients: coefficients.to_vec() }.check()?;
    antinoise_input::between("coefficients' length", coefficients.len(), 1, steps, "steps")?;
    Ok(())
}

/// The first `bands` coefficients in the form that is asked for.
pub(super) fn coefficients(problem: &Problem, bands: usize, form: Form) -> Result<Solution<Vec<f64>>> {
    // Other workloads than prefix sums are written out; more bands than the separation are added up over all steps.
    let (b, _) = problem.participation.separation(problem.steps);
    if problem.workload != Workload::Prefix || bands > b {
        can_write_out(problem.steps)?;
    }
    can_write_out(bands)?;
    form.coefficients(problem, bands)
}

/// The first `bands` coefficients of sqrt(A), optimised from there.
pub(super) fn optimized(problem: &Problem, bands: usize) -> Result<Solution<Vec<f64>>> {
    let start = square_root_of(&problem.workload, problem.steps, bands)?;
    let optimal_already = bands == problem.steps
        && problem.objective == Objective::Max
        && problem.participation == Participation::Single
        && problem.workload == Workload::Prefix;
    if optimal_already {
        return Ok(Solution::closed_form(start));
    }
    let mut others = vec![vec![1.0]];
    if problem.workload != Workload::Prefix {
        others.extend(problem.workload.coefficients(problem.steps)?);
    }
    if bands == problem.steps {
        others.extend(contained(problem)?);
    }
    if !problem.workload.is_toeplitz() && problem.objective == Objective::Max && problem.steps <= FEW {
        others.push(harmonic(problem, bands)?.value);
    }
    minimize_banded(&start, &others, problem)
}

/// Solutions of the classes that all Toeplitz matrices contain: where several participations overlap, their starts lead to
/// minima that others miss.
fn contained(problem: &Problem) -> Result<Vec<Vec<f64>>> {
    let (steps, k) = (problem.steps, problem.participation.separation(problem.steps).1);
    let mut found = Vec::new();
    if k > 1 && steps <= SHORT {
        found.push(Blt::best(problem)?.coefficients()?);
        let inverse = StrategySpec { bands: Some(steps), ..StrategySpec::new(Class::BandedInverse) };
        if let Encoder::Toeplitz { coefficients, .. } =
            BandedInverse::design(&inverse, problem)?.value.encoder()?
        {
            found.push(coefficients);
        }
    } else if steps > LONG && problem.workload == Workload::Prefix {
        found.push(Blt::best(problem)?.coefficients()?);
    }
    Ok(found)
}

/// Up to so many steps the best 1 / i + c is a start where the worst row is a p-norm of all: smoothed, optima miss it by a
/// few parts in 10^6.
const FEW: usize = 256;

/// Up to so many steps the contained classes are designed too.
const SHORT: usize = 64;

/// More steps than this leave time for few iterations, so that the best BLT, which takes none of it, is a start too.
const LONG: usize = 1 << 17;

/// sqrt(A), or the square root of prefix sums where A is not Toeplitz. For prefix sums c_0 = 1, c_t = c_{t-1}
/// (2t - 1) / (2t) (monograph, Theorem 2.5).
pub(super) fn square_root_of(workload: &Workload, steps: usize, bands: usize) -> Result<Vec<f64>> {
    if *workload != Workload::Prefix
        && let Some(a) = workload.coefficients(steps)?
    {
        return Ok(square_root(&a, bands));
    }
    let mut c = vec![1.0; bands];
    for t in 1..bands {
        c[t] = c[t - 1] * (2 * t - 1) as f64 / (2 * t) as f64;
    }
    Ok(c)
}
