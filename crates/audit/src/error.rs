use antinoise_input::InvalidParameter;

/// Why an audit ended without a verdict.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter that cannot be used.
    #[error(transparent)]
    Invalid(#[from] InvalidParameter),
    /// The strategy is not valid, or too large to write out.
    #[error(transparent)]
    Mechanism(#[from] antinoise_mechanism::Error),
    /// The plan does not hold.
    #[error(transparent)]
    Plan(#[from] antinoise_plan::Error),
    /// The noise could not be made.
    #[error(transparent)]
    Noise(#[from] antinoise_noise::Error),
    /// Gradients could not be clipped and summed.
    #[error(transparent)]
    Train(#[from] antinoise_train::Error),
    /// There is no folder for checkpoints.
    #[error("a folder for the checkpoints of an audit cannot be made: {0}")]
    Io(#[from] std::io::Error),
    /// The strategy's noise has a singular covariance, so it cannot be whitened.
    #[error("the noise of this strategy cannot be whitened: {0}")]
    Singular(String),
}

impl Error {
    /// True when the caller's input is at fault.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Invalid(_) => true,
            Self::Mechanism(error) => error.is_bad_input(),
            Self::Plan(error) => error.is_bad_input(),
            Self::Noise(error) => error.is_bad_input(),
            Self::Train(error) => error.is_bad_input(),
            Self::Io(_) | Self::Singular(_) => false,
        }
    }
}
