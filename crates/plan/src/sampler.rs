//! Samplers: how batches are formed, and what follows for sizes and distances.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How batches are formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Sampler {
    /// Examples are shuffled once and cut into groups, whose sizes differ by at most one; step t takes group
    /// t mod groups.
    Cyclic {
        /// Number of groups, which is the number of steps in an epoch.
        groups: usize,
    },
    /// Examples are shuffled anew in every epoch and cut into groups, whose sizes differ by at most one; each
    /// step of the epoch takes one group.
    Shuffled {
        /// Number of groups, which is the number of steps in an epoch.
        groups: usize,
    },
    /// Block-cyclic Poisson: examples are shuffled once and cut into groups as for cyclic batches; step t
    /// takes every example of group t mod groups independently with probability groups batch_size / examples.
    /// One group is plain Poisson sampling.
    Poisson {
        /// Number of groups: an example's group has its turn in every `groups`-th step.
        #[serde(default = "one")]
        groups: usize,
    },
    /// Truncated Poisson: as Poisson, but of a batch of more than `max_batch_size` examples, that many are
    /// drawn uniformly at random, so that batches can be padded to one size.
    TruncatedPoisson {
        /// Number of groups, as for Poisson batches.
        groups: usize,
        /// Maximum number of examples in a batch.
        max_batch_size: usize,
    },
    /// Balls in bins: every example is assigned to a bin, uniformly at random, independently and for the
    /// whole run; step t takes the examples of bin t mod bins.
    BallsInBins {
        /// Number of bins: an example takes part in every `bins`-th step.
        bins: usize,
    },
    /// b-min-sep: after a participation an example sits out `min_sep - 1` steps; otherwise it joins a step
    /// independently with probability B / (N - (min_sep - 1) B). At the start it sits out j steps with
    /// probability B/N for each j from 1 to `min_sep - 1`, so that every batch has B of N examples on
    /// average.
    BMinSep {
        /// b: smallest number of steps between two participations of an example.
        min_sep: usize,
    },
    /// Examples are taken once, in their given order: step t takes the examples from t batch_size up to
    /// (t + 1) batch_size. Nothing is random.
    Stream,
    /// Batches are formed outside of this library; the program that forms them must enforce the schema.
    External,
}

fn one() -> usize {
    1
}

impl fmt::Display for Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Cyclic { groups } | Self::Shuffled { groups } | Self::Poisson { groups } => {
                write!(f, " (groups: {groups})")
            }
            Self::TruncatedPoisson { groups, max_batch_size } => {
                write!(f, " (groups: {groups}, max_batch_size: {max_batch_size})")
            }
            Self::BallsInBins { bins } => write!(f, " (bins: {bins})"),
            Self::BMinSep { min_sep } => write!(f, " (min_sep: {min_sep})"),
            Self::Stream | Self::External => Ok(()),
        }
    }
}

impl Sampler {
    /// The expected number of examples in a batch, by which the noisy sum is divided.
    ///
    /// ```
    /// use antinoise_plan::Sampler;
    /// assert_eq!(Sampler::Cyclic { groups: 4 }.expected_batch_size(10, 2), 2.5);
    /// assert_eq!(Sampler::Poisson { groups: 3 }.expected_batch_size(10, 2), 2.0);
    /// ```
    pub fn expected_batch_size(self, examples: usize, batch_size: usize) -> f64 {
        match self {
            Self::Cyclic { groups } | Self::Shuffled { groups } | Self::BallsInBins { bins: groups } => {
                examples as f64 / groups as f64
            }
            Self::Poisson { .. }
            | Self::TruncatedPoisson { .. }
            | Self::BMinSep { .. }
            | Self::Stream
            | Self::External => batch_size as f64,
        }
    }

    /// The name of the sampler in plans and messages.
    ///
    /// ```
    /// assert_eq!(antinoise_plan::Sampler::BallsInBins { bins: 4 }.name(), "balls-in-bins");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Self::Cyclic { .. } => "cyclic",
            Self::Shuffled { .. } => "shuffled",
            Self::Poisson { .. } => "poisson",
            Self::TruncatedPoisson { .. } => "truncated-poisson",
            Self::BallsInBins { .. } => "balls-in-bins",
            Self::BMinSep { .. } => "b-min-sep",
            Self::Stream => "stream",
            Self::External => "external",
        }
    }

    /// Whether each example's steps are drawn independently of the other examples. Then no other example's
    /// steps change when one is added to the data or removed. Groups of equal size are not drawn so.
    ///
    /// ```
    /// use antinoise_plan::Sampler;
    /// assert!(Sampler::Poisson { groups: 1 }.draws_examples_independently());
    /// assert!(!Sampler::Cyclic { groups: 4 }.draws_examples_independently());
    /// ```
    pub fn draws_examples_independently(self) -> bool {
        match self {
            Self::Poisson { groups } | Self::TruncatedPoisson { groups, .. } => groups == 1,
            Self::BallsInBins { .. } | Self::BMinSep { .. } => true,
            Self::Cyclic { .. } | Self::Shuffled { .. } | Self::Stream | Self::External => false,
        }
    }

    /// The distance between two participations of an example; `None` if the sampler does not determine it.
    ///
    /// ```
    /// use antinoise_plan::{Sampler, Spacing};
    /// let spacing = Sampler::BMinSep { min_sep: 3 }.spacing();
    /// assert_eq!(spacing, Some(Spacing { steps: 3, is_exact: false }));
    /// ```
    pub fn spacing(self) -> Option<Spacing> {
        let (steps, is_exact) = match self {
            Self::Cyclic { groups }
            | Self::Poisson { groups }
            | Self::TruncatedPoisson { groups, .. }
            | Self::BallsInBins { bins: groups } => (groups, true),
            Self::BMinSep { min_sep } => (min_sep, false),
            Self::Shuffled { .. } | Self::Stream | Self::External => return None,
        };
        Some(Spacing { steps, is_exact })
    }

    /// The maximum size at which batches are cut, and to which loaders pad them; `None` if they are not cut.
    ///
    /// ```
    /// use antinoise_plan::Sampler;
    /// let sampler = Sampler::TruncatedPoisson { groups: 1, max_batch_size: 64 };
    /// assert_eq!((sampler.max_batch_size(), Sampler::Stream.max_batch_size()), (Some(64), None));
    /// ```
    pub fn max_batch_size(self) -> Option<usize> {
        match self {
            Self::TruncatedPoisson { max_batch_size, .. } => Some(max_batch_size),
            Self::Cyclic { .. }
            | Self::Shuffled { .. }
            | Self::Poisson { .. }
            | Self::BallsInBins { .. }
            | Self::BMinSep { .. }
            | Self::Stream
            | Self::External => None,
        }
    }

    /// (n, p): the size of the batch of step `step`, before it is cut at its maximum, is Binomial(n, p).
    /// `None` if no batches are formed.
    pub(crate) fn batch_size_law(
        self,
        step: usize,
        examples: usize,
        batch_size: usize,
    ) -> Option<(usize, f64)> {
        let rate = |groups: usize| (groups as f64 * batch_size as f64 / examples as f64).min(1.0);
        let group = |groups: usize| {
            let start = |g: usize| start_of_group(g, groups, examples);
            start(step % groups + 1) - start(step % groups)
        };
        match self {
            Self::Cyclic { groups } | Self::Shuffled { groups } => Some((group(groups), 1.0)),
            Self::Poisson { groups } | Self::TruncatedPoisson { groups, .. } => {
                Some((group(groups), rate(groups)))
            }
            Self::BallsInBins { bins } => Some((examples, 1.0 / bins as f64)),
            Self::BMinSep { .. } => Some((examples, rate(1))),
            Self::Stream => Some((batch_size, 1.0)),
            Self::External => None,
        }
    }
}

/// The distance between two participations of an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spacing {
    /// The smallest distance, in steps.
    pub steps: usize,
    /// Whether every distance is a multiple of the smallest, as in a group or a bin.
    pub is_exact: bool,
}

/// The first example of group `g` among `groups` groups, whose sizes differ by at most one.
pub(crate) fn start_of_group(g: usize, groups: usize, examples: usize) -> usize {
    (g as u128 * examples as u128 / groups as u128) as usize
}
