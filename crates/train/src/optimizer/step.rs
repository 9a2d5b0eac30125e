use antinoise_input::InvalidParameter;

use super::config::OptimizerConfig;
use super::rule::UpdateRule;

/// An optimizer of `dim` parameters: its configuration and its state.
///
/// ```
/// use antinoise_train::optimizer::{Optimizer, UpdateRule};
/// let mut sgd = Optimizer::new(UpdateRule::Sgd { learning_rate: 0.5, momentum: 0.5 }, 1)?;
/// let mut theta = [1.0];
/// sgd.step(&mut theta, &[1.0]);
/// sgd.step(&mut theta, &[1.0]);
/// assert_eq!(theta, [-0.25]); // 1 - 0.5 (1) - 0.5 (1.5)
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Optimizer {
    config: OptimizerConfig,
    /// Steps of the run, on which the schedule depends.
    run: usize,
    steps: usize,
    first: Vec<f32>,
    second: Vec<f32>,
}

impl Optimizer {
    /// An optimizer of `dim` parameters with zero moments and a constant learning rate.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(rule: UpdateRule, dim: usize) -> Result<Self, InvalidParameter> {
        Self::of_run(rule.into(), dim, usize::MAX)
    }

    /// An optimizer of `dim` parameters for a run of `steps` steps.
    ///
    /// # Errors
    /// If a setting is out of range, or the schedule does not fit the run.
    pub fn of_run(config: OptimizerConfig, dim: usize, steps: usize) -> Result<Self, InvalidParameter> {
        config.check(steps)?;
        let (first, second) = config.rule.remembers();
        let zeros = |needed| vec![0.0; if needed { dim } else { 0 }];
        Ok(Self { config, run: steps, steps: 0, first: zeros(first), second: zeros(second) })
    }

    /// The optimizer after `done` steps, with the saved moments.
    ///
    /// # Errors
    /// If the moments are of another rule or dimension.
    pub fn after(self, done: usize, (first, second): (Vec<f32>, Vec<f32>)) -> Result<Self, InvalidParameter> {
        for (saved, expected) in [(&first, &self.first), (&second, &self.second)] {
            if saved.len() != expected.len() {
                let must_be = format!("{} long", expected.len());
                return Err(InvalidParameter::new("moment of the optimizer", saved.len(), must_be));
            }
        }
        Ok(Self { steps: done, first, second, ..self })
    }

    /// The moments; empty if the rule does not use them.
    pub fn moments(&self) -> (&[f32], &[f32]) {
        (&self.first, &self.second)
    }

    /// Moves `parameters` by one step along `gradient`, the noisy mean of clipped gradients.
    ///
    /// # Panics
    /// Unless `parameters` and `gradient` have the dimension given to [`Optimizer::new`]; if all steps of a
    /// run with a schedule are done.
    pub fn step(&mut self, parameters: &mut [f32], gradient: &[f32]) {
        assert_eq!(gradient.len(), parameters.len(), "one number for each parameter");
        let OptimizerConfig { schedule, weight_decay, zero_beyond, rule } = self.config;
        assert!(self.steps < self.run, "no step after the last one");
        let share = schedule.share(self.steps, self.run);
        self.steps += 1;
        if weight_decay > 0.0 {
            let kept = (1.0 - share * rule.learning_rate() * weight_decay) as f32;
            parameters.iter_mut().for_each(|theta| *theta *= kept);
        }
        if zero_beyond.is_some_and(|bound| is_beyond(gradient, bound)) {
            self.apply(share, parameters, &vec![0.0; gradient.len()]);
        } else {
            self.apply(share, parameters, gradient);
        }
    }

    /// Applies the rule to an update, with `share` of its learning rate.
    fn apply(&mut self, share: f64, parameters: &mut [f32], update: &[f32]) {
        let gradient = update.iter().copied();
        if self.config.rule.remembers().0 {
            assert_eq!(self.first.len(), parameters.len(), "as many parameters as at the start");
        }
        match self.config.rule {
            UpdateRule::Sgd { learning_rate, momentum: 0.0 }
            | UpdateRule::Nesterov { learning_rate, momentum: 0.0 } => {
                let rate = (share * learning_rate) as f32;
                let pairs = parameters.iter_mut().zip(gradient);
                pairs.for_each(|(theta, g)| *theta -= rate * g);
            }
            UpdateRule::Sgd { learning_rate, momentum } => {
                let (rate, momentum) = ((share * learning_rate) as f32, momentum as f32);
                for ((theta, g), v) in parameters.iter_mut().zip(gradient).zip(&mut self.first) {
                    *v = momentum * *v + g;
                    *theta -= rate * *v;
                }
            }
            UpdateRule::Nesterov { learning_rate, momentum } => {
                let (rate, momentum) = ((share * learning_rate) as f32, momentum as f32);
                for ((theta, g), v) in parameters.iter_mut().zip(gradient).zip(&mut self.first) {
                    *v = momentum * *v + g;
                    *theta -= rate * (g + momentum * *v);
                }
            }
            UpdateRule::Ftrl { learning_rate, radius } => {
                if self.steps == 1 {
                    self.second.copy_from_slice(parameters);
                }
                let (share, moved) = (share as f32, self.first.iter_mut().zip(gradient));
                moved.for_each(|(sum, g)| *sum += share * g);
                let norm =
                    learning_rate * self.first.iter().map(|&s| f64::from(s).powi(2)).sum::<f64>().sqrt();
                let rate = if norm > radius { learning_rate * (radius / norm) } else { learning_rate };
                let starts = parameters.iter_mut().zip(&self.second).zip(&self.first);
                starts.for_each(|((theta, start), sum)| *theta = start - rate as f32 * sum);
            }
            UpdateRule::Adam { learning_rate, beta1, beta2, epsilon } => {
                let pairs = parameters.iter_mut().zip(gradient);
                let corrected = |beta: f64| 1.0 - beta.powf(self.steps as f64);
                let rate = (share * learning_rate / corrected(beta1)) as f32;
                let second_scale = (1.0 / corrected(beta2)) as f32;
                let (beta1, beta2, epsilon) = (beta1 as f32, beta2 as f32, epsilon as f32);
                let moments = self.first.iter_mut().zip(&mut self.second);
                for ((theta, g), (m, v)) in pairs.zip(moments) {
                    *m = beta1 * *m + (1.0 - beta1) * g;
                    *v = beta2 * *v + (1.0 - beta2) * g * g;
                    *theta -= rate * *m / ((*v * second_scale).sqrt() + epsilon);
                }
            }
        }
    }
}

/// Whether an entry of `update` is larger than `bound` in absolute value, or NaN.
///
/// ```
/// use antinoise_train::optimizer::is_beyond;
/// assert!(is_beyond(&[0.0, -2.0], 1.0) && is_beyond(&[f32::NAN], 1.0) && !is_beyond(&[1.0], 1.0));
/// ```
pub fn is_beyond(update: &[f32], bound: f64) -> bool {
    update.iter().any(|&u| u.is_nan() || f64::from(u).abs() > bound)
}
