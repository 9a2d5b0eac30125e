//! Tables as others make them, cell by cell.

#[cfg(feature = "arrow")]
mod cells;
mod number;
#[cfg(feature = "parquet")]
mod parquet;

#[cfg(feature = "arrow")]
pub use cells::{Cells, Role, column};
pub use number::Number;
#[cfg(feature = "parquet")]
pub use parquet::Parquet;
