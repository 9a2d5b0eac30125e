//! Tables of Arrow, Parquet and NumPy, cell by cell.

#[cfg(feature = "parquet")]
mod batches;
#[cfg(feature = "arrow")]
mod cells;
mod csv_end;
mod lines;
mod names;
mod number;
mod panics;
#[cfg(any(feature = "arrays", feature = "arrow"))]
mod role;
#[cfg(feature = "users")]
mod similar;
mod user;

#[cfg(feature = "parquet")]
pub use batches::{Batches, ColumnFormat};
#[cfg(feature = "arrow")]
pub use cells::{Cells, column};
pub use csv_end::{CSV_END, csv_end};
pub use lines::ends_lines_with_crlf;
pub use names::column_index;
pub use number::Number;
pub use panics::catch_panic;
#[cfg(any(feature = "arrays", feature = "arrow"))]
pub use role::Role;
#[cfg(feature = "users")]
pub use similar::{SimilarNames, normal_form};
#[cfg(feature = "arrays")]
pub(crate) use user::write_real_user;
pub use user::{is_missing, user_name, user_of_number};
