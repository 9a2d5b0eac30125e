//! The error of a study.

use std::io;
use std::path::{Path, PathBuf};

use antinoise_input::{BadInput, InvalidParameter};

/// The reason for which a study was refused or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter that cannot be used; the error names it, the value it got and what it must be.
    #[error(transparent)]
    Invalid(#[from] InvalidParameter),
    /// A file or folder that cannot be used as `parameter`.
    #[error("{parameter}: {}: {reason}", path.display())]
    File {
        /// The parameter that names the file, or the folder that holds it.
        parameter: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason, in words.
        reason: String,
    },
    /// A folder for a new study that holds one.
    #[error("out: {} already holds a run", .0.display())]
    Taken(PathBuf),
    /// A model without its checkpoint.
    #[error(
        "resume: {} is there but its checkpoint is not: to train it anew would make a second model of these data \
         under the statement of one; name another folder, and count both models",
        .0.display()
    )]
    Trained(PathBuf),
    /// Data that were read when the study began, and cannot be read now.
    #[error(
        "{0} (a path that was given without its folder is looked for in the folder where the study is resumed)"
    )]
    Data(Box<Error>),
    /// The study was asked to stop within a run; its folder resumes it.
    #[error("stopped {}{run}", place(*at))]
    Stopped {
        /// The number of steps that are done and will not be repeated, and that of all.
        at: Option<(usize, usize)>,
        /// The name of the run.
        run: String,
        /// The folder that resumes the study.
        folder: PathBuf,
    },
    /// The model to give away has parameters that are not finite.
    #[error(
        "the training diverged: the parameters of the model to give away are not finite. Train again in another \
         folder with a smaller learning rate; no statement covers a choice of the rate by results of private rows"
    )]
    Diverged,
    /// A file of the study that could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A mechanism that cannot be designed or run.
    #[error(transparent)]
    Mechanism(#[from] antinoise_mechanism::Error),
    /// A plan that is invalid or cannot be made.
    #[error(transparent)]
    Plan(#[from] antinoise_plan::Error),
    /// Noise that could not be made.
    #[error(transparent)]
    Noise(#[from] antinoise_noise::Error),
    /// Data, models and trainings that failed.
    #[error(transparent)]
    Train(#[from] antinoise_train::Error),
    /// Federated rounds that failed.
    #[error(transparent)]
    Federated(#[from] antinoise_federated::Error),
    /// An audit that failed.
    #[error(transparent)]
    Audit(#[from] antinoise_audit::Error),
    /// A figure that could not be drawn.
    #[error(transparent)]
    Chart(#[from] antinoise_chart::Error),
    /// A number of the study that has no form in TOML.
    #[error(transparent)]
    Toml(#[from] toml::ser::Error),
}

impl BadInput for Error {
    fn is_bad_input(&self) -> bool {
        match self {
            Self::Invalid(_) | Self::File { .. } | Self::Taken(_) | Self::Trained(_) => true,
            Self::Data(error) => error.is_bad_input(),
            Self::Mechanism(error) => error.is_bad_input(),
            Self::Plan(error) => error.is_bad_input(),
            Self::Noise(error) => error.is_bad_input(),
            Self::Train(error) => error.is_bad_input(),
            Self::Federated(error) => error.is_bad_input(),
            Self::Audit(error) => error.is_bad_input(),
            // Files of the study itself are not input.
            Self::Stopped { .. } | Self::Diverged | Self::Io { .. } => false,
            Self::Chart(_) | Self::Toml(_) => false,
        }
    }

    fn file(&self) -> Option<(&Path, &io::Error)> {
        match self {
            Self::Io { path, source } => Some((path, source)),
            Self::Data(error) => error.file(),
            Self::Plan(error) => error.file(),
            Self::Noise(error) => error.file(),
            Self::Train(error) => error.file(),
            _ => None,
        }
    }
}

impl Error {
    /// The error of a file or folder that cannot be used as `parameter`.
    pub(crate) fn of_file(parameter: &'static str, path: &Path, reason: impl ToString) -> Self {
        Self::File { parameter, path: path.to_owned(), reason: reason.to_string() }
    }

    /// Converts an error of the system about a file of the study.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::Io { path, source }
    }
}

fn place(at: Option<(usize, usize)>) -> String {
    at.map_or_else(|| "within ".into(), |(step, steps)| format!("at step {step} of {steps} of "))
}

/// `Result` with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
