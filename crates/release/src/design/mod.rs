//! The plan of a release: one vector for all queries, one design for each segment, and figures from noisy
//! cells.

pub(crate) mod advice;
pub(crate) mod chain;
pub(crate) mod estimate;
pub(crate) mod layout;
pub(crate) mod plan;
