//! Events on their way into a period.

#[cfg(feature = "arrow")]
pub(crate) mod arrow;
#[cfg(feature = "parquet")]
pub(crate) mod batches;
pub(crate) mod categories;
pub(crate) mod external;
pub(crate) mod freeze;
pub(crate) mod neighbours;
pub(crate) mod problems;
pub(crate) mod rows;
pub(crate) mod sample;
pub(crate) mod similar;
pub(crate) mod text;
pub(crate) mod users;
