//! The search for the best C or C^-1: solves with increasing numbers of bands, and for each with one shape
//! (see `shape`) after another.

use super::inverse::{InverseLoss, SmoothMagnitudes};
use super::loss::{errors, in_variables};
use super::shape::Shape;
use super::squared_error::SquaredError;
use super::sums::Sums;
use crate::design::best::Best;
use crate::numeric::lbfgs;
use crate::sensitivity;
use crate::solution::{Solution, Status};
use crate::toeplitz::divide;
use crate::{Problem, Result};

/// Maximum number of bands, for more than `SHORT_RUN` steps and for fewer, for which the search solves for
/// every smaller number of bands first. For more bands, it solves for powers of 2 only.
const STEPWISE_BANDS: (usize, usize) = (32, 64);
const SHORT_RUN: usize = 256;
/// Maximum number of bands for which products and quotients are computed without transforms.
const MAX_DIRECT_BANDS: usize = 96;
/// Number of terms of an evaluation up to which the default limit of iterations applies. An evaluation of a
/// million terms takes seconds.
const UNLIMITED_TERMS: usize = 1 << 17;
/// Maximum number of terms of an evaluation, above which no solver runs and the best start is kept; and
/// maximum number of terms of all evaluations of a solve.
const MAX_TERMS: usize = 4_000_000;
const MAX_TERMS_OF_SOLVE: usize = 24_000_000;
/// Number of steps above which relative decreases below `ROUNDED_DECREASE` are lost in rounding errors.
const ROUNDED_STEPS: usize = 1 << 17;
const ROUNDED_DECREASE: f64 = 1e-12;
/// Maximum of n x bands for which a second solve begins at `start`, after the solve from the best known
/// solution.
const MAX_SIZE_OF_SECOND_START: usize = 1 << 14;

/// A problem, and its losses: the reported one and the smoothed ones that solvers minimise.
struct Search<'a> {
    problem: &'a Problem,
    sums: Sums,
    /// One squared error per smoothing exponent, or a single one without smoothing.
    errors: Vec<SquaredError>,
}

impl<'a> Search<'a> {
    fn new(problem: &'a Problem, of: impl Fn(f64) -> Result<SquaredError>) -> Result<Self> {
        let sums = Sums::new(problem.steps, &problem.participation)?;
        Ok(Self { problem, sums, errors: errors(problem, of)? })
    }

    /// Returns the reported squared loss, or infinity if it is out of the range of double precision.
    fn cost(&self, c: &[f64]) -> f64 {
        self.cost_with(c, |error| error.exact(c))
    }

    /// Returns the reported squared loss of the C^-1 with first column `p`.
    fn inverse_cost(&self, p: &[f64]) -> f64 {
        self.cost_with(&divide(&[1.0], p, self.problem.steps), |error| error.exact_of_inverse(p))
    }

    fn cost_with(&self, c: &[f64], error: impl Fn(&SquaredError) -> f64) -> f64 {
        let Ok(sensitivity) = sensitivity::of_toeplitz(c, self.problem.steps, &self.problem.participation)
        else {
            return f64::INFINITY;
        };
        let cost = sensitivity.value.powi(2) * error(&self.errors[self.errors.len() - 1]);
        if cost.is_finite() && cost > 0.0 { cost } else { f64::INFINITY }
    }

    /// Minimises the loss from `start`, one shape after another, and offers each result to `best`.
    fn solve(&self, start: &[f64], best: &mut Best<Vec<f64>>) {
        let mut c = start.to_vec();
        if c.len() > MAX_DIRECT_BANDS && self.errors[0].terms() > MAX_TERMS {
            let status = Status::IterationLimit;
            let unsolved = Solution { value: c, status, gap: None, iterations: 0, improved: false };
            best.offer(unsolved, best.cost());
            return;
        }
        for &shape in Shape::stages(c.len(), &self.sums, &self.problem.participation) {
            for (stage, error) in self.errors.iter().enumerate() {
                let f = |v: &[f64]| in_variables(shape, v, |m| self.sums.squared(m), error);
                let work = if c.len() > MAX_DIRECT_BANDS { error.terms() } else { 0 };
                let settings = self.settings(stage + 1 == self.errors.len(), work);
                let found = lbfgs::minimize(f, shape.variables(&c), &settings);
                let found = found.map(|v| unit(&shape.coefficients(&v).0));
                c.clone_from(&found.value);
                let cost = self.cost(&c);
                best.offer(found, cost);
            }
            c.clone_from(best.value());
            c.resize(start.len(), 0.0);
        }
    }

    /// Minimises the loss over C^-1 from `start`, with less smoothing in each stage, and offers each result
    /// to `best`.
    fn solve_inverse(&self, start: &[f64], best: &mut Best<Vec<f64>>) {
        let mut p = start.to_vec();
        let magnitudes = SmoothMagnitudes::stages(&self.sums, &self.problem.participation);
        let stages = magnitudes.len().max(self.errors.len());
        for stage in 0..stages {
            let magnitudes = magnitudes[stage.min(magnitudes.len() - 1)];
            let error = &self.errors[stage.min(self.errors.len() - 1)];
            let loss = InverseLoss { steps: self.problem.steps, error, sums: &self.sums, magnitudes };
            let f = |v: &[f64]| loss.value_and_gradient(v);
            let mut settings = self.settings(stage + 1 == stages, 0);
            if self.problem.steps > ROUNDED_STEPS {
                settings.decrease_tolerance = settings.decrease_tolerance.max(ROUNDED_DECREASE);
            }
            let found = lbfgs::minimize(f, p[1..].to_vec(), &settings);
            let found = found.map(|v| [&[1.0], &v[..]].concat());
            p.clone_from(&found.value);
            let cost = self.inverse_cost(&p);
            best.offer(found, cost);
        }
    }

    /// Returns the settings of a solve. Stages before the last need fewer digits; if an evaluation takes long
    /// because of its many terms (`work`), there are fewer iterations.
    fn settings(&self, last: bool, work: usize) -> lbfgs::Settings {
        let default = lbfgs::Settings::default();
        let max_iterations =
            if work <= UNLIMITED_TERMS { default.max_iterations } else { MAX_TERMS_OF_SOLVE / work };
        let decrease_tolerance = if last { default.decrease_tolerance } else { 1e-9 };
        lbfgs::Settings { max_iterations, decrease_tolerance, ..default }
    }
}

/// Returns the coefficients divided by the first: c / c_0.
pub(super) fn unit(c: &[f64]) -> Vec<f64> {
    c.iter().map(|x| x / c[0]).collect()
}

/// Returns the coefficients of the Toeplitz C of least loss with `start.len()` bands and c_0 = 1. The solvers
/// begin at `start` and at `others`, which may have fewer coefficients.
///
/// # Errors
/// When the schema does not fit, or the workload is not valid.
pub(crate) fn minimize_banded(
    start: &[f64],
    others: &[Vec<f64>],
    problem: &Problem,
) -> Result<Solution<Vec<f64>>> {
    let Problem { steps, workload, objective, .. } = problem;
    let error = |exponent| SquaredError::new(*steps, start.len(), workload, *objective, exponent);
    let search = Search::new(problem, error)?;
    let sizes = search.sizes(start.len(), start.len());
    Ok(search.run(start, others, &sizes, |c| search.cost(c), |start, best| search.solve(start, best)))
}

/// Returns the first column p of the Toeplitz C^-1 of least loss with `start.len()` bands and p_0 = 1. The
/// solvers begin at `start` and at `others`, which may have fewer coefficients. If `known`, an approximation
/// of the result, is given, there are no solves with fewer bands.
///
/// The loss is that of [`minimize_banded`], for the power series c = 1 / p. O(n bands) time an evaluation.
///
/// # Errors
/// When the schema does not fit, or the workload is not valid.
pub(crate) fn minimize_banded_inverse(
    start: &[f64],
    others: &[Vec<f64>],
    known: Option<&[f64]>,
    problem: &Problem,
) -> Result<Solution<Vec<f64>>> {
    let Problem { steps, workload, objective, .. } = problem;
    let error =
        |exponent| SquaredError::of_banded_inverse(*steps, start.len(), workload, *objective, exponent);
    let search = Search::new(problem, error)?;
    let solve = |start: &[f64], best: &mut Best<Vec<f64>>| search.solve_inverse(start, best);
    let (sizes, others) = match known {
        Some(known) => (vec![start.len()], &[others, &[known.to_vec()]].concat()[..]),
        None => (search.sizes(start.len(), problem.steps), others),
    };
    Ok(search.run(start, others, &sizes, |p| search.inverse_cost(p), solve))
}

impl Search<'_> {
    /// Returns the best of `start`, `others` and the results of `solve` from them, for each number of bands
    /// in `sizes`.
    fn run(
        &self,
        start: &[f64],
        others: &[Vec<f64>],
        sizes: &[usize],
        cost: impl Fn(&[f64]) -> f64,
        solve: impl Fn(&[f64], &mut Best<Vec<f64>>),
    ) -> Solution<Vec<f64>> {
        let bands = start.len();
        let start = unit(start);
        let first = cost(&start);
        let mut best = Best::new(start.clone(), first);
        let mut fewer: Option<Vec<f64>> = None;
        for &size in sizes {
            let fitting = |c: &Vec<f64>| {
                let mut c = unit(&c[..c.len().min(size)]);
                c.resize(size, 0.0);
                c
            };
            let truncated = fitting(&start);
            let truncated_cost = if size == bands { first } else { cost(&truncated) };
            let mut here = Best::new(truncated.clone(), truncated_cost);
            for other in others.iter().chain(&fewer).map(fitting) {
                let cost = cost(&other);
                here.consider(other, cost);
            }
            solve(&here.value().clone(), &mut here);
            if size * self.problem.steps <= MAX_SIZE_OF_SECOND_START {
                solve(&truncated, &mut here);
            }
            if size < bands {
                fewer = Some(here.value().clone());
                continue;
            }
            let least = here.cost();
            best.offer(here.finished(), least);
        }
        best.finished()
    }

    /// Returns the increasing numbers of bands for which the search solves, for a C with `length`
    /// coefficients. It is a single number if the loss is smooth.
    fn sizes(&self, bands: usize, length: usize) -> Vec<usize> {
        if self.sums.orthogonal(length) {
            return vec![bands];
        }
        let stepwise = if self.problem.steps <= SHORT_RUN { STEPWISE_BANDS.1 } else { STEPWISE_BANDS.0 };
        let mut sizes: Vec<usize> = if bands <= stepwise {
            (1..=bands).collect()
        } else {
            std::iter::successors(Some(1), |size| Some(2 * size)).take_while(|&size| size < bands).collect()
        };
        // The separation is the largest number of bands with a smooth loss.
        sizes.extend([self.sums.separation.min_sep.min(bands), bands]);
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}
