//! The workload of an optimizer: the linear map from updates to parameters, for which a strategy should be
//! designed.

use antinoise_mechanism::Workload;

use super::config::OptimizerConfig;
use super::rule::UpdateRule;
use super::schedule::{Decay, Schedule};

/// Maximum number of steps for which a map without a closed form is written as a matrix; longer runs use the
/// closest closed form.
const MOST_ROWS: usize = 512;
/// Maximum number of steps for which structured strategies are designed for the last iterate.
const MOST_STEPS_OF_LAST_ITERATE: usize = 16_384;

impl OptimizerConfig {
    /// The linear map A from the updates of `steps` steps to the parameters: row i expresses theta_i -
    /// theta_0 by the updates, in units of the learning rate, with theta_0 = 0.
    ///
    /// ```text
    /// A[i, j] = sum over s in j..=i of eta_s w_(s - j) prod over r in s+1..=i of (1 - eta_r learning_rate weight_decay)
    /// w = 1, beta, beta^2, ... (momentum);  1 + beta, beta^2, beta^3, ... (Nesterov)
    /// ```
    ///
    /// eta are the schedule's factors. Approximations: Adam's steps are not linear in the updates, and are
    /// represented by sums weighted by the schedule, as is FTRL, which is exactly such a sum until it reaches
    /// its radius. Nesterov's momentum or weight decay with a schedule is exact up to 512 steps; longer runs
    /// use the same schedule with plain momentum and no decay. The choice of a workload affects the loss,
    /// never privacy.
    ///
    /// ```
    /// use antinoise_mechanism::Workload;
    /// use antinoise_train::optimizer::{OptimizerConfig, UpdateRule};
    /// let config = OptimizerConfig::from(UpdateRule::Nesterov { learning_rate: 0.1, momentum: 0.9 });
    /// assert_eq!(config.workload(100), Workload::Nesterov { momentum: 0.9 });
    /// ```
    ///
    /// # Panics
    /// If `steps` is 0.
    pub fn workload(&self, steps: usize) -> Workload {
        let (momentum, nesterov) = match self.rule {
            UpdateRule::Sgd { momentum, .. } => (momentum, false),
            UpdateRule::Nesterov { momentum, .. } => (momentum, momentum > 0.0),
            UpdateRule::Ftrl { .. } | UpdateRule::Adam { .. } => (0.0, false),
        };
        let weight_decay = self.rule.learning_rate() * self.weight_decay;
        if self.schedule.is_constant() && !nesterov {
            return match (momentum, weight_decay) {
                (0.0, 0.0) => Workload::Prefix,
                _ => Workload::Momentum { momentum, weight_decay },
            };
        }
        if weight_decay == 0.0 && !nesterov {
            return scheduled(&self.schedule, momentum, steps);
        }
        if weight_decay == 0.0 && self.schedule.is_constant() {
            return Workload::Nesterov { momentum };
        }
        let weights = weights(momentum, nesterov, steps);
        if self.schedule.is_constant() {
            let column = recursion(&weights, &vec![1.0; steps], weight_decay);
            return Workload::Toeplitz { coefficients: column };
        }
        if steps > MOST_ROWS {
            return scheduled(&self.schedule, momentum, steps);
        }
        written_out(&weights, &self.schedule.shares(steps), weight_decay)
    }
}

impl OptimizerConfig {
    /// The workload to design a strategy for: for SGD with or without momentum and up to 16,384 steps, the
    /// noise that the last iterate remembers ([`Workload::LastIterate`]); otherwise [`Self::workload`]
    /// without momentum.
    ///
    /// Training is not linear: gradients are computed at parameters that earlier noise has moved, so that it
    /// is partly forgotten. Of the two, the loss of the last iterate ordered trained models better
    /// (`docs/results/workloads.md`). The responses are those of the schedule and the weight decay. Momentum
    /// averages the updates of 1 / (1 - beta) steps, so that its map does not count noise that cancels within
    /// that many steps; designs for that map trained worse models at small epsilon
    /// (`docs/results/workload.md`).
    ///
    /// ```
    /// use antinoise_mechanism::Workload;
    /// use antinoise_train::optimizer::{Decay, OptimizerConfig, Schedule, UpdateRule};
    /// let config = OptimizerConfig::from(UpdateRule::Sgd { learning_rate: 0.1, momentum: 0.9 });
    /// assert_eq!(config.design_workload(100), Workload::last_iterate(0.9));
    /// assert_eq!(config.design_workload(1_000_000), Workload::Prefix);
    ///
    /// let schedule = Schedule { warm_up: 0, decay: Decay::Linear { last: 0.0 } };
    /// let Workload::LastIterate { rates, .. } = (OptimizerConfig { schedule, ..config }).design_workload(5)
    /// else { unreachable!() };
    /// assert_eq!(rates, [1.0, 0.75, 0.5, 0.25, 0.0]);
    /// ```
    ///
    /// # Panics
    /// If `steps` is 0.
    pub fn design_workload(&self, steps: usize) -> Workload {
        match self.rule {
            UpdateRule::Sgd { momentum, .. } | UpdateRule::Nesterov { momentum, .. }
                if steps <= MOST_STEPS_OF_LAST_ITERATE =>
            {
                let constant = self.schedule.is_constant();
                let rates = if constant { Vec::new() } else { self.schedule.shares(steps) };
                let weight_decay = self.rule.learning_rate() * self.weight_decay;
                Workload::last_iterate(momentum).with_schedule(rates, weight_decay)
            }
            _ => self.workload_without_momentum(steps),
        }
    }

    /// [`Self::workload`] for an optimizer that has no momentum and is the same otherwise.
    ///
    /// # Panics
    /// If `steps` is 0.
    pub fn workload_without_momentum(&self, steps: usize) -> Workload {
        let rule = match self.rule {
            UpdateRule::Sgd { learning_rate, .. } | UpdateRule::Nesterov { learning_rate, .. } => {
                UpdateRule::Sgd { learning_rate, momentum: 0.0 }
            }
            UpdateRule::Ftrl { .. } | UpdateRule::Adam { .. } => self.rule,
        };
        Self { rule, ..*self }.workload(steps)
    }
}

/// Momentum with a schedule, in the form for which design is fastest.
fn scheduled(schedule: &Schedule, momentum: f64, steps: usize) -> Workload {
    match schedule.decay {
        Decay::Linear { last } | Decay::Cooldown { last, .. } if momentum == 0.0 && schedule.warm_up <= 1 => {
            Workload::Cooldown { start: schedule.decay_start(steps), last }
        }
        _ => Workload::Schedule { rates: schedule.shares(steps), momentum },
    }
}

/// The weights w of an update in its own step and in each later step.
fn weights(momentum: f64, nesterov: bool, steps: usize) -> Vec<f64> {
    let powers = (0..steps).scan(1.0, |power, _| Some(std::mem::replace(power, *power * momentum)));
    if !nesterov {
        return powers.collect();
    }
    powers.enumerate().map(|(k, power)| f64::from(k == 0) + momentum * power).collect()
}

/// One column of A, from its diagonal down: x_i = (1 - eta_i decay) x_(i-1) + eta_i w_(i - j).
fn recursion(weights: &[f64], rates: &[f64], weight_decay: f64) -> Vec<f64> {
    let step = |x: &mut f64, (w, rate): (&f64, &f64)| {
        *x = (1.0 - rate * weight_decay) * *x + rate * w;
        Some(*x)
    };
    weights.iter().zip(rates).scan(0.0, step).collect()
}

fn written_out(weights: &[f64], rates: &[f64], weight_decay: f64) -> Workload {
    let steps = rates.len();
    let mut rows: Vec<Vec<f64>> = (0..steps).map(|i| vec![0.0; i + 1]).collect();
    for j in 0..steps {
        for (i, x) in recursion(weights, &rates[j..], weight_decay).into_iter().enumerate() {
            rows[j + i][j] = x;
        }
    }
    Workload::Matrix { rows }
}
