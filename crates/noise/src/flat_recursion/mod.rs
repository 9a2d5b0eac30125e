//! Recursions as streams run them: checked, without nesting.

mod flat;
mod leaf;
mod retained;
mod weights;

pub(crate) use flat::{FlatRecursion, Position};
pub(crate) use leaf::Leaf;
pub(crate) use retained::RetainedRow;
pub(crate) use weights::{History, Weights};
