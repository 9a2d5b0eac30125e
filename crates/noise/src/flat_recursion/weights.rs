//! Weighted sums of a few past vectors.

/// Which past vectors a recursion reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum History {
    /// Earlier rows of z~.
    Outputs,
    /// Earlier seed noise.
    Seeds,
}

/// Weights by lag: lag 0 multiplies this step's seed noise.
pub(crate) enum Weights {
    SameEveryStep(Vec<f64>),
    ByStep { bands: usize, rows: Vec<f64> },
}

impl Weights {
    pub(crate) fn bands(&self) -> usize {
        match self {
            Self::SameEveryStep(weights) => weights.len(),
            Self::ByStep { bands, .. } => *bands,
        }
    }

    /// The weights of the run's step `local`, cut to the lags that exist.
    pub(crate) fn row(&self, local: usize) -> &[f64] {
        let lags = self.bands().min(local + 1);
        match self {
            Self::SameEveryStep(weights) => &weights[..lags],
            Self::ByStep { bands, rows } => &rows[local * bands..][..lags],
        }
    }
}
