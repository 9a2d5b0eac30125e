//! The mechanisms and schemas of the tests.

use antinoise_audit::AuditInputs;
use antinoise_mechanism::design::{Objective, StrategySpec};
use antinoise_mechanism::{AnyStrategy, Participation, Problem, Workload};

/// Single, full batch, cyclic and min-sep.
#[allow(dead_code)]
pub fn schemas(steps: usize) -> [Participation; 4] {
    let (min_sep, max_participations) = (steps / 3, 3);
    [
        Participation::Single,
        Participation::FullBatch,
        Participation::Cyclic { min_sep, max_participations },
        Participation::MinSep { min_sep, max_participations },
    ]
}

/// The spec's strategy for prefix sums.
pub fn design(spec: StrategySpec, steps: usize, participation: &Participation) -> AnyStrategy {
    let problem = Problem {
        steps,
        workload: Workload::Prefix,
        participation: participation.clone(),
        objective: Objective::Rms,
    };
    spec.design(&problem).expect("a valid problem has a strategy").value
}

/// The sum of clipped gradients, by its definition.
#[allow(dead_code)]
pub fn sum_by_definition(
    inputs: &AuditInputs,
    batch: &[usize],
    clip_norm: f64,
    single: bool,
    chunk: usize,
) -> Vec<f64> {
    let round = |x: f64| if single { f64::from(x as f32) } else { x };
    let mut total = vec![0.0; inputs.dim()];
    for chunk in batch.chunks(chunk) {
        let mut part = vec![0.0; total.len()];
        for &example in chunk {
            let gradient: Vec<f64> = inputs.gradient(example).into_iter().map(f64::from).collect();
            let norm = gradient.iter().map(|x| x * x).sum::<f64>().sqrt();
            let factor = (clip_norm * (1.0 - 1e-6) / norm).min(1.0);
            if norm.is_finite() {
                part.iter_mut().zip(&gradient).for_each(|(sum, x)| *sum = round(*sum + round(factor * x)));
            }
        }
        total.iter_mut().zip(&part).for_each(|(sum, x)| *sum = round(*sum + x));
    }
    total
}
