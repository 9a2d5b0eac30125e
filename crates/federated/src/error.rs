use antinoise_input::{BadInput, InvalidParameter};

/// The reason for which a federated run stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter that cannot be used; the error names it, the value it got and what it must be.
    #[error(transparent)]
    Invalid(#[from] InvalidParameter),
    /// A model or a checkpoint that cannot be used.
    #[error(transparent)]
    Train(#[from] antinoise_train::Error),
    /// A plan that is invalid.
    #[error(transparent)]
    Plan(#[from] antinoise_plan::Error),
    /// Noise that could not be made, saved or resumed.
    #[error(transparent)]
    Noise(#[from] antinoise_noise::Error),
    /// A ledger that could not be opened, read or written.
    #[error(transparent)]
    Ledger(#[from] antinoise_ledger::Error),
}

impl BadInput for Error {
    fn is_bad_input(&self) -> bool {
        match self {
            Self::Invalid(_) => true,
            Self::Train(error) => error.is_bad_input(),
            Self::Plan(error) => error.is_bad_input(),
            Self::Noise(error) => error.is_bad_input(),
            Self::Ledger(error) => error.is_bad_input(),
        }
    }
}
