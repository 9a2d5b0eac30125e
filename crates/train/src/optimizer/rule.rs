use antinoise_input::{InvalidParameter, below_one, positive};
use serde::{Deserialize, Serialize};

/// How to compute a step from a gradient g. All settings except learning rates and radius are dimensionless.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum UpdateRule {
    /// v <- momentum v + g; theta <- theta - learning_rate v, as in PyTorch; momentum 0 is plain SGD.
    Sgd {
        /// The learning rate, above 0.
        learning_rate: f64,
        /// The momentum, in \[0, 1).
        momentum: f64,
    },
    /// v <- momentum v + g; theta <- theta - learning_rate (g + momentum v), as in PyTorch: Nesterov's
    /// momentum.
    Nesterov {
        /// The learning rate, above 0.
        learning_rate: f64,
        /// The momentum, in \[0, 1).
        momentum: f64,
    },
    /// s <- s + g; theta <- theta_0 - learning_rate s, projected on the ball of `radius` around theta_0:
    /// follow the regularized leader. The sum s keeps what the projection removes.
    ///
    /// # Source
    /// K. Pillutla et al., arXiv:2506.08201, section 1.10.2, with a ball around the start as the set of
    /// parameters.
    Ftrl {
        /// The learning rate, above 0.
        learning_rate: f64,
        /// Maximum distance of the parameters from their start, in l2 norm; above 0.
        radius: f64,
    },
    /// m <- beta1 m + (1 - beta1) g; v <- beta2 v + (1 - beta2) g^2;
    /// theta <- theta - learning_rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon).
    ///
    /// # Source
    /// D. Kingma, J. Ba, Adam, arXiv:1412.6980.
    Adam {
        /// The learning rate, above 0.
        learning_rate: f64,
        /// The decay of m, in \[0, 1); 0.9 is usual.
        beta1: f64,
        /// The decay of v, in \[0, 1); 0.999 is usual.
        beta2: f64,
        /// Addition to the divisor, above 0; 1e-8 is usual.
        epsilon: f64,
    },
}

impl UpdateRule {
    /// The rule of this name, `sgd`, `nesterov`, `ftrl` or `adam`: `momentum`, by default 0.9, is that of
    /// `sgd` and `nesterov`; `ftrl` needs a `radius`; `adam` has beta1 0.9, beta2 0.999 and epsilon 1e-8.
    ///
    /// ```
    /// use antinoise_train::optimizer::UpdateRule;
    /// let rule = UpdateRule::named("sgd", 0.5, None, None)?;
    /// assert_eq!(rule, UpdateRule::Sgd { learning_rate: 0.5, momentum: 0.9 });
    /// # Ok::<(), antinoise_input::InvalidParameter>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such rule, or the rule would ignore an option or lacks one.
    pub fn named(
        name: &str,
        learning_rate: f64,
        momentum: Option<f64>,
        radius: Option<f64>,
    ) -> Result<Self, InvalidParameter> {
        let has_momentum = ["sgd", "nesterov"].contains(&name);
        if let Some(momentum) = momentum.filter(|_| !has_momentum) {
            return Err(InvalidParameter::new("momentum", momentum, "left out except with sgd and nesterov"));
        }
        if let Some(radius) = radius.filter(|_| name != "ftrl") {
            return Err(InvalidParameter::new("radius", radius, "left out except with ftrl"));
        }
        let momentum = momentum.unwrap_or(0.9);
        match (name, radius) {
            ("sgd", _) => Ok(Self::Sgd { learning_rate, momentum }),
            ("nesterov", _) => Ok(Self::Nesterov { learning_rate, momentum }),
            ("ftrl", Some(radius)) => Ok(Self::Ftrl { learning_rate, radius }),
            ("ftrl", None) => Err(InvalidParameter::new("radius", "absent", "given with ftrl")),
            ("adam", _) => Ok(Self::Adam { learning_rate, beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }),
            _ => Err(InvalidParameter::new("optimizer", format!("{name:?}"), "sgd, nesterov, ftrl or adam")),
        }
    }

    /// Returns this rule if its numbers are in range.
    ///
    /// # Errors
    /// Names the number that is out of range, such as a learning rate that underflows in single precision.
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

    /// The learning rate of any rule.
    ///
    /// ```
    /// use antinoise_train::optimizer::UpdateRule;
    /// let rule = UpdateRule::Sgd { learning_rate: 0.5, momentum: 0.9 };
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

    /// This rule with another learning rate.
    pub fn with_learning_rate(mut self, rate: f64) -> Self {
        match &mut self {
            Self::Sgd { learning_rate, .. }
            | Self::Nesterov { learning_rate, .. }
            | Self::Ftrl { learning_rate, .. }
            | Self::Adam { learning_rate, .. } => *learning_rate = rate,
        }
        self
    }

    /// Whether the rule stores first and second moments; FTRL stores its sum and its start in their place.
    pub(super) fn remembers(self) -> (bool, bool) {
        match self {
            Self::Sgd { momentum, .. } | Self::Nesterov { momentum, .. } => (momentum != 0.0, false),
            Self::Ftrl { .. } | Self::Adam { .. } => (true, true),
        }
    }
}

/// Refuses rates outside single precision, in which parameters and steps are computed.
fn check_rate(rate: f64) -> Result<(), InvalidParameter> {
    if (f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX)).contains(&positive("learning_rate", rate)?) {
        return Ok(());
    }
    let must_be = "from 1.2e-38 to 3.4e38, as single precision holds it";
    Err(InvalidParameter::new("learning_rate", format!("{rate:e}"), must_be))
}
