//! Events on their way into a period.

#[cfg(feature = "arrow")]
pub(crate) mod arrow;
pub(crate) mod external;
pub(crate) mod freeze;
pub(crate) mod neighbours;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
pub(crate) mod problems;
pub(crate) mod rows;
pub(crate) mod sample;
pub(crate) mod similar;
pub(crate) mod text;
pub(crate) mod users;
