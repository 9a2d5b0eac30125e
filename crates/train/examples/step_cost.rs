//! What privacy costs a step of training on the CNN at batch 500 of 28x28: prints the time of a step with
//! clipping over that of the same step without, best of several, both measured in this run.
//!
//! ```text
//! cargo run --release -p antinoise-train --example step_cost
//! ```

use std::time::Instant;

use antinoise_train::data::{Examples, ImageShape};
use antinoise_train::optimizer::{Optimizer, Rule};
use antinoise_train::{Error, clip, model::Model};
use chacha20::{ChaCha8Rng, rand_core::SeedableRng};

const BATCH: usize = 500;
const ROUNDS: usize = 20;

fn main() -> Result<(), Error> {
    let shape = ImageShape { height: 28, width: 28, channels: 1 };
    let model = Model::cnn(shape, 10)?;
    // The time of a step does not depend on what the images show.
    let features = (0..BATCH * shape.len()).map(|i| (i * 7919 % 256) as f32 / 255.0).collect();
    let labels = (0..BATCH as u32).map(|i| i % 10).collect();
    let examples = Examples::new(features, labels, shape.len())?;
    let batch: Vec<usize> = (0..BATCH).collect();
    let mut parameters = model.initial_parameters(&mut ChaCha8Rng::seed_from_u64(0));
    let mut optimizer = Optimizer::new(Rule::Sgd { learning_rate: 1e-6, momentum: 0.9 }, model.parameters())?;

    let (mut plain, mut private) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let sum = clip::plain_sum(&model, &parameters, &examples, &batch)?;
        optimizer.step(&mut parameters, &sum.gradient);
        plain = plain.min(start.elapsed().as_secs_f64());

        let start = Instant::now();
        let sum = clip::clipped_sum(&model, &parameters, &examples, &batch, 1.0)?;
        optimizer.step(&mut parameters, &sum.gradient);
        private = private.min(start.elapsed().as_secs_f64());
    }
    println!("plain step    {:7.2} ms", 1e3 * plain);
    println!("private step  {:7.2} ms", 1e3 * private);
    println!("ratio         {:7.2}", private / plain);
    Ok(())
}
