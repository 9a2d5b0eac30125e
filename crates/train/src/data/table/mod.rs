//! Tables of numbers, categories and texts, encoded by public knowledge of their columns, and texts by user.

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
mod texts;

pub use column::{Column, Values};
pub use file::TableFile;
pub use row::Labels;
pub use schema::{Missing, Schema};
pub use split::TestPart;
pub use texts::TextRows;
