//! Tests of dense designs for momentum with schedules of learning rates: certified, in few iterations, and
//! at least as good as those of every other class.

use std::f64::consts::PI;

use rayon::prelude::*;

use super::certified::cost;
use super::settings::DenseSettings;
use super::solve::minimize;
use crate::design::StrategySpec;
use crate::problem::{Objective, Problem};
use crate::{Adjacency, Workload};

/// Learning rates as optimizers have them: constant, falling to 5% over the last quarter, rising and falling
/// linearly, a half cosine, and falling by three orders of magnitude.
const SCHEDULES: [fn(f64) -> f64; 5] = [
    |_| 1.0,
    |at| f64::min(1.0, 0.05 + 3.8 * (1.0 - at)),
    |at| f64::min(10.0 * at + 0.01, 1.01 - at),
    |at| 0.505 + 0.495 * (PI * at).cos(),
    |at| 1e-3f64.powf(at),
];
/// Maximum number of iterations where patterns have at most eight steps: L-BFGS alone needs hundreds.
const MAX_ITERATIONS: usize = 40;
const SHORT_PATTERN: usize = 8;

fn problem(steps: usize, momentum: f64, schedule: usize, separation: usize) -> Problem {
    let rate = |t: usize| SCHEDULES[schedule](t as f64 / (steps - 1) as f64);
    let participation = match separation {
        0 => "single".to_owned(),
        b => format!("cyclic:{b},{}", steps.div_ceil(b)),
    };
    Problem {
        steps,
        workload: Workload::Schedule { rates: (0..steps).map(rate).collect(), momentum },
        participation: participation.parse().unwrap(),
        objective: Objective::Rms,
    }
}

/// Designs the dense strategy, checks its certificate and returns its RMS loss.
fn certified(problem: &Problem, case: &str) -> f64 {
    let found = minimize(problem, &DenseSettings::of(problem)).unwrap_or_else(|e| panic!("{case}: {e}"));
    let gap = found.gap.unwrap_or(f64::INFINITY);
    assert!(gap <= 1e-5, "{case}: gap {gap}");
    let few = problem.participation.separation(problem.steps).max_participations <= SHORT_PATTERN;
    assert!(!few || found.iterations <= MAX_ITERATIONS, "{case}: {} iterations", found.iterations);
    let gram = antinoise_linear::product(found.value.transpose(), &found.value);
    (cost(gram, problem).unwrap().1 / problem.steps as f64).sqrt()
}

#[test]
fn momentum_with_a_schedule_is_certified_and_no_class_is_better() {
    let mut cases = Vec::new();
    for steps in [6, 12, 33, 64] {
        for separation in [0, 2, 3, steps / 3, steps / 2] {
            for momentum in [0.0, 0.5, 0.9, 0.95, 0.99] {
                cases.extend((0..SCHEDULES.len()).map(|schedule| (steps, separation, momentum, schedule)));
            }
        }
    }
    assert_eq!(cases.len(), 500);
    cases.par_iter().for_each(|&(steps, separation, momentum, schedule)| {
        let problem = problem(steps, momentum, schedule, separation);
        let case = format!("{steps} steps, {}, {momentum}, schedule {schedule}", problem.participation);
        let dense = certified(&problem, &case);
        for spec in ["identity", "workload", "banded-toeplitz:2", "banded:2", "blt:2", "toeplitz"] {
            if spec == "toeplitz" && steps > 12 {
                continue; // takes seconds
            }
            let found = spec.parse::<StrategySpec>().unwrap().design(&problem).unwrap().value;
            let loss = found.loss(&problem.workload, &problem.participation, Adjacency::ZeroOut).unwrap();
            // Gaps are relative to squared losses.
            let other = loss.rms_loss * (1.0 + 0.5e-5);
            assert!(dense <= other, "{case}: {dense}, {spec} {other}");
        }
    });
}

/// Momentum and a cooldown with six epochs, at an eighth of the multi-epoch paper's steps; and one epoch.
#[test]
fn momentum_with_a_cooldown_is_certified_at_hundreds_of_steps() {
    for (steps, separation) in [(128, 0), (256, 0), (126, 21), (258, 43)] {
        certified(&problem(steps, 0.95, 1, separation), &format!("{steps} steps"));
    }
}
