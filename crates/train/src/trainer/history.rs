/// The measurements of a run.
///
/// Losses and fractions of clipped examples are computed from private examples without noise: the privacy
/// statement does not cover them. Show them only to people who may see the data.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// Mean training loss of each step's batch, in nats; NaN for an empty batch.
    pub losses: Vec<f64>,
    /// Share of each step's batch that was clipped; NaN for an empty batch.
    pub clipped_shares: Vec<f64>,
    /// (steps done, test accuracy), in the order of steps.
    pub accuracies: Vec<(usize, f64)>,
    /// Seconds spent in steps and tests, over all resumptions.
    pub seconds: f64,
    /// Part of `seconds` spent in making and adding noise.
    pub seconds_in_noise: f64,
}
