//! Why a plan could not be made, read or believed.

use std::path::{Path, PathBuf};

use antinoise_input::{InvalidParameter, printable};

/// The error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter that cannot be used.
    #[error(transparent)]
    Invalid(#[from] InvalidParameter),
    /// No mechanism could be built.
    #[error(transparent)]
    Mechanism(#[from] antinoise_mechanism::Error),
    /// No privacy could be accounted.
    #[error(transparent)]
    Accounting(#[from] antinoise_accounting::Error),
    /// A plan whose statement does not follow from its numbers.
    #[error(
        "the plan's {what} is {stated} but its numbers give {found}: it was altered or made by other code"
    )]
    Unsound {
        /// The figure that does not hold.
        what: Figure,
        /// What the plan says.
        stated: String,
        /// What was recomputed.
        found: String,
    },
    /// A file that is not a plan.
    #[error("{}: not a plan: {reason}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file that could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
}

/// A figure of a plan that follows from its other numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Figure {
    /// The accountant that its epsilon follows from.
    Accountant,
    /// Which data sets are neighbours.
    Adjacency,
    /// The schema that its sampler keeps.
    Participation,
    /// The groups of its sampler.
    Groups,
    /// The steps of its strategy.
    Steps,
    /// What its noise is widened by for rounding.
    RoundingFactor,
    /// The sensitivity of its strategy under its schema.
    Sensitivity,
    /// The upper end of epsilon.
    Epsilon,
    /// The lower end of epsilon.
    EpsilonLower,
    /// The probability that a claim that is shown by sampling errs.
    Failure,
}

impl std::fmt::Display for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Accountant => "accountant",
            Self::Adjacency => "adjacency",
            Self::Participation => "participation",
            Self::Groups => "sampler's groups",
            Self::Steps => "strategy's steps",
            Self::RoundingFactor => "rounding_factor",
            Self::Sensitivity => "sensitivity",
            Self::Epsilon => "epsilon",
            Self::EpsilonLower => "epsilon_lower",
            Self::Failure => "failure",
        })
    }
}

impl Error {
    /// Whether the caller's input, a file among it, is the cause.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Invalid(_) | Self::Unsound { .. } | Self::Format { .. } => true,
            // A strategy whose numbers overflow was handed in, or asked for.
            Self::Mechanism(error) => {
                error.is_bad_input() || matches!(error, antinoise_mechanism::Error::Numerical(_))
            }
            Self::Accounting(error) => error.is_bad_input(),
            Self::Io { source, .. } => {
                matches!(source.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::InvalidInput)
            }
        }
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        |source| Self::Io { path, source }
    }
}

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// The error of a figure that does not hold.
pub(crate) fn unsound(what: Figure, stated: impl ToString, found: impl ToString) -> Error {
    // What is stated may come from a stranger's file, in one line.
    let one_line = |text: String| printable(&text.replace('\n', " "));
    Error::Unsound { what, stated: one_line(stated.to_string()), found: one_line(found.to_string()) }
}
