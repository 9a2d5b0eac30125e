//! Tables of Arrow and Parquet, cell by cell.

#[cfg(feature = "parquet")]
mod batches;
#[cfg(feature = "arrow")]
mod cells;
mod lines;
mod names;
mod number;
#[cfg(feature = "arrow")]
mod panics;
#[cfg(feature = "users")]
mod similar;
mod user;

#[cfg(feature = "parquet")]
pub use batches::{Batches, ColumnFormat};
#[cfg(feature = "arrow")]
pub use cells::{Cells, Role, column};
pub use lines::ends_lines_with_crlf;
pub use names::column_index;
pub use number::Number;
#[cfg(feature = "arrow")]
pub use panics::catch_panic;
#[cfg(feature = "users")]
pub use similar::{SimilarNames, normal_form};
pub use user::{is_missing, user_name, user_of_number};
