//! Minimise sens(C, Pi) ||A C^-1|| over rational C of degree d: C = P(X) / Q(X).
//!
//! 1. Variables: `rational_series::sections` maps R^d to all stable P, and another R^d to all stable Q, whose
//!    poles may be real, complex or repeated. So noise and columns of C decay, and no barrier is needed.
//! 2. The first columns c of C and p of C^-1 are computed step by step. The derivative of c in a coefficient
//!    of P is X^k / Q, and in one of Q it is -X^k / Q c: inner products with running sums, O(n d).
//! 3. Coefficients may have any signs, so that the sensitivity is bounded as in `toeplitz::inverse`.
//! 4. Degrees are solved one after the other. Starts: the BLT of degree d, the banded Toeplitz C of d + 1
//!    bands, the solution of degree d - 1, and that of degree d - 2 with a pair of poles next to a pair of
//!    zeros, whose period is that of participations. So the loss never rises with the degree, and it is at
//!    most that of the BLT and of the bands with the same number of vectors of state.

use antinoise_input::between;
use realfft::num_complex::Complex;

use super::best::Best;
use super::blt::nodes_of;
use super::class::Design;
use super::spec::StrategySpec;
use super::toeplitz::{SmoothMagnitudes, SquaredError, Sums, errors, minimize_banded, square_root_of};
use crate::numeric::lbfgs;
use crate::rational_series::powers::in_sums;
use crate::rational_series::running_sums::{projections, series};
use crate::rational_series::sections::{Sections, variables, with_real, zeros};
use crate::solution::Solution;
use crate::strategy::Rational;
use crate::strategy::rational::MAX_DEGREE;
use crate::toeplitz::multiply;
use crate::{Participation, Problem, Result, sensitivity};

/// The degree if the spec requests none.
const DEFAULT_DEGREE: usize = 4;
/// Maximum number of steps of a design, which takes O(n log n) time an evaluation.
const MAX_STEPS: usize = 1 << 17;
/// Maximum number of iterations of each solve.
const MAX_ITERATIONS: usize = 300;
/// Largest modulus of a lambda at a start.
const MAX_MODULUS: f64 = 0.999;

/// P and Q, by the coefficients of X, X^2, ..., X^d.
#[derive(Clone)]
struct Quotient {
    numerator: Vec<f64>,
    denominator: Vec<f64>,
}

impl Quotient {
    fn of(variables: &[f64]) -> Self {
        let (zeros, poles) = variables.split_at(variables.len() / 2);
        let of = |half: &[f64]| Sections::from_variables(half).coefficients();
        Self { numerator: of(zeros), denominator: of(poles) }
    }

    fn strategy(&self, steps: usize) -> Result<Rational> {
        Rational::new(steps, self.numerator.clone(), self.denominator.clone())
    }

    /// Returns the first columns of C and of C^-1.
    fn columns(&self, steps: usize) -> (Vec<f64>, Vec<f64>) {
        let gain: Vec<f64> = self.numerator.iter().zip(&self.denominator).map(|(p, q)| p - q).collect();
        let lost: Vec<f64> = gain.iter().map(|gain| -gain).collect();
        (series(&gain, &self.denominator, steps), series(&lost, &self.numerator, steps))
    }
}

/// ln(sens^2 ||B||^2) as a function of the variables.
struct RationalLoss<'a> {
    steps: usize,
    error: &'a SquaredError,
    sums: &'a Sums,
    magnitudes: SmoothMagnitudes,
}

impl RationalLoss<'_> {
    fn value_and_gradient(&self, u: &[f64]) -> (f64, Vec<f64>) {
        let (zeros, poles) = u.split_at(u.len() / 2);
        let (zeros, poles) = (Sections::from_variables(zeros), Sections::from_variables(poles));
        let quotient = Quotient { numerator: zeros.coefficients(), denominator: poles.coefficients() };
        let (c, p) = quotient.columns(self.steps);
        let (m, (error, dp)) = (self.magnitudes.of(&c), self.error.of_inverse(&p));
        let (sensitivity, dm) = self.sums.squared(&m);
        let value = sensitivity.ln() + error.ln();
        if !value.is_finite() {
            return (f64::INFINITY, vec![0.0; u.len()]);
        }
        let dc = scaled(self.magnitudes.pulled_back(&c, &m, dm), 1.0 / sensitivity);
        let dp = scaled(dp, 1.0 / error);
        let unit = || (0..self.steps).map(|t| if t == 0 { 1.0 } else { 0.0 });
        let Quotient { numerator, denominator } = &quotient;
        let minus = |x: Vec<f64>, y: Vec<f64>| x.iter().zip(y).map(|(x, y)| x - y).collect::<Vec<f64>>();
        let of_numerator =
            minus(projections(denominator, unit(), &dc), projections(numerator, p.iter().copied(), &dp));
        let of_denominator =
            minus(projections(numerator, unit(), &dp), projections(denominator, c.iter().copied(), &dc));
        (value, [zeros.gradient(&of_numerator), poles.gradient(&of_denominator)].concat())
    }
}

fn scaled(mut x: Vec<f64>, by: f64) -> Vec<f64> {
    x.iter_mut().for_each(|x| *x *= by);
    x
}

/// A result: P and Q, and their variables.
type Found = Solution<(Quotient, Vec<f64>)>;

/// The losses of the successive solves, and the reported one.
struct Search<'a> {
    problem: &'a Problem,
    sums: Sums,
    errors: Vec<SquaredError>,
}

impl<'a> Search<'a> {
    fn new(problem: &'a Problem) -> Result<Self> {
        let of = |exponent| {
            SquaredError::new(problem.steps, problem.steps, &problem.workload, problem.objective, exponent)
        };
        let sums = Sums::new(problem.steps, &problem.participation)?;
        Ok(Self { problem, sums, errors: errors(problem, of)? })
    }

    /// Returns the reported squared loss, or infinity if it is out of the range of double precision or C is
    /// not stable, as bands may be.
    fn cost(&self, quotient: &Quotient) -> f64 {
        if quotient.strategy(self.problem.steps).is_err() {
            return f64::INFINITY;
        }
        let (c, p) = quotient.columns(self.problem.steps);
        let Ok(sensitivity) = sensitivity::of_toeplitz(&c, self.problem.steps, &self.problem.participation)
        else {
            return f64::INFINITY;
        };
        let cost = sensitivity.value.powi(2) * self.errors[self.errors.len() - 1].exact_of_inverse(&p);
        if cost.is_finite() && cost > 0.0 { cost } else { f64::INFINITY }
    }

    /// Minimises the loss from `start`, with less smoothing in each stage, and offers each result to `best`.
    fn solve(&self, start: Vec<f64>, best: &mut Best<(Quotient, Vec<f64>)>) {
        let magnitudes = SmoothMagnitudes::stages(&self.sums, &self.problem.participation);
        let stages = magnitudes.len().max(self.errors.len());
        let mut u = start;
        for stage in 0..stages {
            let magnitudes = magnitudes[stage.min(magnitudes.len() - 1)];
            let error = &self.errors[stage.min(self.errors.len() - 1)];
            let loss = RationalLoss { steps: self.problem.steps, error, sums: &self.sums, magnitudes };
            let decrease_tolerance = if stage + 1 == stages { 1e-13 } else { 1e-9 };
            let settings = lbfgs::Settings {
                max_iterations: MAX_ITERATIONS,
                decrease_tolerance,
                ..lbfgs::Settings::default()
            };
            let found = lbfgs::minimize(|u| loss.value_and_gradient(u), u, &settings);
            u = found.value.clone();
            let found = found.map(|u| (Quotient::of(&u), u));
            let cost = self.cost(&found.value.0);
            best.offer(found, cost);
        }
    }

    /// Returns the best P and Q of degrees 1, 2, ..., and their variables. The results for an easier problem
    /// are further starts.
    fn up_to(&self, degree: usize, easier: &[Found]) -> Result<Vec<Found>> {
        let mut found: Vec<Found> = Vec::with_capacity(degree);
        for degree in 1..=degree {
            let lower = |by: usize| degree.checked_sub(1 + by).and_then(|at| found.get(at));
            let mut starts = self.starts(degree, lower(1), lower(2))?;
            starts.extend(easier.get(degree - 1).map(|easier| easier.value.clone()));
            let mut best = Best::new(starts[0].clone(), self.cost(&starts[0].0));
            for (quotient, u) in starts {
                let cost = self.cost(&quotient);
                best.consider((quotient, u.clone()), cost);
                self.solve(u, &mut best);
            }
            found.push(best.finished());
        }
        Ok(found)
    }

    /// Returns the starts for this degree, given the solutions of degrees lower by 1 and by 2.
    fn starts(
        &self,
        degree: usize,
        once: Option<&Found>,
        twice: Option<&Found>,
    ) -> Result<Vec<(Quotient, Vec<f64>)>> {
        let with_variables = |(quotient, deltas): (Quotient, [Vec<Complex<f64>>; 2])| {
            (quotient, deltas.map(|delta| variables(&delta)).concat())
        };
        let mut starts = vec![with_variables(self.blt(degree)?), with_variables(self.bands(degree)?)];
        if let Some(Solution { value: (quotient, u), .. }) = once {
            let longer = |x: &[f64]| multiply(&[&[1.0], x].concat(), &[1.0, 1.0], degree + 1).split_off(1);
            let numerator = longer(&quotient.numerator);
            starts.push((Quotient { numerator, denominator: longer(&quotient.denominator) }, with_inert(u)));
        }
        if let Some(Solution { value: (_, u), .. }) = twice {
            starts.extend(self.pairs().map(|pair| with_pair(u, pair)));
        }
        Ok(starts)
    }

    /// Returns the BLT of this many buffers, and the complements of its zeros and poles.
    fn blt(&self, degree: usize) -> Result<(Quotient, [Vec<Complex<f64>>; 2])> {
        let mut nodes = nodes_of(self.problem, degree)?;
        // A factor of numerator and denominator: lambda = 0 in both.
        nodes.resize(2 * degree, 1.0);
        let of = |from: usize| nodes.iter().skip(from).step_by(2).map(|&delta| delta.into()).collect();
        let deltas: [Vec<Complex<f64>>; 2] = [of(1), of(0)];
        let [numerator, denominator] = [&deltas[0], &deltas[1]].map(|deltas| {
            let product = |p: Vec<f64>, delta: &Complex<f64>| multiply(&p, &[1.0, delta.re], p.len() + 1);
            deltas.iter().fold(vec![1.0], product).split_off(1)
        });
        Ok((Quotient { numerator, denominator }, deltas))
    }

    /// Returns the banded Toeplitz C with `degree` + 1 bands, and the complements of its zeros and poles.
    fn bands(&self, degree: usize) -> Result<(Quotient, [Vec<Complex<f64>>; 2])> {
        let start = square_root_of(&self.problem.workload, self.problem.steps, degree + 1)?;
        let c = minimize_banded(&start, &[vec![1.0]], self.problem)?.value;
        let inside = |z: Complex<f64>| 1.0 - z * (MAX_MODULUS / z.norm()).min(1.0);
        let numerator = in_sums(&c[1..], degree);
        let denominator = in_sums(&[], degree);
        let deltas = [zeros(&c[1..]).into_iter().map(inside).collect(), vec![1.0.into(); degree]];
        Ok((Quotient { numerator, denominator }, deltas))
    }

    /// Returns pairs lambda of the next starts: oscillations that fade within a separation, of that period
    /// and of twice that.
    fn pairs(&self) -> impl Iterator<Item = Complex<f64>> {
        let separation = self.sums.separation;
        let period = if separation.max_participations > 1 { separation.min_sep.max(4) } else { 4 } as f64;
        [1.0, 0.5].into_iter().map(move |turns| {
            Complex::from_polar((-1.5 / period).exp(), std::f64::consts::TAU * turns / period)
        })
    }
}

/// Adds a pole and a zero next to it, both with lambda near 0.
fn with_inert(u: &[f64]) -> Vec<f64> {
    let (zeros, poles) = u.split_at(u.len() / 2);
    [with_real(zeros, 1.01), with_real(poles, 0.99)].concat()
}

/// Adds the pair of poles with this lambda and its conjugate, and a pair of zeros next to it.
fn with_pair(u: &[f64], lambda: Complex<f64>) -> (Quotient, Vec<f64>) {
    let (zeros, poles) = u.split_at(u.len() / 2);
    let of = |lambda: Complex<f64>| variables(&[1.0 - lambda, 1.0 - lambda.conj()]);
    let u = [&of(0.97 * lambda)[..], zeros, &of(lambda), poles].concat();
    (Quotient::of(&u), u)
}

impl Design for Rational {
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>> {
        spec.refuse_bands()?;
        spec.refuse_form()?;
        let most = "the maximum number of steps for which rational strategies are designed";
        between("steps", problem.steps, 1, MAX_STEPS, most)?;
        let order = spec.order.unwrap_or(DEFAULT_DEGREE);
        between("order", order, 1, MAX_DEGREE, "the maximum degree")?;
        // With n - 1 poles and zeros, C is any Toeplitz matrix.
        let degree = order.min(problem.steps - 1);
        if degree == 0 {
            return Ok(Solution::closed_form(Self::new(problem.steps, Vec::new(), Vec::new())?));
        }
        let easier = match exactly_apart(problem) {
            Some(exactly) => Search::new(&exactly)?.up_to(degree, &[])?,
            None => Vec::new(),
        };
        let found = Search::new(problem)?.up_to(degree, &easier)?.pop().expect("a degree is at least 1");
        found.try_map(|(quotient, _)| quotient.strategy(problem.steps))
    }
}

/// Returns the problem with participations exactly, not at least, b steps apart. Its loss has fewer kinks,
/// and its solutions lead to minima that other starts miss.
fn exactly_apart(problem: &Problem) -> Option<Problem> {
    let Participation::MinSep { min_sep, max_participations } = problem.participation else { return None };
    let participation = Participation::Cyclic { min_sep, max_participations };
    participation.check(problem.steps).ok()?;
    Some(problem.clone().with_participation(participation)).filter(|_| max_participations > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Tolerance, assert_gradient};

    #[test]
    fn the_gradient_is_the_finite_difference() {
        let steps = 19;
        let u = [-1.0, -3.0, 0.2, -2.0, -4.0, -0.5];
        for workload in ["prefix", "momentum:0.7,0.1", "cooldown:9,0.2"] {
            for (schema, magnitudes) in [
                ("single", SmoothMagnitudes::Signless),
                ("cyclic:4,3", SmoothMagnitudes::Absolute(0.1)),
                ("min-sep:3,4", SmoothMagnitudes::Majorant(0.1)),
            ] {
                for objective in [crate::problem::Objective::Rms, crate::problem::Objective::Max] {
                    let sums = Sums::new(steps, &schema.parse().unwrap()).unwrap();
                    let error =
                        SquaredError::new(steps, steps, &workload.parse().unwrap(), objective, 8.0).unwrap();
                    let loss = RationalLoss { steps, error: &error, sums: &sums, magnitudes };
                    let (_, gradient) = loss.value_and_gradient(&u);
                    let f = |u: &[f64]| loss.value_and_gradient(u).0;
                    let case = format!("{workload} {schema} {objective}");
                    assert_gradient(&case, f, &u, &gradient, 1e-5, Tolerance::absolute(1e-7));
                }
            }
        }
    }
}
