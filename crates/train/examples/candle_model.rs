//! A model of your own under a plan: a transformer with one block that says which of two tokens occurs in a
//! row.
//!
//! ```text
//! cargo run --release -p antinoise-train --features candle --example candle_model
//! ```
//!
//! An example is a row of 8 tokens out of 16, one of them token 0 or token 1, which is its class. The model
//! is written in candle's operations on one row; the trainer handles gradients, clipping, noise and
//! checkpoints.

use std::sync::atomic::AtomicBool;

use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use antinoise_plan::{Length, Request, Setting, choose};
use antinoise_train::candle::{CandleModel, ExampleModel};
use antinoise_train::data::{Dataset, Example, Examples, ImageShape, numbered_classes};
use antinoise_train::optimizer::{Decay, OptimizerConfig, Schedule, UpdateRule};
use antinoise_train::private_model::PrivateModel;
use antinoise_train::trainer::{Options, Setup, Trainer};
use candle_core::{D, Device, Result, Tensor};
use rand_core::Rng;

const TOKENS: usize = 16;
const LENGTH: usize = 8;
const WIDTH: usize = 8;

struct Transformer;

impl ExampleModel for Transformer {
    fn identity(&self) -> String {
        format!("one block, {TOKENS} tokens, length {LENGTH}, width {WIDTH}, 2 classes")
    }

    /// Embeddings of tokens and positions, queries, keys, values, two more layers, and the classes.
    fn shapes(&self) -> Vec<Vec<usize>> {
        let square = || vec![WIDTH, WIDTH];
        vec![vec![TOKENS, WIDTH], vec![LENGTH, WIDTH], square(), square(), square(), square(), vec![WIDTH, 2]]
    }

    fn outputs(&self, parameters: &[Tensor], example: Example) -> Result<Tensor> {
        let [tokens, places, q, k, v, inner, classes] = parameters else { unreachable!("seven shapes") };
        let row: Vec<u32> = example.features.iter().map(|&token| token as u32).collect();
        let row = Tensor::from_vec(row, LENGTH, tokens.device())?;
        let x = (tokens.index_select(&row, 0)? + places)?;
        let scores = (x.matmul(q)?.matmul(&x.matmul(k)?.t()?)? / (WIDTH as f64).sqrt())?;
        let attention = scores.broadcast_sub(&scores.detach().max_keepdim(D::Minus1)?)?.exp()?;
        let attention = attention.broadcast_div(&attention.sum_keepdim(D::Minus1)?)?;
        let x = (&x + attention.matmul(&x.matmul(v)?)?)?;
        let x = (&x + x.matmul(inner)?.tanh()?)?;
        x.mean(0)?.unsqueeze(0)?.matmul(classes)
    }
}

/// Rows of tokens, each with its class: which of the tokens 0 and 1 it contains.
fn examples(count: usize, rng: &mut impl Rng) -> Examples {
    let mut below = |most: usize| rng.next_u32() as usize % most;
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let mut row: Vec<usize> = (0..LENGTH).map(|_| 2 + below(TOKENS - 2)).collect();
        let class = below(2);
        row[below(LENGTH)] = class;
        features.extend(row.into_iter().map(|token| token as f32));
        labels.push(class as u32);
    }
    Examples::new(features, labels, LENGTH).expect("a row a label")
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut rng = KeyedRng::new(&Key::from_seed_insecure(1), &RunId::new("rows")?, Purpose::DataOrder, 0);
    let (train, test) = (examples(3000, &mut rng), examples(500, &mut rng));
    let dataset = Dataset {
        name: "which token".into(),
        shape: ImageShape::row(LENGTH),
        classes: 2,
        class_names: numbered_classes(2),
        train,
        users: None,
        test,
    };
    // The CPU, unless there is a GPU and the feature `cuda`.
    let model = CandleModel::new("transformer", Transformer)?.on(Device::cuda_if_available(0)?)?;

    let optimizer = OptimizerConfig {
        schedule: Schedule { warm_up: 5, decay: Decay::Cosine { last: 0.1 } },
        ..UpdateRule::Adam { learning_rate: 0.03, beta1: 0.9, beta2: 0.99, epsilon: 1e-8 }.into()
    };
    let mut request = Request::new(dataset.train.len(), 250, Length::Epochs(5), Setting::Cyclic);
    (request.epsilon, request.delta, request.dim) = (8.0, 1e-5, model.parameters());
    request.workload = optimizer.workload(request.schedule()?.steps);
    let plan = choose(&request)?.plan;

    let unit = |rng: &mut KeyedRng| rng.next_u32() as f32 / u32::MAX as f32 - 0.5;
    let start = (0..model.parameters()).map(|_| unit(&mut rng)).collect();
    let setup = Setup { plan: &plan, model: &model, dataset: &dataset, optimizer, groups: None };
    let mut trainer = Trainer::new(setup, RunId::default(), start, Key::from_os()?)?;
    let options = Options { test_every: 20, checkpoints: None };
    trainer.run(&options, &AtomicBool::new(false), |_| ())?;
    println!("{} parameters, epsilon {:.2}", model.parameters(), plan.privacy.epsilon);
    for (step, accuracy) in &trainer.history().accuracies {
        println!("after {step:3} steps {:.1}% of the test rows", 100.0 * accuracy);
    }
    println!(
        "{:.1} s, of which {:.2} s in noise",
        trainer.history().seconds,
        trainer.history().seconds_in_noise
    );
    Ok(())
}
