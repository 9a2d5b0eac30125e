//! Tables of numbers, categories and texts, encoded by public knowledge of their columns.

mod column;
mod csv;
#[cfg(feature = "parquet")]
mod parquet;
mod row;
mod schema;
mod split;
mod text;

pub use column::{Column, Values};
pub use schema::{Missing, Schema};
#[cfg(feature = "parquet")]
pub use split::parquet;
pub use split::{TestPart, csv};
