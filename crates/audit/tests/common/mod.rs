//! The mechanisms and schemas of the tests.

use antinoise_audit::Data;
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

/// The sum of clipped gradients of a linear model of two classes, by its definition.
#[allow(dead_code)]
pub fn linear_sum(data: &Data, batch: &[usize], clip_norm: f64, single: bool, chunk: usize) -> Vec<f64> {
    let count = data.parameters().len() / 2 - 1;
    let round = |x: f64| if single { f64::from(x as f32) } else { x };
    let mut total = vec![0.0; data.parameters().len()];
    for chunk in batch.chunks(chunk) {
        let mut part = vec![0.0; total.len()];
        for &example in chunk {
            let gradient = linear_gradient(data, example, count);
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

/// (p - e_y) (x) (features, 1).
fn linear_gradient(data: &Data, example: usize, count: usize) -> Vec<f64> {
    let x = data.examples().features(example);
    let (weights, biases) = data.parameters().split_at(2 * count);
    let logit = |class: usize| -> f64 {
        let row = &weights[class * count..][..count];
        row.iter().zip(x).map(|(w, x)| f64::from(*w) * f64::from(*x)).sum::<f64>() + f64::from(biases[class])
    };
    let share = 1.0 / (1.0 + (logit(1) - logit(0)).exp());
    let slope = share - f64::from(u8::from(data.examples().labels()[example] == 0));
    let row = |sign: f64| x.iter().map(move |&x| sign * slope * f64::from(x));
    row(1.0).chain(row(-1.0)).chain([slope, -slope]).collect()
}
