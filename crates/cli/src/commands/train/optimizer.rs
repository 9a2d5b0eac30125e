//! Options of the optimizer.

use std::str::FromStr;

use antinoise_input::InvalidParameter;
use antinoise_train::optimizer::{Decay, OptimizerConfig, Schedule, UpdateRule};
use clap::{Args, ValueEnum};

use crate::numbers::{count, real};

/// Options of the optimizer, which is given noisy gradients.
#[derive(Debug, Clone, Args)]
pub struct OptimizerOptions {
    /// Optimizer that is given the noisy gradients.
    #[arg(long = "optimizer", value_enum, default_value = "sgd", conflicts_with = "resume")]
    name: OptimizerName,
    /// Momentum of sgd and nesterov [default: 0.9].
    #[arg(long, value_name = "BETA", value_parser = real, conflicts_with = "resume")]
    momentum: Option<f64>,
    /// With ftrl: the maximum l2 distance of the parameters from their start.
    #[arg(long, value_name = "R", required_if_eq("name", "ftrl"), value_parser = real, conflicts_with = "resume")]
    radius: Option<f64>,
    /// How the learning rate falls: constant, linear[:LAST], cosine[:LAST], cooldown:SHARE[,LAST],
    /// drop:SHARE,LAST or steps:PARTS,FACTOR. LAST is the rate of the last step as a fraction of the full
    /// one, SHARE the fraction of steps in the cooldown or after the drop, FACTOR that from each of PARTS
    /// equal parts of the run to the next.
    #[arg(long, default_value = "constant", value_parser = Decay::from_str, conflicts_with = "resume")]
    schedule: Decay,
    /// Number of first steps over which the learning rate rises to the full one.
    #[arg(long, value_name = "N", default_value = "0", value_parser = count, conflicts_with = "resume")]
    warm_up: usize,
    /// Decoupled weight decay, as in AdamW: each step shrinks parameters by LAMBDA times the learning rate.
    #[arg(long, value_name = "LAMBDA", default_value = "0", value_parser = real, conflicts_with = "resume")]
    weight_decay: f64,
    /// Skip the update of a step whose noisy mean gradient has an entry larger than this in absolute value.
    /// This costs no privacy [default: no step is skipped].
    #[arg(long, value_name = "BOUND", value_parser = real)]
    pub zero_beyond: Option<f64>,
}

/// The optimisers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OptimizerName {
    /// Stochastic gradient descent with momentum.
    Sgd,
    /// Stochastic gradient descent with Nesterov's momentum.
    Nesterov,
    /// Follow the regularized leader: sgd without momentum, within --radius of the start.
    Ftrl,
    /// Adam; with --weight-decay it is AdamW.
    Adam,
}

impl OptimizerOptions {
    /// The optimizer, at learning rate 1.
    ///
    /// # Errors
    /// Refuses an option that the optimizer would ignore.
    pub fn config(&self) -> Result<OptimizerConfig, InvalidParameter> {
        let name = self.name.to_possible_value().expect("no name is left out");
        let rule = UpdateRule::named(name.get_name(), 1.0, self.momentum, self.radius)?;
        let schedule = Schedule { warm_up: self.warm_up, decay: self.schedule };
        Ok(OptimizerConfig { rule, schedule, weight_decay: self.weight_decay, zero_beyond: self.zero_beyond })
    }
}
