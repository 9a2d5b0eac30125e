use antinoise_input::{BadInput, InvalidParameter};

/// Errors that end an audit without a verdict.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter is not valid.
    #[error(transparent)]
    Invalid(#[from] InvalidParameter),
    /// The strategy is invalid, or too large to be written as a matrix.
    #[error(transparent)]
    Mechanism(#[from] antinoise_mechanism::Error),
    /// The plan is invalid.
    #[error(transparent)]
    Plan(#[from] antinoise_plan::Error),
    /// The noise could not be made.
    #[error(transparent)]
    Noise(#[from] antinoise_noise::Error),
    /// Gradients could not be clipped and summed.
    #[cfg(feature = "train")]
    #[error(transparent)]
    Train(#[from] antinoise_train::Error),
    /// A folder for checkpoints could not be made.
    #[error("a folder for the checkpoints of an audit cannot be made: {0}")]
    Io(#[from] std::io::Error),
    /// The strategy's noise has a singular covariance, so it cannot be whitened.
    #[error("the noise of this strategy cannot be whitened: {0}")]
    Singular(String),
}

impl BadInput for Error {
    fn is_bad_input(&self) -> bool {
        match self {
            Self::Invalid(_) => true,
            Self::Mechanism(error) => error.is_bad_input(),
            Self::Plan(error) => error.is_bad_input(),
            Self::Noise(error) => error.is_bad_input(),
            #[cfg(feature = "train")]
            Self::Train(error) => error.is_bad_input(),
            Self::Io(error) => error.is_bad_input(),
            Self::Singular(_) => false,
        }
    }
}
