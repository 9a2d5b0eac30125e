use antinoise_input::{InvalidParameter, at_least, positive};
use antinoise_mechanism::Workload;

use crate::Error;
use crate::data::Dataset;
use crate::model::Model;
use crate::optimizer::OptimizerConfig;

/// A training on public data with independent noise, of which single steps are given more noise.
///
/// ```text
/// growth(s) = mean over seeds and signs of [loss with z_s added to the sum of step s] - loss,    |z_s| = noise clip_norm per coordinate
/// ```
///
/// Losses are those of the test examples after the last step. Where the loss is a quadratic function of the
/// last iterate, growth(s) is a sum over its curvatures h of w_h u_h(s)^2, the squared responses of
/// [`Workload::LastIterate`].
///
/// # Source
/// The quadratic model of noise in training: monograph, Section 5.2, which leaves it open.
#[derive(Debug, Clone, Copy)]
pub struct Probe<'a> {
    /// The model.
    pub model: &'a Model,
    /// The public training and test data.
    pub dataset: &'a Dataset,
    /// The optimizer with its learning rate.
    pub optimizer: OptimizerConfig,
    /// Number of examples in a batch. Batches are cyclic, as those of a plan.
    pub batch_size: usize,
    /// Number of steps.
    pub steps: usize,
    /// The norm to which the gradient of each example is clipped.
    pub clip_norm: f64,
    /// Standard deviation of the noise in each coordinate of a step's sum, in clip norms: of every step, and
    /// once more of the probed step.
    pub noise_multiplier: f64,
    /// Number of trainings with different starts, batches and noise.
    pub repeats: usize,
    /// The seed of all of them.
    pub seed: u64,
}

impl Probe<'_> {
    /// Refuses numbers that no probe can use.
    pub(super) fn check(&self) -> Result<(), InvalidParameter> {
        at_least("steps", self.steps, 2)?;
        at_least("repeats", self.repeats, 1)?;
        positive("noise_multiplier", self.noise_multiplier)?;
        Ok(())
    }

    /// The workload of the last iterate before weights are fitted: all are equal.
    ///
    /// # Errors
    /// If the optimizer's settings are out of range or it is not SGD, there are too many steps, or the share
    /// is out of range.
    pub fn equal_weights(&self, prefix_share: f64) -> Result<Workload, Error> {
        self.optimizer.check(self.steps)?;
        let Workload::LastIterate { momentum, weight_decay, rates, weights, .. } =
            self.optimizer.design_workload(self.steps)
        else {
            let must_be = "at most 16,384, with sgd or nesterov as optimizer";
            return Err(InvalidParameter::new("steps", self.steps, must_be).into());
        };
        let equal = Workload::LastIterate { momentum, weight_decay, prefix_share, rates, weights };
        equal.check().map_err(antinoise_plan::Error::from)?;
        Ok(equal)
    }

    /// The workload of the last iterate with these weights as fractions of the largest; `None` if all are 0.
    pub(super) fn weighted(&self, weights: &[f64], prefix_share: f64) -> Result<Option<Workload>, Error> {
        let equal = self.equal_weights(prefix_share)?;
        let largest = weights.iter().copied().fold(0.0, f64::max);
        let of_largest = || equal.with_weights(weights.iter().map(|weight| weight / largest).collect());
        Ok((largest > 0.0).then(of_largest))
    }
}
