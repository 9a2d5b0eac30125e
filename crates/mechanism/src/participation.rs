//! Participation schemas Pi (which steps one unit may take part in), adjacency and the privacy unit.

use std::fmt;

use antinoise_input::{InvalidParameter, between};
use serde::{Deserialize, Serialize};

use crate::Result;

/// The set Pi of step patterns in which one privacy unit may take part.
///
/// `Cyclic` is a subset of `MinSep` with the same numbers; they are not interchangeable.
///
/// ```
/// use antinoise_mechanism::Participation;
/// let schema: Participation = "cyclic:100,20".parse()?;
/// assert_eq!(schema, Participation::Cyclic { min_sep: 100, max_participations: 20 });
/// assert!(schema.check(1900).is_err()); // the 20th turn needs step 1901
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Participation {
    /// At most one step: streaming, one epoch.
    Single,
    /// Every step.
    FullBatch,
    /// Steps phase, phase + b, phase + 2b, ..., at most k of them, for one phase in 0..b.
    Cyclic {
        /// b.
        min_sep: usize,
        /// k.
        max_participations: usize,
    },
    /// At most k steps, any two at least b apart.
    MinSep {
        /// b.
        min_sep: usize,
        /// k.
        max_participations: usize,
    },
    /// The steps of one of the listed patterns, or some of them.
    Patterns {
        /// Each strictly increasing and not empty.
        patterns: Vec<Vec<usize>>,
    },
}

impl Participation {
    /// (b, k) over `steps` steps: the separation and the number of participations of the densest pattern that
    /// starts at step 0. Single is (n, 1) and FullBatch (1, n); of listed patterns the least separation and
    /// the longest pattern, so that they are among those of min-sep.
    pub fn separation(&self, steps: usize) -> (usize, usize) {
        match self {
            Self::Single => (steps, 1),
            Self::FullBatch => (1, steps),
            Self::Cyclic { min_sep, max_participations } | Self::MinSep { min_sep, max_participations } => {
                (*min_sep, *max_participations)
            }
            Self::Patterns { patterns } => {
                let gaps =
                    patterns.iter().flat_map(|pattern| pattern.windows(2)).map(|pair| pair[1] - pair[0]);
                (gaps.min().unwrap_or(steps), patterns.iter().map(Vec::len).max().unwrap_or(0))
            }
        }
    }

    /// The most participations `min_sep` apart that fit in `steps` steps: floor((n - 1) / b) + 1.
    pub(crate) fn most(steps: usize, min_sep: usize) -> usize {
        (steps - 1) / min_sep + 1
    }

    /// The patterns of a run of `run` steps that is cut short after `steps` of them; none where nobody takes part before.
    ///
    /// ```
    /// use antinoise_mechanism::Participation;
    /// let schema = Participation::Cyclic { min_sep: 100, max_participations: 20 };
    /// let cut = Participation::Cyclic { min_sep: 100, max_participations: 3 };
    /// assert_eq!((schema.within(250), schema.within(100)), (Some(cut), Some(Participation::Single)));
    /// ```
    pub fn within(&self, steps: usize) -> Option<Self> {
        let fits = |min_sep: usize, most: usize| most.min(Self::most(steps.max(1), min_sep.max(1)));
        Some(match *self {
            _ if steps == 0 => return None,
            Self::Single => Self::Single,
            Self::FullBatch => Self::FullBatch,
            Self::Cyclic { min_sep, max_participations } => match fits(min_sep, max_participations) {
                0 | 1 => Self::Single,
                max_participations => Self::Cyclic { min_sep, max_participations },
            },
            Self::MinSep { min_sep, max_participations } => match fits(min_sep, max_participations) {
                0 | 1 => Self::Single,
                max_participations => Self::MinSep { min_sep, max_participations },
            },
            Self::Patterns { ref patterns } => {
                let before = |pattern: &Vec<usize>| -> Vec<usize> {
                    pattern.iter().copied().take_while(|&step| step < steps).collect()
                };
                let patterns: Vec<_> =
                    patterns.iter().map(before).filter(|pattern| !pattern.is_empty()).collect();
                return (!patterns.is_empty()).then_some(Self::Patterns { patterns });
            }
        })
    }

    /// Refuses a schema that does not fit in `steps` steps: n, b, k at least 1 and k b <= n + b - 1, so that k
    /// participations b apart fit.
    ///
    /// Listed patterns must be strictly increasing steps, and at least one of them.
    ///
    /// # Errors
    /// Names `steps`, `min_sep`, `max_participations` or the pattern.
    pub fn check(&self, steps: usize) -> Result<()> {
        antinoise_input::at_least("steps", steps, 1)?;
        if let Self::Patterns { patterns } = self {
            return check_patterns(patterns, steps);
        }
        let (b, k) = self.separation(steps);
        between("min_sep", b, 1, steps, "steps")?;
        between("max_participations", k, 1, Self::most(steps, b), "(steps - 1) / min_sep + 1")?;
        Ok(())
    }
}

fn check_patterns(patterns: &[Vec<usize>], steps: usize) -> Result<()> {
    antinoise_input::at_least("number of patterns", patterns.len(), 1)?;
    for (i, pattern) in patterns.iter().enumerate() {
        let increasing = pattern.windows(2).all(|pair| pair[0] < pair[1]);
        if !increasing || pattern.last().is_none_or(|&last| last >= steps) {
            let must_be = format!("one or more strictly increasing steps below {steps}");
            return Err(InvalidParameter::new(format!("pattern {i}"), format!("{pattern:?}"), must_be).into());
        }
    }
    Ok(())
}

impl fmt::Display for Participation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Single => f.write_str("single"),
            Self::FullBatch => f.write_str("full-batch"),
            Self::Cyclic { min_sep, max_participations } => {
                write!(f, "cyclic:{min_sep},{max_participations}")
            }
            Self::MinSep { min_sep, max_participations } => {
                write!(f, "min-sep:{min_sep},{max_participations}")
            }
            Self::Patterns { patterns } => write!(f, "{} listed patterns", patterns.len()),
        }
    }
}

impl std::str::FromStr for Participation {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self> {
        let refused = || {
            InvalidParameter::new(
                "participation",
                format!("{text:?}"),
                "single, full-batch, cyclic:B,K or min-sep:B,K with whole numbers B and K",
            )
        };
        let (kind, numbers) = text.split_once(':').unwrap_or((text, ""));
        let pair = || {
            let (b, k) = numbers.split_once(',')?;
            Some((b.trim().parse().ok()?, k.trim().parse().ok()?))
        };
        match (kind, numbers, pair()) {
            ("single", "", _) => Ok(Self::Single),
            ("full-batch", "", _) => Ok(Self::FullBatch),
            ("cyclic", _, Some((min_sep, max_participations))) => {
                Ok(Self::Cyclic { min_sep, max_participations })
            }
            ("min-sep", _, Some((min_sep, max_participations))) => {
                Ok(Self::MinSep { min_sep, max_participations })
            }
            _ => Err(refused().into()),
        }
    }
}

/// Which two datasets a privacy statement compares.
///
/// ```
/// use antinoise_mechanism::Adjacency;
/// assert_eq!(Adjacency::ReplaceOne.sensitivity_factor(), 2.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Adjacency {
    /// One unit's contributions are replaced by zero.
    #[default]
    ZeroOut,
    /// One unit's contributions are replaced by another's: twice the distance.
    ReplaceOne,
}

impl Adjacency {
    /// How far one participation moves the sum of clipped gradients, in clip norms.
    pub fn sensitivity_factor(self) -> f64 {
        match self {
            Self::ZeroOut => 1.0,
            Self::ReplaceOne => 2.0,
        }
    }
}

impl fmt::Display for Adjacency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ZeroOut => "zero-out",
            Self::ReplaceOne => "replace-one",
        })
    }
}

impl std::str::FromStr for Adjacency {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "zero-out" => Ok(Self::ZeroOut),
            "replace-one" => Ok(Self::ReplaceOne),
            _ => {
                Err(InvalidParameter::new("adjacency", format!("{text:?}"), "zero-out or replace-one").into())
            }
        }
    }
}

/// Whose data the statement protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrivacyUnit {
    /// One training example.
    #[default]
    Example,
    /// All the examples of one user.
    User,
}

impl fmt::Display for PrivacyUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Example => "example",
            Self::User => "user",
        })
    }
}
