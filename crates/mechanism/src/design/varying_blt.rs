//! Minimise sens(C, Pi) ||A C^-1|| over BLTs whose weights vary by step.
//!
//! 1. Variables: square roots of all weights that steps read (u) and write (v), so that no entry of C is
//!    negative. The decays of each start are kept: weights that grow or fall replace any others.
//! 2. C = T diag(d)^-1, where T has ones on its diagonal and d_t is the norm of the sum of T's columns of a
//!    pattern. So all patterns have norm 1, and the sensitivity is 1 without a constraint. Under min-sep, the
//!    patterns are those with participations `min_sep` apart.
//! 3. ||A C^-1||^2 and its derivatives: see `decoder::buffers`. O(n (d + s)^2) an evaluation.
//! 4. Starts: the BLT with as many buffers, which often needs fewer, and a quadrature of the square root with
//!    decays from one step to all steps. The loss is never above that of the BLT, with columns of norm 1 or
//!    without, which workloads without a short recursion keep.

use std::f64::consts::PI;

use antinoise_input::between;

use super::best::Best;
use super::class::{Design, loss_of};
use super::spec::StrategySpec;
use crate::decoder::{BufferErrors, BufferGradient, Buffers};
use crate::numeric::lbfgs;
use crate::numeric::softmax::{ROW_EXPONENTS, soft_maximum};
use crate::numeric::vector::dot;
use crate::problem::Objective;
use crate::solution::Solution;
use crate::strategy::varying_blt::{MAX_ORDER, MAX_STEPS, WEIGHTS};
use crate::strategy::{Blt, Class, VaryingBlt};
use crate::{Problem, Result};

/// The number of buffers if the spec requests none.
const DEFAULT_ORDER: usize = 4;
/// Maximum number of iterations of a solve.
const MAX_ITERATIONS: usize = 1000;
/// Relative decrease of the squared loss at which a solve stops.
const DECREASE: f64 = 1e-7;
/// Smallest square root of a weight at the start: the derivative vanishes at 0.
const LEAST_ROOT: f64 = 1e-3;

/// ln ||A C^-1||^2 as a function of the square roots of u and v.
struct Loss<'a> {
    decay: &'a [f64],
    /// Steps from one participation to the next in a pattern, or n for single participation.
    min_sep: usize,
    steps: usize,
    errors: &'a BufferErrors,
    objective: Objective,
    /// The exponent of the p-norm that replaces the maximum over rows.
    exponent: f64,
}

/// The squared norm of each pattern's sum of columns of T, and what its derivatives need.
struct PatternNorms<'a> {
    buffers: &'a Buffers,
    min_sep: usize,
    squared: Vec<f64>,
    /// For each step j, Q_j: the sum over t > j of lambda^(t-1-j) u_t u_t^T lambda^(t-1-j).
    read_later: Vec<Vec<f64>>,
    /// For each step j, what earlier participations of its pattern left in the buffers before j.
    left: Vec<Vec<f64>>,
}

impl<'a> PatternNorms<'a> {
    fn new(buffers: &'a Buffers, min_sep: usize) -> Self {
        let (order, steps) = (buffers.decay.len(), buffers.factors.len());
        let mut read_later = vec![vec![0.0; order * order]; steps];
        for j in (0..steps.saturating_sub(1)).rev() {
            let u = &buffers.reads[(j + 1) * order..][..order];
            let kept = decayed_twice(&buffers.decay, &read_later[j + 1]);
            read_later[j] =
                kept.into_iter().enumerate().map(|(at, q)| q + u[at / order] * u[at % order]).collect();
        }
        let fade = Fade::new(&buffers.decay, min_sep);
        let mut left: Vec<Vec<f64>> = Vec::with_capacity(steps);
        for j in 0..steps {
            left.push(match j.checked_sub(min_sep) {
                Some(before) => fade.after(&left[before], &buffers.writes[before * order..][..order]),
                None => vec![0.0; order],
            });
        }
        let mut squared = vec![0.0; min_sep.min(steps)];
        for j in 0..steps {
            let (u, v) = (&buffers.reads[j * order..][..order], &buffers.writes[j * order..][..order]);
            let q = times(&read_later[j], v);
            let both: Vec<f64> =
                left[j].iter().zip(&buffers.decay).map(|(s, lambda)| 2.0 * lambda * s).collect();
            squared[j % min_sep] += 1.0 + dot(v, &q) + 2.0 * dot(&left[j], u) + dot(&both, &q);
        }
        Self { buffers, min_sep, squared, read_later, left }
    }

    /// Returns the norm of the pattern of each step.
    fn factors(&self) -> Vec<f64> {
        (0..self.left.len()).map(|t| self.squared[t % self.min_sep].sqrt()).collect()
    }

    /// Adds the derivatives in u and v of the sum over patterns of weight times squared norm.
    fn add_gradient(&self, weights: &[f64], reads: &mut [f64], writes: &mut [f64]) {
        let Buffers { decay, reads: u, writes: v, .. } = self.buffers;
        let (order, steps) = (decay.len(), self.left.len());
        let fade = Fade::new(decay, self.min_sep);
        let mut d_left = vec![vec![0.0; order]; steps];
        let mut d_later = vec![0.0; order * order];
        for j in 0..steps {
            let weight = weights[j % self.min_sep];
            let at = j * order..(j + 1) * order;
            let (u, v) = (&u[at.clone()], &v[at.clone()]);
            // What was written before j, as step j reads it.
            let moved = times(&d_later, u);
            reads[at].iter_mut().zip(moved).for_each(|(to, x)| *to += 2.0 * x);
            d_later = decayed_twice(decay, &d_later);
            let faded: Vec<f64> = self.left[j].iter().zip(decay).map(|(s, lambda)| s * lambda).collect();
            let (q, r) = (times(&self.read_later[j], v), times(&self.read_later[j], &faded));
            for i in 0..order {
                writes[j * order + i] += 2.0 * weight * (q[i] + r[i]);
                reads[j * order + i] += 2.0 * weight * self.left[j][i];
                d_left[j][i] += 2.0 * weight * (u[i] + decay[i] * q[i]);
                for l in 0..order {
                    d_later[i * order + l] += weight * (v[i] * v[l] + faded[i] * v[l] + v[i] * faded[l]);
                }
            }
        }
        for j in (self.min_sep..steps).rev() {
            let before = j - self.min_sep;
            for i in 0..order {
                let d = d_left[j][i];
                d_left[before][i] += fade.kept[i] * d;
                writes[before * order + i] += fade.written[i] * d;
            }
        }
    }
}

/// What remains in the buffers after `min_sep` steps: lambda^b of what they held, and lambda^(b-1) of what
/// was written first.
struct Fade {
    kept: Vec<f64>,
    written: Vec<f64>,
}

impl Fade {
    fn new(decay: &[f64], min_sep: usize) -> Self {
        let power = |by: usize| decay.iter().map(|lambda| lambda.powf(by as f64)).collect();
        Self { kept: power(min_sep), written: power(min_sep - 1) }
    }

    fn after(&self, held: &[f64], written: &[f64]) -> Vec<f64> {
        let both = self.kept.iter().zip(held).zip(self.written.iter().zip(written));
        both.map(|((kept, m), (fade, v))| kept * m + fade * v).collect()
    }
}

/// Returns Lambda X Lambda.
fn decayed_twice(decay: &[f64], x: &[f64]) -> Vec<f64> {
    let order = decay.len();
    x.iter().enumerate().map(|(at, x)| decay[at / order] * decay[at % order] * x).collect()
}

/// Returns X y, for a square X.
fn times(x: &[f64], y: &[f64]) -> Vec<f64> {
    x.chunks_exact(y.len().max(1)).map(|row| dot(row, y)).collect()
}

impl Loss<'_> {
    fn buffers(&self, roots: &[f64]) -> Buffers {
        let squares: Vec<f64> = roots.iter().map(|x| x * x).collect();
        let (reads, writes) = squares.split_at(squares.len() / 2);
        let (reads, writes) = (reads.to_vec(), writes.to_vec());
        Buffers { decay: self.decay.to_vec(), reads, writes, factors: vec![1.0; self.steps] }
    }

    /// Returns C for these variables.
    fn strategy(&self, roots: &[f64]) -> Result<VaryingBlt> {
        let of = self.buffers(roots);
        let factors = PatternNorms::new(&of, self.min_sep).factors();
        strategy(&of, &factors)
    }

    fn value_and_gradient(&self, roots: &[f64]) -> (f64, Vec<f64>) {
        let mut buffers = self.buffers(roots);
        let norms = PatternNorms::new(&buffers, self.min_sep);
        let (factors, squared) = (norms.factors(), norms.squared.clone());
        buffers.factors = factors;
        let covariances = self.errors.covariances(&buffers);
        let rows = covariances.rows();
        let (error, weights) = match self.objective {
            Objective::Rms => (rows.iter().sum(), vec![1.0; rows.len()]),
            Objective::Max => soft_maximum(&rows, self.exponent),
        };
        if !f64::is_finite(error) {
            return (f64::INFINITY, vec![0.0; roots.len()]);
        }
        let BufferGradient { mut reads, mut writes, factors: d_factors } = covariances.gradient(&weights);
        let mut of_patterns = vec![0.0; squared.len()];
        for (t, d) in d_factors.iter().enumerate() {
            let pattern = t % self.min_sep;
            of_patterns[pattern] += d / (2.0 * squared[pattern].sqrt());
        }
        PatternNorms::new(&buffers, self.min_sep).add_gradient(&of_patterns, &mut reads, &mut writes);
        let slopes = reads.iter().chain(&writes).zip(roots).map(|(d, x)| 2.0 * x * d / error);
        (error.ln(), slopes.collect())
    }
}

/// Returns T diag(norms)^-1.
fn strategy(of: &Buffers, norms: &[f64]) -> Result<VaryingBlt> {
    let order = of.decay.len();
    let not_tiny = |w: f64| if w < *WEIGHTS.start() { 0.0 } else { w };
    VaryingBlt::new(
        norms.iter().map(|norm| norm.recip()).collect(),
        of.decay.iter().map(|lambda| 1.0 - lambda).collect(),
        of.reads.iter().copied().map(not_tiny).collect(),
        of.writes.iter().enumerate().map(|(at, v)| not_tiny(v / norms[at / order])).collect(),
    )
}

/// Returns a BLT as buffers with the same weights in all steps.
fn embedded(blt: &Blt, steps: usize) -> Buffers {
    let roots: Vec<f64> = blt.scale().iter().map(|alpha| alpha.max(0.0).sqrt()).collect();
    let weights: Vec<f64> = roots.iter().copied().cycle().take(roots.len() * steps).collect();
    Buffers { decay: blt.decay(), reads: weights.clone(), writes: weights, factors: vec![1.0; steps] }
}

/// Returns t^(-1/2) / sqrt(pi), the coefficients of the square root of prefix sums for large t, as buffers
/// with decays exp(-rate): the quadrature of its integral over rates, at equally spaced logarithms.
fn quadrature(order: usize, steps: usize) -> Buffers {
    let (slowest, fastest) = (1.0 / steps as f64, 1.0f64);
    let apart = (fastest / slowest).ln() / order as f64;
    let rates: Vec<f64> = (0..order).map(|i| slowest * (apart * (i as f64 + 0.5)).exp()).collect();
    let roots = rates.iter().map(|rate| (rate.sqrt() * apart / PI).sqrt());
    let weights: Vec<f64> = roots.cycle().take(order * steps).collect();
    let decay = rates.iter().map(|rate| (-rate).exp()).collect();
    Buffers { decay, reads: weights.clone(), writes: weights, factors: vec![1.0; steps] }
}

impl Design for VaryingBlt {
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>> {
        spec.refuse_bands()?;
        spec.refuse_form()?;
        let steps = problem.steps;
        between("steps", steps, 1, MAX_STEPS, "the maximum number of steps of this class")?;
        let order = spec.order.unwrap_or(DEFAULT_ORDER);
        between("order", order, 1, MAX_ORDER, "the maximum number of buffers")?;
        let of_blt = StrategySpec { order: Some(order), ..StrategySpec::new(Class::Blt) };
        let blt = embedded(&Blt::design(&of_blt, problem)?.value, steps);
        let plain = strategy(&blt, &blt.factors)?;
        let cost = |strategy: &Self| loss_of(strategy, problem);
        let mut best = Best::new(plain.clone(), cost(&plain)?);
        let columns = strategy(&blt, &PatternNorms::new(&blt, steps).factors())?;
        let cost_of_columns = cost(&columns)?;
        best.consider(columns, cost_of_columns);
        let Some(errors) = BufferErrors::new(&problem.workload, steps) else { return Ok(best.finished()) };
        let min_sep = problem.participation.separation(steps).min_sep.min(steps);
        let exponents =
            if problem.objective == Objective::Rms { &ROW_EXPONENTS[..1] } else { &ROW_EXPONENTS };
        let settings = lbfgs::Settings {
            max_iterations: MAX_ITERATIONS,
            decrease_tolerance: DECREASE,
            ..lbfgs::Settings::default()
        };
        for start in [blt, quadrature(order, steps)] {
            let weights = start.reads.iter().chain(&start.writes);
            let mut roots: Vec<f64> = weights.map(|w| w.sqrt().max(LEAST_ROOT)).collect();
            for &exponent in exponents {
                let (decay, objective) = (&start.decay[..], problem.objective);
                let loss = Loss { decay, min_sep, steps, errors: &errors, objective, exponent };
                let found = lbfgs::minimize(|x| loss.value_and_gradient(x), roots, &settings);
                roots = found.value.clone();
                let found = found.try_map(|roots| loss.strategy(&roots))?;
                let cost = cost(&found.value)?;
                best.offer(found, cost);
            }
        }
        Ok(best.finished())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Tolerance, assert_gradient};
    use crate::{Participation, Strategy};

    #[test]
    fn the_gradient_is_the_finite_difference_and_patterns_have_norm_1() {
        let (steps, decay) = (11, [0.9, 0.6]);
        let roots: Vec<f64> = (0..4 * steps).map(|at| 0.6 + 0.2 * (1.7 * at as f64).sin()).collect();
        for (min_sep, text, objective) in [
            (steps, "prefix", Objective::Rms),
            (4, "momentum:0.8", Objective::Rms),
            (3, "cooldown:4,0.1", Objective::Max),
        ] {
            let errors = BufferErrors::new(&text.parse().unwrap(), steps).unwrap();
            let loss = Loss { decay: &decay, min_sep, steps, errors: &errors, objective, exponent: 8.0 };
            let f = |x: &[f64]| loss.value_and_gradient(x).0;
            let (_, gradient) = loss.value_and_gradient(&roots);
            assert_gradient(text, f, &roots, &gradient, 1e-5, Tolerance::absolute(1e-7));
            let participation =
                Participation::Cyclic { min_sep, max_participations: steps.div_ceil(min_sep) };
            let found = loss.strategy(&roots).unwrap();
            let sensitivity = found.sensitivity(&participation).unwrap();
            assert!((sensitivity.value - 1.0).abs() < 1e-12, "{text}: {}", sensitivity.value);
            let value = found.error(&text.parse().unwrap()).unwrap().rms.powi(2) * steps as f64;
            assert!(objective == Objective::Max || (value.ln() - f(&roots)).abs() < 1e-12, "{text}");
        }
    }
}
