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
    /// v <- momentum v + g; theta <- theta - learning_rate (g + momentum v), as in PyTorch: Nesterov's momentum.
    Nesterov {
        /// Above 0.
        learning_rate: f64,
        /// In \[0, 1).
        momentum: f64,
    },
    /// s <- s + g; theta <- theta_0 - learning_rate s, or the nearest point within `radius` of theta_0: follow the regularized
    /// leader, whose sum does not forget what the bound cut off.
    ///
    /// # Source
    /// Monograph, section 1.10.2, with a ball about the start as the set of parameters.
    Ftrl {
        /// Above 0.
        learning_rate: f64,
        /// How far, in l2 norm, parameters may be from their start; above 0.
        radius: f64,
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

impl Rule {
    /// The same rule, if its numbers are in range.
    ///
    /// # Errors
    /// Names the number that is not: a learning rate that single precision does not hold, say.
    pub fn check(self) -> Result<Self, InvalidParameter> {
        check_rate(self.learning_rate())?;
        match self {
            Self::Sgd { momentum, .. } | Self::Nesterov { momentum, .. } => {
                below_one("momentum", momentum)?;
            }
            Self::Ftrl { radius, .. } => {
                positive("radius", radius)?;
            }
            Self::Adam { beta1, beta2, epsilon, .. } => {
                below_one("beta1", beta1)?;
                below_one("beta2", beta2)?;
                positive("epsilon of Adam", epsilon)?;
            }
        }
        Ok(self)
    }

    /// The learning rate, whichever the rule.
    ///
    /// ```
    /// use antinoise_train::optimizer::Rule;
    /// let rule = Rule::Sgd { learning_rate: 0.5, momentum: 0.9 };
    /// assert_eq!(rule.with_learning_rate(0.25).learning_rate(), 0.25);
    /// ```
    pub fn learning_rate(&self) -> f64 {
        match *self {
            Self::Sgd { learning_rate, .. }
            | Self::Nesterov { learning_rate, .. }
            | Self::Ftrl { learning_rate, .. }
            | Self::Adam { learning_rate, .. } => learning_rate,
        }
    }

    /// The same rule with another learning rate.
    pub fn with_learning_rate(mut self, rate: f64) -> Self {
        match &mut self {
            Self::Sgd { learning_rate, .. }
            | Self::Nesterov { learning_rate, .. }
            | Self::Ftrl { learning_rate, .. }
            | Self::Adam { learning_rate, .. } => *learning_rate = rate,
        }
        self
    }

    /// Vectors of the model's dimension that it remembers: (first, second) moments, or the sum and where it began.
    pub(super) fn remembers(self) -> (bool, bool) {
        match self {
            Self::Sgd { momentum, .. } | Self::Nesterov { momentum, .. } => (momentum != 0.0, false),
            Self::Ftrl { .. } | Self::Adam { .. } => (true, true),
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
