//! Arrays of NumPy: `.npy` files, and `.npz` archives of them; and tables of Arrow (with `parquet`). Values
//! are read as double precision; objects, which could run code, and structures are refused.

mod array;
#[cfg(feature = "parquet")]
mod arrow;
mod npy;

pub use array::Array;
