use antinoise_input::{InvalidParameter, below_one, positive};
use serde::{Deserialize, Serialize};

/// How to compute a step from a gradient g. All settings except learning rates and radius are dimensionless.
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
    /// v <- momentum v + g; theta <- theta - learning_rate (g + momentum v), as in PyTorch: Nesterov's
    /// momentum.
    Nesterov {
        /// Above 0.
        learning_rate: f64,
        /// In \[0, 1).
        momentum: f64,
    },
    /// s <- s + g; theta <- theta_0 - learning_rate s, projected on the ball of `radius` around theta_0:
    /// follow the regularized leader. The sum s keeps what the projection removes.
    ///
    /// # Source
    /// Monograph, section 1.10.2, with a ball around the start as the set of parameters.
    Ftrl {
        /// Above 0.
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
        /// Above 0.
        learning_rate: f64,
        /// In \[0, 1); 0.9 is usual.
        beta1: f64,
        /// In \[0, 1); 0.999 is usual.
        beta2: f64,
        /// Above 0; 1e-8 is usual.
        epsilon: f64,
    },
    /// Scale-then-privatize: gradients are multiplied entry by entry by scales s before they are clipped, so
    /// that the noise has the geometry of Adam's steps; s is a function of the second moments of earlier
    /// releases.
    ///
    /// ```text
    /// s     = k / (sqrt(v) + damping rms)        rms^2 the mean of v, k such that sum of s^2 v = sum of v; s = 1 where v = 0
    /// g     = (sum of the clipped s g_i + noise) / B / s
    /// m, v <- as Adam's of g
    /// theta <- theta - learning_rate m^ / (sqrt(v^) + damping rms^)       ^: Adam's correction; of the new v
    /// ```
    ///
    /// # Source
    /// A. Ganesh, B. McMahan, A. Thakurta, On design principles for private adaptive optimizers,
    /// arXiv:2507.01129, Algorithm 8. Normalizing s, which preserves the meaning of the clip norm, and
    /// damping in units of rms are this crate's.
    ScaledAdam {
        /// Above 0.
        learning_rate: f64,
        /// In \[0, 1); 0.9 is usual.
        beta1: f64,
        /// In \[0, 1); 0.999 is usual.
        beta2: f64,
        /// At least 1e-6.
        damping: f64,
    },
    /// Joint moments: the squares of the clipped gradients are released with the gradients, under one budget,
    /// and v is their mean.
    ///
    /// ```text
    /// (g, q) = (sum of (x_i, lambda x_i^2) + noise) / B,   x_i clipped to zeta; q is divided by lambda = ratio / zeta
    /// m     <- beta1 m + (1 - beta1) g;  v <- beta2 v + (1 - beta2) q
    /// theta <- theta - learning_rate m^ / (sqrt(v^) + damping rms^)       where v is below 0 it counts as 0
    /// ```
    ///
    /// # Source
    /// N. Kalinin, J. Upadhyay, C. Lampert, Continual release moment estimation with differential privacy,
    /// arXiv:2502.06597. Damping in units of rms is this crate's.
    JointAdam {
        /// Above 0.
        learning_rate: f64,
        /// In \[0, 1); 0.9 is usual.
        beta1: f64,
        /// In \[0, 1); 0.999 is usual.
        beta2: f64,
        /// At least 1e-6.
        damping: f64,
        /// |lambda x^2| / |x| for an x of length zeta along one parameter; above 0, at most 1. Releasing squares multiplies the noise by sqrt(1 + ratio^2).
        ratio: f64,
    },
}

/// The numbers that a step must release for a rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Needs {
    /// Clipped gradients.
    Gradients,
    /// Clipped gradients, multiplied by [`Optimizer::scales`](super::Optimizer::scales) before clipping.
    Scaled,
    /// Clipped gradients, followed by the squares of their entries.
    Squares {
        /// |lambda x^2| / |x|, as in [`Rule::JointAdam`].
        ratio: f64,
    },
}

impl Rule {
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
            Self::ScaledAdam { beta1, beta2, damping, .. } => check_damped(beta1, beta2, damping)?,
            Self::JointAdam { beta1, beta2, damping, ratio, .. } => {
                check_damped(beta1, beta2, damping)?;
                check_ratio(ratio)?;
            }
        }
        Ok(self)
    }

    /// The learning rate of any rule.
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
            | Self::Adam { learning_rate, .. }
            | Self::ScaledAdam { learning_rate, .. }
            | Self::JointAdam { learning_rate, .. } => learning_rate,
        }
    }

    /// This rule with another learning rate.
    pub fn with_learning_rate(mut self, rate: f64) -> Self {
        match &mut self {
            Self::Sgd { learning_rate, .. }
            | Self::Nesterov { learning_rate, .. }
            | Self::Ftrl { learning_rate, .. }
            | Self::Adam { learning_rate, .. }
            | Self::ScaledAdam { learning_rate, .. }
            | Self::JointAdam { learning_rate, .. } => *learning_rate = rate,
        }
        self
    }

    /// The numbers that a step must release for this rule.
    pub fn needs(&self) -> Needs {
        match *self {
            Self::Sgd { .. } | Self::Nesterov { .. } | Self::Ftrl { .. } | Self::Adam { .. } => {
                Needs::Gradients
            }
            Self::ScaledAdam { .. } => Needs::Scaled,
            Self::JointAdam { ratio, .. } => Needs::Squares { ratio },
        }
    }

    /// How many numbers a step must release for this rule, for a model of `parameters` parameters.
    ///
    /// ```
    /// use antinoise_train::optimizer::Rule;
    /// let (beta1, beta2, damping) = (0.9, 0.999, 0.1);
    /// let rule = Rule::JointAdam { learning_rate: 0.001, beta1, beta2, damping, ratio: 0.5 };
    /// assert_eq!(rule.released(650), 1300);
    /// ```
    pub fn released(&self, parameters: usize) -> usize {
        match self.needs() {
            Needs::Gradients | Needs::Scaled => parameters,
            Needs::Squares { .. } => 2 * parameters,
        }
    }

    /// The rule for training without privacy: Adam in place of its private forms.
    pub(crate) fn of_gradients(self) -> Self {
        match self {
            Self::ScaledAdam { learning_rate, beta1, beta2, .. }
            | Self::JointAdam { learning_rate, beta1, beta2, .. } => {
                Self::Adam { learning_rate, beta1, beta2, epsilon: 1e-8 }
            }
            rule => rule,
        }
    }

    /// Which vectors of the model's dimension the rule stores: (first, second) moments; for FTRL, the sum and
    /// the start.
    pub(super) fn remembers(self) -> (bool, bool) {
        match self {
            Self::Sgd { momentum, .. } | Self::Nesterov { momentum, .. } => (momentum != 0.0, false),
            Self::Ftrl { .. } | Self::Adam { .. } | Self::ScaledAdam { .. } | Self::JointAdam { .. } => {
                (true, true)
            }
        }
    }
}

/// Minimum damping: below it, single precision distorts the scales.
const LEAST_DAMPING: f64 = 1e-6;

fn check_damped(beta1: f64, beta2: f64, damping: f64) -> Result<(), InvalidParameter> {
    below_one("beta1", beta1)?;
    below_one("beta2", beta2)?;
    if positive("damping", damping)? < LEAST_DAMPING {
        return Err(InvalidParameter::new("damping", damping, "at least 1e-6"));
    }
    Ok(())
}

/// Refuses a ratio above 1.
pub(crate) fn check_ratio(ratio: f64) -> Result<(), InvalidParameter> {
    if positive("ratio of squares", ratio)? > 1.0 {
        return Err(InvalidParameter::new("ratio of squares", ratio, "at most 1"));
    }
    Ok(())
}

/// Refuses rates outside single precision, in which parameters and steps are computed.
fn check_rate(rate: f64) -> Result<(), InvalidParameter> {
    if (f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX)).contains(&positive("learning_rate", rate)?) {
        return Ok(());
    }
    let must_be = "from 1.2e-38 to 3.4e38, as single precision holds it";
    Err(InvalidParameter::new("learning_rate", format!("{rate:e}"), must_be))
}
