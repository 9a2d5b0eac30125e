//! Tables of numbers, categories and texts, encoded by public knowledge of their columns.

mod arrays;
#[cfg(feature = "parquet")]
mod batches;
mod column;
mod csv;
mod file;
mod json;
mod row;
mod schema;
mod split;
mod text;

pub use column::{Column, Values};
pub use file::TableFile;
pub use row::Labels;
pub use schema::{Missing, Schema};
pub use split::TestPart;
