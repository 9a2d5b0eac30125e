//! Learning rates over a run, as fractions of the full rate.

use std::fmt;
use std::str::FromStr;

use antinoise_input::{InvalidParameter, between};
use serde::{Deserialize, Serialize};

/// The learning rate over a run: it rises over `warm_up` steps, stays constant, and falls according to
/// `decay`.
///
/// Step t = 0, 1, ... of n has the full rate times
///
/// ```text
/// (t + 1) / warm_up                            while t + 1 < warm_up
/// 1                                            up to the step s where the decay begins
/// from 1 at s to `last` at the last step       after it
/// ```
///
/// s is the last step of the warm-up for [`Decay::Linear`] and [`Decay::Cosine`]. [`Decay::Drop`] and
/// [`Decay::Steps`] fall in jumps instead.
///
/// ```
/// use antinoise_train::optimizer::{Decay, Schedule};
/// let schedule = Schedule { warm_up: 2, decay: Decay::Linear { last: 0.0 } };
/// assert_eq!(schedule.shares(6), [0.5, 1.0, 0.75, 0.5, 0.25, 0.0]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Steps until the full rate is reached; 0 and 1 mean no warm-up.
    pub warm_up: usize,
    /// How the rate falls.
    pub decay: Decay,
}

/// Decay of the learning rate; `last` is the fraction of the full rate at the last step.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Decay {
    /// No decay.
    #[default]
    Constant,
    /// Falls by equal amounts at each step.
    Linear {
        /// The last step's fraction of the full rate, in \[0, 1\].
        last: f64,
    },
    /// Falls as half a period of the cosine.
    ///
    /// # Source
    /// I. Loshchilov, F. Hutter, SGDR, arXiv:1608.03983, without restarts.
    Cosine {
        /// The last step's fraction of the full rate, in \[0, 1\].
        last: f64,
    },
    /// Falls by equal amounts at each step of the last `share` of all steps.
    ///
    /// # Source
    /// C. Choquette-Choo et al., Multi-epoch matrix factorization mechanisms, 2023, Appendix E: the last
    /// quarter.
    Cooldown {
        /// Fraction of all steps, above 0 and at most 1.
        share: f64,
        /// The last step's fraction of the full rate, in \[0, 1\].
        last: f64,
    },
    /// Falls once, by a jump: the last `share` of all steps have `last` times the full rate, except steps of
    /// the warm-up.
    ///
    /// # Source
    /// S. Denisov et al., Improved differential privacy for SGD via optimal private linear operators on
    /// adaptive streams, 2022, Section 5.
    Drop {
        /// Fraction of all steps, above 0 and at most 1.
        share: f64,
        /// Fraction of the full rate after the jump, in \[0, 1\].
        last: f64,
    },
    /// Falls in jumps: the steps after the warm-up are cut into `parts` equal parts, and part i = 0, 1, ...
    /// has the full rate times `factor`^i.
    Steps {
        /// Number of parts, at least 1.
        parts: usize,
        /// Factor from one part to the next, in \[0, 1\].
        factor: f64,
    },
}

impl Schedule {
    /// Whether every step has the full rate.
    pub fn is_constant(&self) -> bool {
        self.warm_up <= 1 && self.decay == Decay::Constant
    }

    /// Refuses a schedule that does not fit a run of `steps` steps.
    ///
    /// # Errors
    /// Names the number that is out of range: a warm-up that does not end before the last step, a fraction
    /// outside its range, or a decay that leaves every step without a learning rate.
    pub fn check(&self, steps: usize) -> Result<(), InvalidParameter> {
        if self.warm_up > 1 && self.warm_up >= steps {
            let must_be = format!("below the {steps} steps of the run");
            return Err(InvalidParameter::new("warm_up", self.warm_up, must_be));
        }
        self.decay.check()?;
        if steps > 0 && (0..steps).all(|step| self.share(step, steps) == 0.0) {
            let must_be = "one with a learning rate above 0 at some step";
            return Err(InvalidParameter::new("schedule", self.decay, must_be));
        }
        Ok(())
    }

    /// The factor on the learning rate at step `step` of `steps`.
    pub fn share(&self, step: usize, steps: usize) -> f64 {
        if step + 1 < self.warm_up {
            return (step + 1) as f64 / self.warm_up as f64;
        }
        let start = self.decay_start(steps);
        let way = step.saturating_sub(start) as f64 / (steps - 1).saturating_sub(start).max(1) as f64;
        match self.decay {
            Decay::Constant => 1.0,
            Decay::Linear { last } | Decay::Cooldown { last, .. } => 1.0 - (1.0 - last) * way,
            Decay::Drop { share, last } => {
                if steps - step <= part(share, steps) {
                    last
                } else {
                    1.0
                }
            }
            Decay::Cosine { last } => last + (1.0 - last) * 0.5 * (1.0 + (std::f64::consts::PI * way).cos()),
            Decay::Steps { parts, factor } => {
                let part = (step - start) as f64 * parts as f64 / (steps - start) as f64;
                factor.powi(part as i32)
            }
        }
    }

    /// The factors of all steps.
    pub fn shares(&self, steps: usize) -> Vec<f64> {
        (0..steps).map(|step| self.share(step, steps)).collect()
    }

    /// The last step with the full rate before the decay.
    pub(super) fn decay_start(&self, steps: usize) -> usize {
        let warm = self.warm_up.saturating_sub(1);
        match self.decay {
            Decay::Cooldown { share, .. } => (steps - 1).saturating_sub(part(share, steps)).max(warm),
            _ => warm,
        }
    }
}

/// The number of steps that are a fraction `share` of `steps`.
fn part(share: f64, steps: usize) -> usize {
    (share * steps as f64).round() as usize
}

impl Decay {
    /// Refuses fractions outside their range.
    fn check(self) -> Result<(), InvalidParameter> {
        if let Self::Cooldown { share, .. } | Self::Drop { share, .. } = self
            && !(share > 0.0 && share <= 1.0)
        {
            return Err(InvalidParameter::new("share of the schedule", share, "above 0 and at most 1"));
        }
        if let Self::Steps { parts, factor } = self {
            between("parts of the schedule", parts, 1, MAX_PARTS, "the most jumps of a rate")?;
            if !(0.0..=1.0).contains(&factor) {
                return Err(InvalidParameter::new("factor of the schedule", factor, "from 0 to 1"));
            }
        }
        match self {
            Self::Linear { last }
            | Self::Cosine { last }
            | Self::Cooldown { last, .. }
            | Self::Drop { last, .. }
                if !(0.0..=1.0).contains(&last) =>
            {
                let must_be = "from 0 to 1: the last step's share of the learning rate";
                Err(InvalidParameter::new("last of the schedule", last, must_be))
            }
            _ => Ok(()),
        }
    }
}

/// Maximum number of parts of [`Decay::Steps`].
const MAX_PARTS: usize = 1_000_000;

/// The forms on the command line.
const FORMS: &str =
    "constant, linear[:LAST], cosine[:LAST], cooldown:SHARE[,LAST], drop:SHARE,LAST or steps:PARTS,FACTOR";

impl fmt::Display for Decay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => f.write_str("constant"),
            Self::Linear { last } => write!(f, "linear:{last}"),
            Self::Cosine { last } => write!(f, "cosine:{last}"),
            Self::Cooldown { share, last } => write!(f, "cooldown:{share},{last}"),
            Self::Drop { share, last } => write!(f, "drop:{share},{last}"),
            Self::Steps { parts, factor } => write!(f, "steps:{parts},{factor}"),
        }
    }
}

impl FromStr for Decay {
    type Err = InvalidParameter;

    /// Parses the form of the command line; `last` defaults to 0.
    ///
    /// ```
    /// use antinoise_train::optimizer::Decay;
    /// assert_eq!("cooldown:0.25".parse::<Decay>()?, Decay::Cooldown { share: 0.25, last: 0.0 });
    /// # Ok::<(), antinoise_input::InvalidParameter>(())
    /// ```
    fn from_str(text: &str) -> Result<Self, InvalidParameter> {
        let refused = || InvalidParameter::new("schedule", format!("{text:?}"), FORMS);
        let (kind, arguments) = text.split_once(':').unwrap_or((text, ""));
        let numbers = match arguments {
            "" if text.ends_with(':') => return Err(refused()),
            "" => Vec::new(),
            list => {
                let numbers: Result<Vec<f64>, _> = list.split(',').map(|x| x.trim().parse()).collect();
                numbers.map_err(|_| refused())?
            }
        };
        let decay = match (kind, &numbers[..]) {
            ("constant", []) => Self::Constant,
            ("linear", []) => Self::Linear { last: 0.0 },
            ("linear", &[last]) => Self::Linear { last },
            ("cosine", []) => Self::Cosine { last: 0.0 },
            ("cosine", &[last]) => Self::Cosine { last },
            ("cooldown", &[share]) => Self::Cooldown { share, last: 0.0 },
            ("cooldown", &[share, last]) => Self::Cooldown { share, last },
            ("drop", &[share, last]) => Self::Drop { share, last },
            ("steps", &[parts, factor]) if parts.fract() == 0.0 && parts >= 0.0 => {
                Self::Steps { parts: parts as usize, factor }
            }
            _ => return Err(refused()),
        };
        decay.check()?;
        Ok(decay)
    }
}
