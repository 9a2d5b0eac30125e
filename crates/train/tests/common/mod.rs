//! A training problem: the digits, with a plan of 24 steps.

#![allow(dead_code, reason = "each test file uses its part")]

#[cfg(feature = "candle")]
pub mod mlp;

use antinoise_noise::{Key, RunId};
use antinoise_plan::{ArithmeticKind, Length, Request, Setting, VerifiedPlan, choose};
use antinoise_train::data::{Dataset, digits};
use antinoise_train::model::Model;
use antinoise_train::optimizer::{OptimizerConfig, UpdateRule};
use antinoise_train::trainer::{Setup, Trainer};
use chacha20::{ChaCha8Rng, rand_core::Rng, rand_core::SeedableRng};

pub const SGD: UpdateRule = UpdateRule::Sgd { learning_rate: 0.5, momentum: 0.9 };
pub const PLAIN_SGD: UpdateRule = UpdateRule::Sgd { learning_rate: 0.5, momentum: 0.0 };
pub const ADAM: UpdateRule =
    UpdateRule::Adam { learning_rate: 0.01, beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };
pub const KEY: u64 = 5;

/// Every kind of single-precision number; the first three are not finite.
pub const HOSTILE: [f32; 14] = [
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::MAX,
    -3e38,
    1e30,
    -1e19,
    1.0,
    -0.5,
    1e-19,
    -1e-38,
    1e-45,
    0.0,
    1.0 + f32::EPSILON,
];

/// A plan of 24 steps on the digits, or of one pass over them as a stream, on a grid.
pub fn plan(setting: Setting, epsilon: f64, clip_norm: f64) -> VerifiedPlan {
    planned(setting, epsilon, clip_norm, ArithmeticKind::Grid)
}

/// The same plan in another arithmetic.
pub fn planned(setting: Setting, epsilon: f64, clip_norm: f64, arithmetic: ArithmeticKind) -> VerifiedPlan {
    let length = match setting {
        Setting::Poisson => Length::Steps(24),
        Setting::Stream => Length::Epochs(1),
        _ => Length::Epochs(2),
    };
    let mut request = Request::new(1440, 120, length, setting);
    (request.epsilon, request.delta, request.clip_norm) = (epsilon, 1e-5, clip_norm);
    request.arithmetic = arithmetic;
    choose(&request).unwrap().plan
}

pub struct Case {
    pub plan: VerifiedPlan,
    pub model: Model,
    pub dataset: Dataset,
    pub optimizer: OptimizerConfig,
}

impl Case {
    pub fn new(plan: VerifiedPlan, optimizer: impl Into<OptimizerConfig>) -> Self {
        let dataset = digits();
        let model = Model::cnn(dataset.shape, dataset.classes).unwrap();
        Self { plan, model, dataset, optimizer: optimizer.into() }
    }

    /// A problem with a model of one layer, whose steps take almost no time.
    pub fn small(plan: VerifiedPlan, optimizer: impl Into<OptimizerConfig>) -> Self {
        let dataset = digits();
        let model = Model::logistic(dataset.shape, dataset.classes).unwrap();
        Self { plan, model, dataset, optimizer: optimizer.into() }
    }

    pub fn setup(&self) -> Setup<'_> {
        Setup {
            plan: &self.plan,
            model: &self.model,
            dataset: &self.dataset,
            optimizer: self.optimizer,
            groups: None,
        }
    }

    pub fn start(&self) -> Vec<f32> {
        self.model.initial_parameters(&mut ChaCha8Rng::seed_from_u64(11))
    }

    pub fn trainer(&self) -> Trainer<'_> {
        self.trainer_with(KEY)
    }

    /// A run whose key is made from `seed`.
    pub fn trainer_with(&self, seed: u64) -> Trainer<'_> {
        Trainer::new(self.setup(), RunId::default(), self.start(), Key::from_seed_insecure(seed)).unwrap()
    }
}

/// Pseudo-random numbers.
pub struct Random(pub ChaCha8Rng);

impl Random {
    /// In [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        (self.unit() * count as f64) as usize
    }
}
