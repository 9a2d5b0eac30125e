//! What privacy costs a step of training on the CNN at batch 500 of 28x28: prints the time of a step with
//! clipping and correlated noise over that of the same step without either, the best of several rounds, all
//! measured in this run.
//!
//! ```text
//! cargo run --release -p antinoise-train --example step_cost
//! ```

use std::time::Instant;

use antinoise_noise::Key;
use antinoise_plan::{Length, Request, Setting, choose};
use antinoise_train::clip::plain_sum;
use antinoise_train::data::{Dataset, Examples, ImageShape};
use antinoise_train::model::Model;
use antinoise_train::optimizer::{Optimizer, Rule};
use antinoise_train::trainer::{Setup, Trainer};

const BATCH: usize = 500;
const SHAPE: ImageShape = ImageShape { height: 28, width: 28, channels: 1 };

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The time of a step does not depend on what the images show.
    let examples = |count: usize| {
        let features = (0..count * SHAPE.len()).map(|i| (i * 7919 % 256) as f32 / 255.0).collect();
        Examples::new(features, (0..count as u32).map(|i| i % 10).collect(), SHAPE.len())
    };
    let (train, test) = (examples(10 * BATCH)?, examples(1)?);
    let dataset = Dataset { name: "synthetic".into(), shape: SHAPE, classes: 10, train, test };
    let model = Model::cnn(SHAPE, 10)?;
    let plan = choose(&Request::new(10 * BATCH, BATCH, Length::Epochs(4), Setting::Cyclic))?.plan;
    let rule = Rule::Sgd { learning_rate: 1e-6, momentum: 0.9 };
    let start = vec![0.01; model.parameters()];
    let setup = Setup { plan: &plan, model: &model, dataset: &dataset, rule };
    let mut trainer = Trainer::new(setup, start.clone(), Key::from_os()?)?;

    let (mut parameters, mut optimizer) = (start, Optimizer::new(rule, model.parameters())?);
    let batch: Vec<usize> = (0..BATCH).collect();
    let (mut plain, mut private) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..plan.steps {
        let clock = Instant::now();
        let mut sum = plain_sum(&model, &parameters, &dataset.train, &batch)?.gradient;
        sum.iter_mut().for_each(|x| *x /= BATCH as f32);
        optimizer.step(&mut parameters, &sum);
        plain = plain.min(clock.elapsed().as_secs_f64());

        let clock = Instant::now();
        trainer.step()?;
        private = private.min(clock.elapsed().as_secs_f64());
    }
    println!("{} parameters, batch {BATCH}, {} strategy", model.parameters(), plan.strategy.class().name());
    println!("plain step    {:7.2} ms", 1e3 * plain);
    println!("private step  {:7.2} ms", 1e3 * private);
    println!("ratio         {:7.2}", private / plain);
    Ok(())
}
