//! Recursions as streams run them: checked, without nesting.

mod flat;
mod leaf;
mod retained;

pub(crate) use flat::{FlatRecursion, Position};
pub(crate) use leaf::{History, Leaf, Weights};
pub(crate) use retained::RetainedRow;
