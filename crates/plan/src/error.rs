//! Errors of making, reading and verifying plans.

use std::path::{Path, PathBuf};

use antinoise_input::{BadInput, InvalidParameter, printable};

/// The error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter that cannot be used.
    #[error(transparent)]
    Invalid(#[from] InvalidParameter),
    /// A mechanism could not be designed.
    #[error(transparent)]
    Mechanism(#[from] antinoise_mechanism::Error),
    /// Epsilon, delta or the noise could not be computed.
    #[error(transparent)]
    Accounting(#[from] antinoise_accounting::Error),
    /// A figure of the plan does not follow from its other numbers.
    #[error(
        "the plan's {what} is {stated} but its numbers give {found}: it was altered or made by other code"
    )]
    Unsound {
        /// The figure that is wrong.
        what: Figure,
        /// The value in the plan.
        stated: String,
        /// The recomputed value.
        found: String,
    },
    /// A file is not a plan.
    #[error("{}: not a plan: {reason}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

/// A figure of a plan that follows from its other numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Figure {
    /// The accountant by which epsilon is computed.
    Accountant,
    /// The relation between neighbouring data sets.
    Adjacency,
    /// The participation schema of the sampler.
    Participation,
    /// The number of groups of the sampler.
    Groups,
    /// The number of steps of the strategy.
    Steps,
    /// The factor by which rounding increases the sensitivity.
    RoundingFactor,
    /// The sensitivity of the strategy under the schema.
    Sensitivity,
    /// The upper bound on epsilon.
    Epsilon,
    /// The lower bound on epsilon.
    EpsilonLower,
    /// The failure probability of a statistical accountant.
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

impl BadInput for Error {
    fn is_bad_input(&self) -> bool {
        match self {
            Self::Invalid(_) | Self::Unsound { .. } | Self::Format { .. } => true,
            Self::Mechanism(error) => error.is_bad_input(),
            Self::Accounting(error) => error.is_bad_input(),
            Self::Io { source, .. } => source.is_bad_input(),
        }
    }

    fn file(&self) -> Option<(&Path, &std::io::Error)> {
        match self {
            Self::Io { path, source } => Some((path, source)),
            _ => None,
        }
    }
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        |source| Self::Io { path, source }
    }
}

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Returns the error for a figure that does not follow from the plan's other numbers.
pub(crate) fn unsound(what: Figure, stated: impl ToString, found: impl ToString) -> Error {
    // Values may come from an untrusted file, so that they are made printable and one line long.
    let one_line = |text: String| printable(&text.replace('\n', " "));
    Error::Unsound { what, stated: one_line(stated.to_string()), found: one_line(found.to_string()) }
}
