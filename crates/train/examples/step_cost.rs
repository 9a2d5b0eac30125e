//! The cost of privacy per step of training the CNN with batches of 500 images of 28x28: prints the time of a
//! step with clipping and the plan's noise, divided by the time of the same step without them, alternating
//! between both in one process. (`scripts/train/compare_opacus.py` compares this with Opacus.)
//!
//! ```text
//! cargo run --release -p antinoise-train --example step_cost
//! ```

use std::time::Instant;

use antinoise_noise::{Key, RunId};
use antinoise_plan::{Length, Request, Setting, choose};
use antinoise_train::clip::plain_sum;
use antinoise_train::data::{Dataset, Examples, ImageShape, numbered_classes};
use antinoise_train::model::Model;
use antinoise_train::optimizer::{Optimizer, UpdateRule};
use antinoise_train::trainer::{Setup, Trainer};

const BATCH: usize = 500;
const SHAPE: ImageShape = ImageShape { height: 28, width: 28, channels: 1 };

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The time of a step does not depend on the contents of the images.
    let examples = |count: usize| {
        let features = (0..count * SHAPE.len()).map(|i| (i * 7919 % 256) as f32 / 255.0).collect();
        Examples::new(features, (0..count as u32).map(|i| i % 10).collect(), SHAPE.len())
    };
    let (train, test) = (examples(10 * BATCH)?, examples(1)?);
    let dataset = Dataset {
        name: "synthetic".into(),
        shape: SHAPE,
        classes: 10,
        class_names: numbered_classes(10),
        train,
        users: None,
        test,
    };
    let model = Model::cnn(SHAPE, 10)?;
    let plan = choose(&Request::new(10 * BATCH, BATCH, Length::Epochs(4), Setting::Cyclic))?.plan;
    let rule = UpdateRule::Sgd { learning_rate: 1e-6, momentum: 0.9 };
    let start = vec![0.01; model.parameters()];
    let setup = Setup { plan: &plan, model: &model, dataset: &dataset, optimizer: rule.into(), groups: None };
    let mut trainer = Trainer::new(setup, RunId::default(), start.clone(), Key::from_os()?)?;

    let (mut parameters, mut optimizer) = (start, Optimizer::new(rule, model.parameters())?);
    let batch: Vec<usize> = (0..BATCH).collect();
    let (mut plain, mut private) = (Vec::new(), Vec::new());
    for _ in 0..plan.steps {
        let clock = Instant::now();
        let sum = plain_sum(&model, &parameters, &dataset.train, &batch)?.gradient;
        let mean: Vec<f32> = sum.iter().map(|x| (x / BATCH as f64) as f32).collect();
        optimizer.step(&mut parameters, &mean);
        plain.push(1e3 * clock.elapsed().as_secs_f64());

        let clock = Instant::now();
        trainer.step()?;
        private.push(1e3 * clock.elapsed().as_secs_f64());
    }
    let (name, arithmetic) = (plan.strategy.class().name(), plan.arithmetic.kind().name());
    println!("{} parameters, batch {BATCH}, {name} strategy, {arithmetic} arithmetic", model.parameters());
    println!("              median  quartiles     best");
    let (plain, private) = (print("plain", plain), print("private", private));
    println!("ratio         {:6.2}", private / plain);
    Ok(())
}

/// Prints times in ms; returns their median.
fn print(name: &str, mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    let at = |quarter: usize| times[(times.len() - 1) * quarter / 4];
    println!("{name:7} step  {:6.2}  {:5.2} {:6.2} {:8.2} ms", at(2), at(1), at(3), at(0));
    at(2)
}
