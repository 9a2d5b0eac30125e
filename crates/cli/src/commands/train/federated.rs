//! Federated rounds: `--setting federated` and the local training of persons.

use antinoise_study::Local;
use clap::Args;

use crate::numbers::{count, real};

/// Federated rounds.
#[derive(Debug, Clone, Args)]
pub struct FederatedOptions {
    /// With --setting federated: rounds from one participation of a person to the next, at least.
    #[arg(long, value_name = "ROUNDS", value_parser = count)]
    pub min_sep: Option<usize>,
    /// With --setting federated: rounds that a person takes part in, at most [default: as many as --min-sep
    /// allows].
    #[arg(long, value_name = "K", value_parser = count)]
    pub max_participations: Option<usize>,
    /// In federated rounds: the learning rate of a person's own training, from the server's model on the
    /// person's examples. The change is the update that is clipped and summed; --learning-rate and the other
    /// options of the optimizer are the server's [default: 1].
    #[arg(long, value_name = "RATE", value_parser = real)]
    local_rate: Option<f64>,
    /// In federated rounds: the maximum number of examples in a batch of a person's own training, or of
    /// sequences with --characters [default: all of a person's examples].
    #[arg(long, value_name = "B", value_parser = count)]
    local_batch_size: Option<usize>,
    /// In federated rounds: passes of a person's own training over the person's examples [default: 1].
    #[arg(long, value_name = "K", value_parser = count)]
    local_epochs: Option<usize>,
    /// In federated rounds: the maximum number of steps of a person's own training [default: those of the
    /// passes].
    #[arg(long, value_name = "N", value_parser = count)]
    local_steps: Option<usize>,
    /// In federated rounds: replace a person's update by zero if an entry is larger than this in absolute
    /// value, before it is clipped. This costs no privacy [default: no update is replaced].
    #[arg(long, value_name = "BOUND", value_parser = real)]
    local_zero_beyond: Option<f64>,
}

impl FederatedOptions {
    /// Name of the first option that is given.
    pub fn given(&self) -> Option<&'static str> {
        let given =
            [("min_sep", self.min_sep.is_some()), ("max_participations", self.max_participations.is_some())];
        given.into_iter().chain(self.local_given()).find_map(|(name, given)| given.then_some(name))
    }

    /// Each option of a person's own training, and whether it is given.
    fn local_given(&self) -> [(&'static str, bool); 5] {
        [
            ("local_rate", self.local_rate.is_some()),
            ("local_batch_size", self.local_batch_size.is_some()),
            ("local_epochs", self.local_epochs.is_some()),
            ("local_steps", self.local_steps.is_some()),
            ("local_zero_beyond", self.local_zero_beyond.is_some()),
        ]
    }

    /// A person's own training; `None` if no option of it is given.
    pub fn local(&self) -> Option<Local> {
        let is_given = self.local_given().iter().any(|(_, given)| *given);
        let default = Local::default();
        is_given.then(|| Local {
            learning_rate: self.local_rate.unwrap_or(default.learning_rate),
            batch_size: self.local_batch_size,
            epochs: self.local_epochs.unwrap_or(default.epochs),
            most_steps: self.local_steps,
            zero_beyond: self.local_zero_beyond,
        })
    }
}
