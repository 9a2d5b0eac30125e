//! Audits of training: its batches, the inputs of its optimizer, and its resumption.

mod batches;
mod builtin;
mod contract;
mod inputs;
mod steps;

use std::ops::Range;

use antinoise_plan::VerifiedPlan;
pub use builtin::BuiltinTraining;
pub use contract::{StepRecord, Training};
pub use inputs::TrainingInputs;

use crate::Error;
use crate::random::Random;
use crate::report::Test;

/// Number of random [`tests`].
pub(crate) const TESTS_BY_CHANCE: usize = batches::TESTS_BY_CHANCE;

/// Maximum numbers of examples in all batches of a training together, and of its steps, which take about a
/// second.
const MOST_EXAMPLES: f64 = (1 << 24) as f64;
const MOST_STEPS: usize = 1 << 12;
/// Number of interruptions of the tested training.
const INTERRUPTIONS: usize = 3;

/// The steps of `plan` that are trained: all steps, or the first steps of a long plan.
fn steps_of(plan: &VerifiedPlan) -> Range<usize> {
    let most = (MOST_EXAMPLES / plan.expected_batch_size()) as usize;
    0..plan.steps.min(most.clamp(1, MOST_STEPS))
}

/// All tests; random ones have false-alarm probability `alpha` each.
pub(crate) fn tests(training: &mut dyn Training, alpha: f64, seed: u64) -> Result<Vec<Test>, Error> {
    let steps = steps_of(&training.inputs().plan);
    let mut random = Random(seed);
    let interrupted: Vec<usize> = (0..INTERRUPTIONS).map(|_| random.midway(steps.end)).collect();
    let mut train = |run, noise_only, interrupted: &[usize]| -> Result<Vec<StepRecord>, Error> {
        training.begin(run, noise_only)?;
        let step = |t: usize| {
            if interrupted.contains(&t) {
                training.interrupt()?;
            }
            training.step()
        };
        steps.clone().map(step).collect()
    };
    let records = train(0, false, &interrupted)?;
    let uninterrupted = train(0, false, &[])?;
    let noise = train(0, true, &[])?;
    let other = train(1, true, &[])?;
    let inputs = training.inputs();
    let differ = records.iter().zip(&uninterrupted).filter(|(x, y)| x != y).count();
    let mut tests = batches::tests(&inputs.plan, [&records, &other], alpha);
    tests.push(Test::new("training: steps that interruptions change", differ as f64, 0.0));
    tests.push(steps::noisy_sums(inputs, &records, &noise)?);
    tests.push(steps::optimized(inputs, &records));
    Ok(tests)
}
