//! Participation schemas Pi (the steps in which one unit may take part), adjacency and the privacy unit.

use std::fmt;

use antinoise_input::{InvalidParameter, between};
use serde::{Deserialize, Serialize};

use crate::Result;

/// A participation schema Pi: the set of patterns of steps in which one privacy unit may take part.
///
/// The patterns of `Cyclic` are a subset of those of `MinSep` with the same numbers, so that the two are not
/// interchangeable.
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
    /// One participation at most: streaming, or one epoch.
    Single,
    /// Every step.
    FullBatch,
    /// The first k of the steps phase, phase + b, phase + 2b, ..., or some of these, for one phase in 0..b.
    Cyclic {
        /// b: minimum number of steps from one participation to the next.
        min_sep: usize,
        /// k: maximum number of participations.
        max_participations: usize,
    },
    /// At most k steps, any two at least b apart.
    MinSep {
        /// b: minimum number of steps from one participation to the next.
        min_sep: usize,
        /// k: maximum number of participations.
        max_participations: usize,
    },
    /// At most one of the first b steps, one of the next b, and so on: once in each epoch, at any step of it.
    EachEpoch {
        /// b: number of steps of an epoch.
        epoch_steps: usize,
    },
    /// The steps of one of the listed patterns, or a subset of them.
    Patterns {
        /// Patterns, each strictly increasing and not empty.
        patterns: Vec<Vec<usize>>,
    },
}

/// The minimum separation of one unit's participations, and their maximum number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Separation {
    /// b: minimum number of steps from one participation to the next.
    pub min_sep: usize,
    /// k: maximum number of participations.
    pub max_participations: usize,
}

impl Separation {
    /// Returns whether columns of a C with `bands` bands are orthogonal if a unit takes part in both steps.
    pub(crate) fn is_orthogonal(self, bands: usize) -> bool {
        self.max_participations == 1 || bands <= self.min_sep
    }
}

impl Participation {
    /// Returns the separation over n = `steps` steps, and the number of participations of the densest pattern
    /// that begins at step 0: (n, 1) for `Single` and (1, n) for `FullBatch`. For epochs and listed patterns
    /// they are the smallest separation and the length of the longest pattern, so that every pattern is one
    /// of min-sep with these numbers.
    pub fn separation(&self, steps: usize) -> Separation {
        let (min_sep, max_participations) = match self {
            Self::Single => (steps, 1),
            Self::FullBatch => (1, steps),
            Self::Cyclic { min_sep, max_participations } | Self::MinSep { min_sep, max_participations } => {
                (*min_sep, *max_participations)
            }
            Self::EachEpoch { epoch_steps } => (1, steps.div_ceil(*epoch_steps.max(&1))),
            Self::Patterns { patterns } => {
                let gaps =
                    patterns.iter().flat_map(|pattern| pattern.windows(2)).map(|pair| pair[1] - pair[0]);
                (gaps.min().unwrap_or(steps), patterns.iter().map(Vec::len).max().unwrap_or(0))
            }
        };
        Separation { min_sep, max_participations }
    }

    /// Returns the number of steps of an epoch, in each of which a unit takes part at most once; `None` for
    /// schemas without epochs.
    ///
    /// ```
    /// use antinoise_mechanism::Participation;
    /// assert_eq!(Participation::EachEpoch { epoch_steps: 10 }.epoch_steps(), Some(10));
    /// assert_eq!(Participation::Single.epoch_steps(), None);
    /// ```
    pub fn epoch_steps(&self) -> Option<usize> {
        if let Self::EachEpoch { epoch_steps } = self { Some(*epoch_steps) } else { None }
    }

    /// Returns the min-sep schema with this separation, limited to the participations that fit in `steps`
    /// steps; `Single` if only one fits.
    pub(crate) fn min_sep(steps: usize, separation: Separation) -> Self {
        let Separation { min_sep, max_participations } = separation;
        Self::MinSep { min_sep, max_participations }.limited_to(steps)
    }

    /// Limits a cyclic or min-sep schema to the participations that fit in `steps` steps; returns `Single` if
    /// only one fits.
    fn limited_to(&self, steps: usize) -> Self {
        self.map_separation(|b, k| (b, k.min(max_that_fit(steps, b.max(1))))).single_if_once()
    }

    /// Maps the separation (b, k) of cyclic and min-sep schemas by `f`; other schemas are unchanged.
    pub(crate) fn map_separation(&self, f: impl Fn(usize, usize) -> (usize, usize)) -> Self {
        match *self {
            Self::Single | Self::FullBatch | Self::EachEpoch { .. } | Self::Patterns { .. } => self.clone(),
            Self::Cyclic { min_sep, max_participations } => {
                let (min_sep, max_participations) = f(min_sep, max_participations);
                Self::Cyclic { min_sep, max_participations }
            }
            Self::MinSep { min_sep, max_participations } => {
                let (min_sep, max_participations) = f(min_sep, max_participations);
                Self::MinSep { min_sep, max_participations }
            }
        }
    }

    /// Replaces a schema of at most one participation by `Single`.
    fn single_if_once(self) -> Self {
        match self {
            Self::Cyclic { max_participations: 0 | 1, .. }
            | Self::MinSep { max_participations: 0 | 1, .. } => Self::Single,
            Self::Single
            | Self::FullBatch
            | Self::Cyclic { .. }
            | Self::MinSep { .. }
            | Self::EachEpoch { .. }
            | Self::Patterns { .. } => self,
        }
    }

    /// Returns the schema restricted to the first `steps` steps, or `None` if every participation lies later.
    ///
    /// ```
    /// use antinoise_mechanism::Participation;
    /// let schema = Participation::Cyclic { min_sep: 100, max_participations: 20 };
    /// let cut = Participation::Cyclic { min_sep: 100, max_participations: 3 };
    /// assert_eq!((schema.truncated_to(250), schema.truncated_to(100)), (Some(cut), Some(Participation::Single)));
    /// ```
    pub fn truncated_to(&self, steps: usize) -> Option<Self> {
        if steps == 0 {
            return None;
        }
        if matches!(self, Self::EachEpoch { epoch_steps } if *epoch_steps >= steps) {
            return Some(Self::Single);
        }
        let Self::Patterns { patterns } = self else {
            return Some(self.limited_to(steps));
        };
        let before = |pattern: &Vec<usize>| -> Vec<usize> {
            pattern.iter().copied().take_while(|&step| step < steps).collect()
        };
        let patterns: Vec<_> = patterns.iter().map(before).filter(|pattern| !pattern.is_empty()).collect();
        (!patterns.is_empty()).then_some(Self::Patterns { patterns })
    }

    /// Returns the schema of one part, when a run is cut into parts of `period` steps.
    pub(crate) fn within_runs_of(&self, period: usize) -> Self {
        match self {
            Self::Cyclic { min_sep, .. } | Self::MinSep { min_sep, .. } if *min_sep >= period => Self::Single,
            Self::EachEpoch { epoch_steps } if epoch_steps.is_multiple_of(period) => Self::Single,
            Self::EachEpoch { epoch_steps } if period.is_multiple_of(*epoch_steps) => self.clone(),
            Self::EachEpoch { epoch_steps } => {
                let max_participations = (period.div_ceil(*epoch_steps) + 1).min(period);
                Self::MinSep { min_sep: 1, max_participations }.single_if_once()
            }
            Self::Single | Self::FullBatch | Self::Cyclic { .. } | Self::MinSep { .. } => {
                self.map_separation(|b, k| (b, k.min(max_that_fit(period, b))))
            }
            Self::Patterns { patterns } => {
                let of_runs = |pattern: &Vec<usize>| -> Vec<Vec<usize>> {
                    let runs = pattern.chunk_by(|t, tau| t / period == tau / period);
                    runs.map(|run| run.iter().map(|t| t % period).collect()).collect()
                };
                let mut patterns: Vec<Vec<usize>> = patterns.iter().flat_map(of_runs).collect();
                patterns.sort_unstable();
                patterns.dedup();
                Self::Patterns { patterns }
            }
        }
    }

    /// Refuses a schema that does not fit in n = `steps` steps: n, b and k must be at least 1, and k b <= n +
    /// b - 1, so that k participations b apart fit. An epoch has at most n steps. There must be at least one
    /// listed pattern, and each must be strictly increasing.
    ///
    /// # Errors
    /// When the schema does not fit. The error names `steps`, `min_sep`, `max_participations` or the pattern.
    pub fn check(&self, steps: usize) -> Result<()> {
        antinoise_input::at_least("steps", steps, 1)?;
        if let Self::Patterns { patterns } = self {
            return check_patterns(patterns, steps);
        }
        if let Self::EachEpoch { epoch_steps } = self {
            between("epoch_steps", *epoch_steps, 1, steps, "steps")?;
            return Ok(());
        }
        let Separation { min_sep: b, max_participations: k } = self.separation(steps);
        between("min_sep", b, 1, steps, "steps")?;
        between("max_participations", k, 1, max_that_fit(steps, b), "(steps - 1) / min_sep + 1")?;
        Ok(())
    }
}

/// Returns how many participations `min_sep` apart fit in `steps` steps: floor((n - 1) / b) + 1.
fn max_that_fit(steps: usize, min_sep: usize) -> usize {
    (steps - 1) / min_sep + 1
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
            Self::EachEpoch { epoch_steps } => write!(f, "each-epoch:{epoch_steps}"),
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
                "single, full-batch, cyclic:B,K, min-sep:B,K or each-epoch:B with whole numbers B and K",
            )
        };
        let (kind, numbers) = text.split_once(':').unwrap_or((text, ""));
        let pair = || {
            let (b, k) = numbers.split_once(',')?;
            Some((whole(b)?, whole(k)?))
        };
        if let ("each-epoch", Some(epoch_steps)) = (kind, whole(numbers)) {
            return Ok(Self::EachEpoch { epoch_steps });
        }
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

/// Reads a whole number, which may be written as 1e6.
fn whole(text: &str) -> Option<usize> {
    let exact = |x: &f64| (0.0..=9_007_199_254_740_992.0).contains(x) && x.fract() == 0.0;
    let in_exponents = || text.trim().parse().ok().filter(exact).map(|x| x as usize);
    text.trim().parse().ok().or_else(in_exponents)
}

/// The pairs of data sets that a privacy statement compares.
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
    /// One unit's contributions are replaced by those of another unit. This doubles the sensitivity.
    ReplaceOne,
}

impl Adjacency {
    /// Returns the maximum distance, in clip norms, by which one participation moves the sum of clipped
    /// gradients.
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

/// The unit whose data a privacy statement protects.
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
