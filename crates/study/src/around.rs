//! Schedule, weight decay and zeroing, which the optimizers of all learning rates share.

use antinoise_train::optimizer::{OptimizerConfig, Schedule, UpdateRule};
use serde::{Deserialize, Serialize};

/// Settings of an optimizer besides its rule; the same at every learning rate.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Around {
    schedule: Schedule,
    weight_decay: f64,
    zero_beyond: Option<f64>,
}

impl Around {
    /// Whether none is set, so that an optimizer is its update rule alone.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The settings of this optimizer.
    pub fn of(optimizer: OptimizerConfig) -> Self {
        let OptimizerConfig { rule: _, schedule, weight_decay, zero_beyond } = optimizer;
        Self { schedule, weight_decay, zero_beyond }
    }

    /// The optimizer of a rule.
    pub fn optimizer(self, rule: UpdateRule) -> OptimizerConfig {
        let Self { schedule, weight_decay, zero_beyond } = self;
        OptimizerConfig { rule, schedule, weight_decay, zero_beyond }
    }
}
