//! Tables of numbers and categories, read by what is publicly known of them.

mod column;
mod read;
mod schema;
mod split;

pub use column::{Column, Values};
pub use schema::{Missing, Schema};
pub use split::{TestPart, csv};
