//! The local training of a user in a federated round.

use antinoise_federated::LocalSteps;
use serde::{Deserialize, Serialize};

/// The local training of a user in a federated round; by default one step on all of the user's examples with
/// learning rate 1, whose update is the user's mean gradient.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Local {
    /// The learning rate.
    pub learning_rate: f64,
    /// Maximum number of examples in a batch; `None`: all of a user's examples are one batch.
    pub batch_size: Option<usize>,
    /// Passes over a user's examples.
    pub epochs: usize,
    /// Maximum number of steps; `None`: those of the passes.
    pub most_steps: Option<usize>,
    /// The bound on the entries of an update: one with a larger entry becomes 0 before it is clipped. `None`:
    /// no bound.
    pub zero_beyond: Option<f64>,
}

impl Default for Local {
    fn default() -> Self {
        Self { learning_rate: 1.0, batch_size: None, epochs: 1, most_steps: None, zero_beyond: None }
    }
}

impl Local {
    /// The same settings, with numbers for those that are left out.
    pub(crate) fn steps(self) -> LocalSteps {
        let Self { learning_rate, batch_size, epochs, most_steps, zero_beyond } = self;
        let (batch_size, most_steps) = (batch_size.unwrap_or(usize::MAX), most_steps.unwrap_or(usize::MAX));
        LocalSteps { learning_rate, batch_size, epochs, most_steps, zero_beyond }
    }

    /// The settings in words, for a privacy statement.
    pub(crate) fn in_words(self) -> String {
        let Self { learning_rate, batch_size, epochs, most_steps, zero_beyond } = self;
        let batches =
            batch_size.map_or("all of their examples".into(), |size| format!("batches of at most {size}"));
        let most = most_steps.map_or(String::new(), |most| format!(", at most {most} steps"));
        let passes = if epochs == 1 { "pass" } else { "passes" };
        let zeroed = zero_beyond.map_or(String::new(), |bound| {
            format!("; an update with an entry larger than {bound} is replaced by zero")
        });
        format!("{epochs} {passes} over {batches}{most}, at learning rate {learning_rate}{zeroed}")
    }
}
