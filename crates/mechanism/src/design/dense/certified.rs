//! Dual ascent with a certificate, shared by all dense designs.
//!
//! 1. L-BFGS ascends a dual function, every value of which is a lower bound on the squared loss.
//! 2. From time to time the multipliers are mapped to a feasible X; the squared loss of its factor C is an
//!    upper bound.
//! 3. Where the dual offers Newton steps and sixteen iterations leave a large gap, those follow.
//! 4. The ascent stops at a small relative gap between the two bounds. For the max loss there are several
//!    stages, each with less softness of the queries' weights (see `queries`).

use std::cell::{Cell, RefCell};

use antinoise_linear::{Matrix, lower_inverse, reverse_cholesky};

use super::newton::Direction;
use super::settings::DenseSettings;
use crate::decoder::error_of_matrix;
use crate::numeric::lbfgs::{self, minimize_until};
use crate::problem::Objective;
use crate::solution::{Solution, Status};
use crate::{Problem, Result};

/// A dual problem: minimise f(x) = -ln of a lower bound on the squared loss, up to a constant factor.
pub(super) trait Dual {
    /// The intermediate results of an evaluation, which [`Dual::gram`] needs.
    type State;

    /// Evaluates f, its gradient, and the certified lower bound.
    fn evaluate(&self, x: &[f64]) -> Result<Evaluation<Self::State>>;

    /// Maps the multipliers x to a feasible X = C^T C, so that C has sensitivity at most 1.
    fn gram(&self, x: &[f64], state: &Self::State) -> Result<Matrix>;

    /// Returns whether [`Dual::newton`] offers steps.
    fn has_newton(&self) -> bool {
        false
    }

    /// Returns the Newton step from x, or nothing where there is none in double precision.
    fn newton(&self, _x: &[f64], _state: &Self::State) -> Option<Direction> {
        None
    }

    /// Returns the relative loss of the certified bound to rounding that [`Dual::sharp_bound`] avoids.
    fn rounding(&self, _state: &Self::State) -> f64 {
        0.0
    }

    /// Returns a certified lower bound at x with less loss to rounding, in more time.
    fn sharp_bound(&self, _x: &[f64]) -> Result<f64> {
        Ok(0.0)
    }

    /// Sets the softness of the queries' weights, if there are any.
    fn soften(&mut self, _softness: f64) {}
}

pub(super) struct Evaluation<S> {
    pub(super) value: f64,
    pub(super) gradient: Vec<f64>,
    /// Lower bound on ||B||_F^2 or ||B||_row^2 at sensitivity 1.
    pub(super) bound: f64,
    pub(super) state: S,
}

/// The best C so far, its squared loss, and the best lower bound.
struct Incumbent {
    encoder: Option<Matrix>,
    value: f64,
    bound: f64,
}

/// Decides when to compute the primal value, by predicting the gap, which is about proportional to the
/// squared norm of the gradient (RMS) or to the norm itself (max).
struct Schedule {
    gap: f64,
    power: f64,
    due_below: f64,
    waited: usize,
}

/// Softness of the queries' weights, stage by stage. It leaves a relative gap of at most the softness, less
/// if the mean query is close to the worst one. With less softness the dual is flatter.
const SOFTNESS: [f64; 5] = [1e-2, 1e-3, 1e-4, 1e-5, 1e-6];
/// Number of iterations of L-BFGS before Newton's method, whose iterations take a few times as long. Prefix
/// sums with a single participation do not need more.
const FIRST_ITERATIONS: usize = 16;
/// Maximum number of Newton steps. Nine suffice, except where patterns have tens of steps: blocks of Lambda
/// are then close to singular, and L-BFGS continues.
const MAX_NEWTON_ITERATIONS: usize = 20;
/// A Newton step that gains less than this share of a small gap leaves a gap of rounding errors.
const ROUNDED_SHARE: f64 = 0.1;
/// Fractions of a Newton step that are tried until one improves the dual.
const FRACTIONS: [f64; 6] = [1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125];
/// Maximum number of iterations between two computations of the primal value.
const MAX_WAIT: usize = 10;
/// Number of variables above which L-BFGS remembers fewer steps, to save memory.
const MANY_VARIABLES: usize = 500_000;

impl Schedule {
    fn new(settings: &DenseSettings, objective: Objective) -> Self {
        let power = if objective == Objective::Rms { 1.0 } else { 2.0 };
        Self { gap: settings.gap, power, due_below: settings.gap, waited: 0 }
    }

    fn due(&mut self, steepness: f64) -> bool {
        self.waited += 1;
        steepness <= self.due_below || self.waited > MAX_WAIT
    }

    fn learn(&mut self, steepness: f64, gap: f64) {
        self.waited = 0;
        if gap.is_finite() {
            self.due_below = 2.0 * steepness * (self.gap / gap).powf(self.power);
        }
    }
}

/// Ascends the dual from `start` until the relative gap between the best primal value and the best dual bound
/// is at most `settings.gap`.
pub(super) fn ascend<D: Dual>(
    mut dual: D,
    start: Vec<f64>,
    problem: &Problem,
    settings: &DenseSettings,
) -> Result<Solution<Matrix>> {
    Ok(ascend_to(&mut dual, start, problem, settings)?.0)
}

/// As [`ascend`], with the multipliers at the end.
pub(super) fn ascend_to<D: Dual>(
    dual: &mut D,
    start: Vec<f64>,
    problem: &Problem,
    settings: &DenseSettings,
) -> Result<(Solution<Matrix>, Vec<f64>)> {
    let stages: &[f64] = if problem.objective == Objective::Max { &SOFTNESS } else { &[0.0] };
    let mut best = Incumbent { encoder: None, value: f64::INFINITY, bound: 0.0 };
    let (mut x, mut iterations, mut status) = (start, 0, Status::Stalled);
    if dual.has_newton() {
        let first =
            DenseSettings { max_iterations: settings.max_iterations.min(FIRST_ITERATIONS), ..*settings };
        let ended = best.ascend_stage(dual, x, problem, &first)?;
        let left = (settings.max_iterations - ended.iterations).min(MAX_NEWTON_ITERATIONS);
        let (reached, steps) = best.newton_stage(dual, ended.value, problem, settings, left)?;
        (x, iterations, status) = (reached, ended.iterations + steps, Status::Stalled);
    }
    for &softness in stages {
        if best.gap() <= settings.enough() || iterations >= settings.max_iterations {
            break;
        }
        dual.soften(softness);
        let most = settings.max_iterations - iterations;
        let ended =
            best.ascend_stage(dual, x, problem, &DenseSettings { max_iterations: most, ..*settings })?;
        (x, status) = (ended.value, ended.status);
        iterations += ended.iterations;
    }
    Ok((best.finished(status, iterations, settings)?, x))
}

impl Incumbent {
    fn gap(&self) -> f64 {
        self.value / self.bound - 1.0
    }

    fn ascend_stage<D: Dual>(
        &mut self,
        dual: &D,
        start: Vec<f64>,
        problem: &Problem,
        settings: &DenseSettings,
    ) -> Result<Solution<Vec<f64>>> {
        let state = RefCell::new(None::<(Vec<f64>, D::State)>);
        let bound = Cell::new(self.bound);
        let f = |x: &[f64]| {
            state.replace(None); // frees its memory
            let Ok(at) = dual.evaluate(x) else { return (f64::NAN, vec![f64::NAN; x.len()]) };
            if at.bound.is_finite() {
                bound.set(bound.get().max(at.bound));
            }
            state.replace(Some((x.to_vec(), at.state)));
            (at.value, at.gradient)
        };
        let mut schedule = Schedule::new(settings, problem.objective);
        let done = |x: &[f64], gradient: &[f64]| {
            let squared = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>();
            let steepness = squared(gradient) * squared(x) / 4.0;
            if !schedule.due(steepness) {
                return false;
            }
            if let Some((_, state)) = state.borrow().as_ref().filter(|(at, _)| at == x) {
                self.improve(dual.gram(x, state), problem);
            }
            self.bound = bound.get();
            schedule.learn(steepness, self.gap());
            self.gap() <= settings.gap
        };
        let memory = if start.len() > MANY_VARIABLES { 5 } else { 20 };
        let lbfgs = lbfgs::Settings { max_iterations: settings.max_iterations, memory, ..Default::default() };
        let ended = minimize_until(f, start, &lbfgs, done);
        self.bound = bound.get();
        if self.encoder.is_none() || self.gap() > settings.gap {
            // The primal value of the last point has not been computed yet.
            let state = match state.into_inner() {
                Some((at, state)) if at == ended.value => Ok(state),
                _ => dual.evaluate(&ended.value).map(|at| at.state),
            };
            match state {
                Ok(state) => self.improve(dual.gram(&ended.value, &state), problem),
                // A decomposition failed, as it may where the dual is flat: the earlier result is kept, with
                // its gap.
                Err(_) if self.encoder.is_some() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(ended)
    }

    /// Ascends the dual by Newton's method, and returns the last point and the number of steps.
    fn newton_stage<D: Dual>(
        &mut self,
        dual: &D,
        mut x: Vec<f64>,
        problem: &Problem,
        settings: &DenseSettings,
        max_iterations: usize,
    ) -> Result<(Vec<f64>, usize)> {
        if self.gap() <= settings.gap {
            return Ok((x, 0));
        }
        let mut at = dual.evaluate(&x)?;
        for iteration in 0..max_iterations {
            let higher = dual.newton(&x, &at.state).and_then(|direction| higher(dual, &direction, at.value));
            let Some((reached, next)) = higher else {
                self.sharpen(dual, &x);
                return Ok((x, iteration));
            };
            let gained = at.value - next.value;
            (x, at) = (reached, next);
            if at.bound.is_finite() {
                self.bound = self.bound.max(at.bound);
            }
            self.improve(dual.gram(&x, &at.state), problem);
            let rounded = self.gap() <= settings.enough() && gained < ROUNDED_SHARE * self.gap();
            if self.gap() > settings.gap && (rounded || self.gap() <= settings.gap + dual.rounding(&at.state))
            {
                self.sharpen(dual, &x);
            }
            if rounded || self.gap() <= settings.gap {
                return Ok((x, iteration + 1));
            }
        }
        Ok((x, max_iterations))
    }

    /// Replaces the lower bound by one that loses less to rounding, if that is larger.
    fn sharpen<D: Dual>(&mut self, dual: &D, x: &[f64]) {
        if let Ok(bound) = dual.sharp_bound(x)
            && bound.is_finite()
        {
            self.bound = self.bound.max(bound);
        }
    }

    /// Keeps the factor of X if its loss is the smallest so far. An X without a factor in double precision is
    /// ignored.
    fn improve(&mut self, gram: Result<Matrix>, problem: &Problem) {
        if let Ok((encoder, value)) = gram.and_then(|gram| cost(gram, problem))
            && value < self.value
        {
            self.encoder = Some(encoder);
            self.value = value;
        }
    }

    fn finished(
        self,
        status: Status,
        iterations: usize,
        settings: &DenseSettings,
    ) -> Result<Solution<Matrix>> {
        // The value is below the bound by rounding, or with negative inner products that the dual excludes.
        let gap = self.gap().max(0.0);
        let Some(encoder) = self.encoder else {
            let message = "no strategy was found: the workload is too ill-conditioned for double precision";
            return Err(crate::Error::Numerical(message.into()));
        };
        let status = status.certified(gap <= settings.gap);
        Ok(Solution {
            value: encoder,
            status,
            gap: gap.is_finite().then_some(gap),
            iterations,
            improved: true,
        })
    }
}

/// Returns the variables after the largest fraction of a Newton step that lowers f below `value`.
fn higher<D: Dual>(dual: &D, direction: &Direction, value: f64) -> Option<(Vec<f64>, Evaluation<D::State>)> {
    FRACTIONS.into_iter().find_map(|fraction| {
        let x = direction.at(fraction);
        let next = dual.evaluate(&x).ok()?;
        (next.value < value).then_some((x, next))
    })
}

/// Returns C with C^T C = X, and its squared error ||B||_F^2 or ||B||_row^2.
pub(super) fn cost(gram: Matrix, problem: &Problem) -> Result<(Matrix, f64)> {
    let encoder = reverse_cholesky(&gram)?;
    drop(gram);
    let squared = squared_error(&encoder, problem)?;
    Ok((encoder, squared))
}

/// Returns ||B||_F^2 or ||B||_row^2 of a lower-triangular C.
pub(super) fn squared_error(encoder: &Matrix, problem: &Problem) -> Result<f64> {
    let error = error_of_matrix(&lower_inverse(encoder), &problem.workload)?;
    Ok(match problem.objective {
        Objective::Rms => error.rms * error.rms * problem.workload.queries(problem.steps) as f64,
        Objective::Max => error.max * error.max,
    })
}
