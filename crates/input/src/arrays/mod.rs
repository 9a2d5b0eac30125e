//! Arrays of NumPy: `.npy` files, and `.npz` archives of them; and tables of Arrow (with `parquet`). Objects,
//! which could run code, and structures are refused.

mod archive;
mod array;
#[cfg(feature = "parquet")]
mod arrow;
mod header;
mod table;
mod types;
mod values;

pub use archive::Archive;
pub use array::Array;
pub use table::{ArrayTable, column_of_array};
pub use types::Class;
pub use values::Values;
