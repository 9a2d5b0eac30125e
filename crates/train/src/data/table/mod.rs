//! Tables of numbers, categories and texts, read by what is publicly known of them.

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
