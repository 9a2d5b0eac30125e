//! Tests that noisy sums are sums plus noise, and that parameters are a function of noisy sums.

use antinoise_input::largest;
use antinoise_train::optimizer::UpdateRule;

use super::contract::StepRecord;
use super::inputs::TrainingInputs;
use crate::Error;
use crate::report::Test;

/// Relative rounding error of single precision.
const ROUNDING: f64 = 1.0 / (1u64 << 22) as f64;
/// Relative rounding error over a run's steps of an optimizer.
const ROUNDING_OF_STEPS: f64 = 1e-5;

/// Tests the largest distance between a noisy sum minus its noise and the clipped sum of its batch, in units
/// of the possible rounding error. The noise is the noisy sum of the same step with all gradients replaced by
/// 0.
pub(super) fn noisy_sums(
    inputs: &TrainingInputs,
    records: &[StepRecord],
    noise: &[StepRecord],
) -> Result<Test, Error> {
    let spacing = inputs.plan.arithmetic.grid()?.map_or(0.0, |grid| grid.spacing());
    let mut parameters = vec![0.0; inputs.parameters()];
    let mut farthest = Vec::new();
    for (step, noise) in records.iter().zip(noise) {
        let sum = inputs.sum(&parameters, &step.batch)?;
        let far = |((&r, &z), &g): ((&f32, &f32), &f64)| {
            let (r, z) = (f64::from(r), f64::from(z));
            (r - z - g).abs() / (spacing + ROUNDING * (r.abs() + z.abs() + g.abs()))
        };
        farthest.push(largest(step.noisy_sum.iter().zip(&noise.noisy_sum).zip(&sum).map(far)));
        parameters.clone_from(&step.parameters);
    }
    Ok(Test::new("training: noisy sum minus noise, distance from the clipped sum", largest(farthest), 1.0))
}

/// Tests the largest distance between the parameters and those of SGD with momentum on the noisy sums, in
/// units of the possible rounding error.
pub(super) fn optimized(inputs: &TrainingInputs, records: &[StepRecord]) -> Test {
    let UpdateRule::Sgd { learning_rate, momentum } = inputs.rule() else {
        unreachable!("the ground's rule")
    };
    let share = 1.0 / inputs.plan.expected_batch_size();
    let dim = inputs.parameters();
    let (mut velocity, mut before, mut scale) = (vec![0.0; dim], vec![0.0; dim], 0f64);
    let mut farthest = Vec::new();
    for step in records {
        let mut distance = Vec::with_capacity(dim);
        for (i, (&noisy, &parameter)) in step.noisy_sum.iter().zip(&step.parameters).enumerate() {
            let after = f64::from(parameter);
            velocity[i] = momentum * velocity[i] + share * f64::from(noisy);
            let moved = learning_rate * velocity[i];
            scale = scale.max(after.abs()).max(moved.abs());
            distance.push((before[i] - moved - after).abs());
            before[i] = after;
        }
        farthest.push(largest(distance) / (ROUNDING_OF_STEPS * scale));
    }
    Test::new(
        "training: parameters, distance from the optimizer's steps along the noisy sums",
        largest(farthest),
        1.0,
    )
}
