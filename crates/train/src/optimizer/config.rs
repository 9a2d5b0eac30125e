use antinoise_input::{InvalidParameter, non_negative, positive};
use serde::{Deserialize, Serialize};

use super::rule::UpdateRule;
use super::schedule::Schedule;

/// A rule with a schedule, weight decay and a bound on updates.
///
/// With the step's learning rate eta = `learning_rate` times the schedule's share, a step on the update g is
///
/// ```text
/// g     <- 0 if an entry of g is larger than zero_beyond or NaN    costs no privacy
/// theta <- (1 - eta weight_decay) theta                            decoupled, as in AdamW
/// theta <- a step of the rule from theta along g with rate eta
/// ```
///
/// A rule without these options converts to a configuration with `into`.
///
/// ```
/// use antinoise_train::optimizer::{Optimizer, OptimizerConfig, UpdateRule};
/// let rule = UpdateRule::Sgd { learning_rate: 0.5, momentum: 0.0 };
/// let config = OptimizerConfig { weight_decay: 0.5, zero_beyond: Some(10.0), ..rule.into() };
/// let mut optimizer = Optimizer::of_run(config, 1, 2)?;
/// let mut theta = [1.0];
/// optimizer.step(&mut theta, &[1.0]);
/// assert_eq!(theta, [0.25]); // 0.75 - 0.5
/// optimizer.step(&mut theta, &[11.0]);
/// assert_eq!(theta, [0.1875]); // 0.75 * 0.25
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
///
/// # Source
/// I. Loshchilov, F. Hutter, Decoupled weight decay, arXiv:1711.05101; C. Choquette-Choo et al., Multi-epoch
/// matrix factorization mechanisms, 2023, Appendix F.3, which drops large updates of users before the sum, as
/// `LocalSteps::zero_beyond` of antinoise-federated does; here, the noisy mean is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptimizerConfig {
    /// Computes a step from an update.
    pub rule: UpdateRule,
    /// The learning rate over the run.
    pub schedule: Schedule,
    /// The decay lambda, at least 0; learning_rate times it must be below 1.
    pub weight_decay: f64,
    /// An update with a larger entry, or with a NaN, is replaced by 0; `None`: no bound.
    pub zero_beyond: Option<f64>,
}

impl From<UpdateRule> for OptimizerConfig {
    fn from(rule: UpdateRule) -> Self {
        Self { rule, schedule: Schedule::default(), weight_decay: 0.0, zero_beyond: None }
    }
}

impl OptimizerConfig {
    /// Refuses numbers that are out of range or do not fit a run of `steps` steps.
    ///
    /// # Errors
    /// Names the number.
    pub fn check(&self, steps: usize) -> Result<(), InvalidParameter> {
        self.rule.check()?;
        self.schedule.check(steps)?;
        let shrinks = self.rule.learning_rate() * non_negative("weight_decay", self.weight_decay)?;
        if shrinks >= 1.0 {
            let must_be = format!("below 1 / learning_rate = {}", 1.0 / self.rule.learning_rate());
            return Err(InvalidParameter::new("weight_decay", self.weight_decay, must_be));
        }
        if self.weight_decay > 0.0 && matches!(self.rule, UpdateRule::Ftrl { .. }) {
            let must_be = "0 with ftrl, whose parameters follow from the sum of the updates alone";
            return Err(InvalidParameter::new("weight_decay", self.weight_decay, must_be));
        }
        if let Some(bound) = self.zero_beyond {
            positive("zero_beyond", bound)?;
        }
        Ok(())
    }

    /// The text that identifies this optimizer in checkpoints: that of the update rule alone, if no option is
    /// set.
    ///
    /// ```
    /// use antinoise_train::optimizer::{OptimizerConfig, UpdateRule};
    /// let rule = UpdateRule::Sgd { learning_rate: 0.5, momentum: 0.0 };
    /// assert_eq!(OptimizerConfig::from(rule).identity(), format!("{rule:?}"));
    /// ```
    pub fn identity(&self) -> String {
        if *self == self.rule.into() { format!("{:?}", self.rule) } else { format!("{self:?}") }
    }
}
