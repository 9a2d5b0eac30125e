//! Recursions in the form in which streams run them: checked and flattened.

mod flat;
mod leaf;
mod retained;

pub(crate) use flat::{FlatRecursion, Position};
pub(crate) use leaf::{History, Leaf, StepWeights, Weights, rational_response};
pub(crate) use retained::RetainedRow;
