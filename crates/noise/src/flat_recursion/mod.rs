//! Recursions in the form that streams run: checked and flattened.

mod flat;
mod leaf;
mod retained;

pub(crate) use flat::{FlatRecursion, Position};
pub(crate) use leaf::{History, Leaf, Weights};
pub(crate) use retained::RetainedRow;
