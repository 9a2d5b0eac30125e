//! Error (a norm of B) and loss (error times sensitivity) of a strategy.

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::decoder::ErrorNorms;
use crate::sensitivity::Sensitivity;

/// Errors and losses of a strategy for a workload and a schema.
///
/// ```
/// use antinoise_mechanism::{Adjacency, Problem, design::StrategySpec};
/// let problem = Problem::prefix(16);
/// let identity = "identity".parse::<StrategySpec>()?.design(&problem)?.value;
/// let loss = identity.loss(&problem.workload, &problem.participation, Adjacency::ZeroOut)?;
/// assert_eq!(loss.max_loss, 4.0);
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Loss {
    /// The largest row norm ||B||_row.
    pub max_error: f64,
    /// The Frobenius norm ||B||_F over the square root of the number of queries.
    pub rms_error: f64,
    /// The max loss: ||B||_row times sens.
    pub max_loss: f64,
    /// The RMS loss: `rms_error` times sens.
    pub rms_loss: f64,
    /// The total loss sens^2 ||B||_F^2.
    pub total_loss: f64,
    /// The sensitivity sens(C, Pi), under the adjacency.
    pub sensitivity: Sensitivity,
}

impl Loss {
    /// Returns the losses of a strategy, given the norms of B, the sensitivity and the number of queries.
    pub(crate) fn new(error: ErrorNorms, sensitivity: Sensitivity, queries: usize) -> Result<Self> {
        let rms_loss = error.rms * sensitivity.value;
        let loss = Self {
            max_error: error.max,
            rms_error: error.rms,
            max_loss: error.max * sensitivity.value,
            rms_loss,
            total_loss: rms_loss * rms_loss * queries as f64,
            sensitivity,
        };
        let is_positive = |figure: f64| figure.is_finite() && figure > 0.0;
        if is_positive(loss.total_loss) && is_positive(loss.max_loss) {
            return Ok(loss);
        }
        let figures = format!("max loss {:e} and total loss {:e}", loss.max_loss, loss.total_loss);
        Err(crate::Error::Numerical(format!("the loss is out of the range of double precision: {figures}")))
    }
}
