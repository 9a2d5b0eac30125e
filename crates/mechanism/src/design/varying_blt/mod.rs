//! Minimise sens(C, Pi) ||A C^-1|| over BLTs whose weights vary by step.
//!
//! 1. Variables: square roots of all weights that steps read (u) and write (v), so that no entry of C is
//!    negative. The decays of each start are kept: weights that grow or fall replace any others.
//! 2. C = T diag(d)^-1, where T has ones on its diagonal and d_t is the norm of the sum of T's columns of a
//!    pattern. So all patterns have norm 1, and the sensitivity is 1 without a constraint. Under min-sep and
//!    for listed patterns, the patterns are those of a cyclic schema with the same separation, and the loss
//!    is reported for those of the schema.
//! 3. ||A C^-1||^2 and its derivatives: see `decoder::buffers`. O(n (d + s)^2) an evaluation.
//! 4. Starts: the BLT with as many buffers, which often needs fewer, and a quadrature of the square root with
//!    decays from one step to all steps. The loss is never above that of the BLT, with columns of norm 1 or
//!    without, which workloads without a short recursion keep.

mod pattern_norms;

use std::f64::consts::PI;

use antinoise_input::between;

use self::pattern_norms::{DisjointPatterns, PatternNorms};
use super::best::Best;
use super::class::{Design, loss_of};
use super::spec::StrategySpec;
use crate::decoder::{BufferErrors, BufferGradient, Buffers};
use crate::numeric::lbfgs;
use crate::numeric::softmax::{ROW_EXPONENTS, soft_maximum};
use crate::problem::Objective;
use crate::solution::Solution;
use crate::strategy::varying_blt::{MAX_ORDER, MAX_STEPS, WEIGHTS};
use crate::strategy::{Blt, Class, VaryingBlt};
use crate::{Problem, Result, Separation, Workload};

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
    patterns: DisjointPatterns,
    steps: usize,
    errors: &'a BufferErrors,
    objective: Objective,
    /// The exponent of the p-norm that replaces the maximum over rows.
    exponent: f64,
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
        strategy(&of, &PatternNorms::new(self.patterns, &of).of_steps(self.steps))
    }

    fn value_and_gradient(&self, roots: &[f64]) -> (f64, Vec<f64>) {
        let mut buffers = self.buffers(roots);
        let norms = PatternNorms::new(self.patterns, &buffers);
        buffers.factors = norms.of_steps(self.steps);
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
        norms.add_gradient(&buffers, &d_factors, (&mut reads, &mut writes));
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

/// Offers the results of the searches from `starts`. For the max loss, larger exponents follow, from the best
/// of them.
fn search(
    starts: &[Buffers],
    errors: &BufferErrors,
    problem: &Problem,
    best: &mut Best<VaryingBlt>,
) -> Result<()> {
    let mut descend = |exponent, from: &Roots| descent(exponent, from, errors, problem, best);
    let mut found = Vec::with_capacity(starts.len());
    for start in starts {
        let weights = start.reads.iter().chain(&start.writes);
        let roots = weights.map(|w| w.sqrt().max(LEAST_ROOT)).collect();
        found.push(descend(ROW_EXPONENTS[0], &Roots { decay: start.decay.clone(), roots })?);
    }
    let Some((_, mut least)) = found.into_iter().min_by(|(x, _), (y, _)| x.total_cmp(y)) else {
        return Ok(());
    };
    let others = if problem.objective == Objective::Rms { &[] } else { &ROW_EXPONENTS[1..] };
    for &exponent in others {
        (_, least) = descend(exponent, &least)?;
    }
    Ok(())
}

/// Square roots of weights, and the decays of their buffers.
struct Roots {
    decay: Vec<f64>,
    roots: Vec<f64>,
}

/// Minimises the loss with this exponent, offers the result, and returns it with its loss.
fn descent(
    exponent: f64,
    from: &Roots,
    errors: &BufferErrors,
    problem: &Problem,
    best: &mut Best<VaryingBlt>,
) -> Result<(f64, Roots)> {
    let (steps, objective) = (problem.steps, problem.objective);
    let patterns = DisjointPatterns::new(problem.participation.separation(steps));
    let settings = lbfgs::Settings {
        max_iterations: MAX_ITERATIONS,
        decrease_tolerance: DECREASE,
        ..lbfgs::Settings::default()
    };
    let loss = Loss { decay: &from.decay, patterns, steps, errors, objective, exponent };
    let found = lbfgs::minimize(|x| loss.value_and_gradient(x), from.roots.clone(), &settings);
    let roots = found.value.clone();
    let found = found.try_map(|roots| loss.strategy(&roots))?;
    let cost = loss_of(&found.value, problem)?;
    best.offer(found, cost);
    Ok((cost, Roots { decay: from.decay.clone(), roots }))
}

impl VaryingBlt {
    /// Whether the design optimises the weights: the workload has a short recursion. For others the design is
    /// the BLT of least loss.
    ///
    /// ```
    /// use antinoise_mechanism::{Workload, strategy::VaryingBlt};
    /// assert!(VaryingBlt::is_optimised_for(&Workload::Prefix, 64)?);
    /// assert!(!VaryingBlt::is_optimised_for(&"window:30".parse()?, 64)?);
    /// # Ok::<(), antinoise_mechanism::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the workload has another number of steps.
    pub fn is_optimised_for(workload: &Workload, steps: usize) -> Result<bool> {
        Ok(BufferErrors::new(workload, steps)?.is_some())
    }
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
        let cost = loss_of(&plain, problem)?;
        let mut best = Best::new(plain, cost);
        let each_step = DisjointPatterns::new(Separation { min_sep: steps, max_participations: 1 });
        let columns = strategy(&blt, &PatternNorms::new(each_step, &blt).of_steps(steps))?;
        let cost = loss_of(&columns, problem)?;
        best.consider(columns, cost);
        if let Some(errors) = BufferErrors::new(&problem.workload, steps)? {
            search(&[blt, quadrature(order, steps)], &errors, problem, &mut best)?;
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
        for (min_sep, max_participations, text, objective) in [
            (steps, 1, "prefix", Objective::Rms),
            (2, 1, "prefix", Objective::Rms),
            (4, 3, "momentum:0.8", Objective::Rms),
            (3, 4, "cooldown:4,0.1", Objective::Max),
            (2, 3, "prefix", Objective::Rms),
        ] {
            let errors = BufferErrors::new(&text.parse().unwrap(), steps).unwrap().unwrap();
            let separation = Separation { min_sep, max_participations };
            let patterns = DisjointPatterns::new(separation);
            let loss = Loss { decay: &decay, patterns, steps, errors: &errors, objective, exponent: 8.0 };
            let f = |x: &[f64]| loss.value_and_gradient(x).0;
            let (_, gradient) = loss.value_and_gradient(&roots);
            assert_gradient(text, f, &roots, &gradient, 1e-5, Tolerance::absolute(1e-7));
            let phases = (0..min_sep).map(|phase| (phase..steps).step_by(min_sep).collect::<Vec<_>>());
            let patterns = phases
                .flat_map(|phase| phase.chunks(max_participations).map(<[usize]>::to_vec).collect::<Vec<_>>())
                .collect();
            let participation = Participation::Patterns { patterns };
            let found = loss.strategy(&roots).unwrap();
            let sensitivity = found.sensitivity(&participation).unwrap();
            assert!((sensitivity.value - 1.0).abs() < 1e-12, "{text}: {}", sensitivity.value);
            let value = found.error(&text.parse().unwrap()).unwrap().rms.powi(2) * steps as f64;
            assert!(objective == Objective::Max || (value.ln() - f(&roots)).abs() < 1e-12, "{text}");
        }
    }
}
