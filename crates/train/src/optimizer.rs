//! Optimisers on one flat vector of parameters.
//!
//! They only see the noisy mean of clipped gradients, so that whatever they do costs no privacy.

use antinoise_input::{InvalidParameter, below_one, positive};
use serde::{Deserialize, Serialize};

/// How a step follows from a gradient; every setting is dimensionless but the rates.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Rule {
    /// v <- momentum v + g; theta <- theta - learning_rate v, as in PyTorch; momentum 0 is plain SGD.
    Sgd {
        /// Above 0.
        learning_rate: f64,
        /// In \[0, 1).
        momentum: f64,
    },
    /// m <- beta1 m + (1 - beta1) g; v <- beta2 v + (1 - beta2) g^2;
    /// theta <- theta - learning_rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon).
    ///
    /// # Source
    /// D. Kingma, J. Ba, Adam, arXiv:1412.6980.
    Adam {
        /// Above 0.
        learning_rate: f64,
        /// In \[0, 1); 0.9 is usual.
        beta1: f64,
        /// In \[0, 1); 0.999 is usual.
        beta2: f64,
        /// Above 0; 1e-8 is usual.
        epsilon: f64,
    },
}

/// A rule and what it remembers, for `dim` parameters.
///
/// ```
/// use antinoise_train::optimizer::{Optimizer, Rule};
/// let mut sgd = Optimizer::new(Rule::Sgd { learning_rate: 0.5, momentum: 0.5 }, 1)?;
/// let mut theta = [1.0];
/// sgd.step(&mut theta, &[1.0]);
/// sgd.step(&mut theta, &[1.0]);
/// assert_eq!(theta, [-0.25]); // 1 - 0.5 (1) - 0.5 (1.5)
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Optimizer {
    rule: Rule,
    steps: u64,
    first: Vec<f32>,
    second: Vec<f32>,
}

impl Rule {
    /// The same rule, if its numbers are in range.
    ///
    /// # Errors
    /// Names the number that is not: a learning rate that single precision does not hold, say.
    pub fn check(self) -> Result<Self, InvalidParameter> {
        match self {
            Self::Sgd { learning_rate, momentum } => {
                check_rate(learning_rate)?;
                below_one("momentum", momentum)?;
            }
            Self::Adam { learning_rate, beta1, beta2, epsilon } => {
                check_rate(learning_rate)?;
                below_one("beta1", beta1)?;
                below_one("beta2", beta2)?;
                positive("epsilon of Adam", epsilon)?;
            }
        }
        Ok(self)
    }

    /// Vectors of the model's dimension that it remembers: (first, second) moments.
    fn remembers(self) -> (bool, bool) {
        match self {
            Self::Sgd { momentum, .. } => (momentum != 0.0, false),
            Self::Adam { .. } => (true, true),
        }
    }
}

/// Parameters are in single precision, and so is what a step adds to them.
fn check_rate(rate: f64) -> Result<(), InvalidParameter> {
    if (f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX)).contains(&positive("learning_rate", rate)?) {
        return Ok(());
    }
    let must_be = "from 1.2e-38 to 3.4e38, as single precision holds it";
    Err(InvalidParameter::new("learning_rate", format!("{rate:e}"), must_be))
}

impl Optimizer {
    /// An optimiser of `dim` parameters that remembers nothing yet.
    ///
    /// # Errors
    /// When a setting is outside its range.
    pub fn new(rule: Rule, dim: usize) -> Result<Self, InvalidParameter> {
        let (first, second) = rule.check()?.remembers();
        let zeros = |needed| vec![0.0; if needed { dim } else { 0 }];
        Ok(Self { rule, steps: 0, first: zeros(first), second: zeros(second) })
    }

    /// The optimiser after `steps` steps that left these moments behind.
    pub(crate) fn resume(
        rule: Rule,
        dim: usize,
        steps: u64,
        (first, second): (Vec<f32>, Vec<f32>),
    ) -> Result<Self, InvalidParameter> {
        let empty = Self::new(rule, dim)?;
        for (saved, expected) in [(&first, &empty.first), (&second, &empty.second)] {
            if saved.len() != expected.len() {
                let must_be = format!("{} long", expected.len());
                return Err(InvalidParameter::new("moment of the optimizer", saved.len(), must_be));
            }
        }
        Ok(Self { rule, steps, first, second })
    }

    /// What it remembers; empty where the rule needs no such moment.
    pub(crate) fn moments(&self) -> (&[f32], &[f32]) {
        (&self.first, &self.second)
    }

    /// Moves `parameters` by one step along `gradient`.
    ///
    /// # Panics
    /// Unless both are as long as the dimension given to [`Optimizer::new`].
    pub fn step(&mut self, parameters: &mut [f32], gradient: &[f32]) {
        assert_eq!(parameters.len(), gradient.len(), "one gradient a parameter");
        self.steps += 1;
        match self.rule {
            Rule::Sgd { learning_rate, momentum: 0.0 } => {
                let rate = learning_rate as f32;
                parameters.iter_mut().zip(gradient).for_each(|(theta, g)| *theta -= rate * g);
            }
            Rule::Sgd { learning_rate, momentum } => {
                assert_eq!(self.first.len(), parameters.len(), "as many parameters as at the start");
                let (rate, momentum) = (learning_rate as f32, momentum as f32);
                for ((theta, g), v) in parameters.iter_mut().zip(gradient).zip(&mut self.first) {
                    *v = momentum * *v + g;
                    *theta -= rate * *v;
                }
            }
            Rule::Adam { learning_rate, beta1, beta2, epsilon } => {
                assert_eq!(self.first.len(), parameters.len(), "as many parameters as at the start");
                let corrected = |beta: f64| 1.0 - beta.powf(self.steps as f64);
                let rate = (learning_rate / corrected(beta1)) as f32;
                let second_scale = (1.0 / corrected(beta2)) as f32;
                let (beta1, beta2, epsilon) = (beta1 as f32, beta2 as f32, epsilon as f32);
                let moments = self.first.iter_mut().zip(&mut self.second);
                for ((theta, g), (m, v)) in parameters.iter_mut().zip(gradient).zip(moments) {
                    *m = beta1 * *m + (1.0 - beta1) * g;
                    *v = beta2 * *v + (1.0 - beta2) * g * g;
                    *theta -= rate * *m / ((*v * second_scale).sqrt() + epsilon);
                }
            }
        }
    }
}
