//! Queries: their text, their measures, and the intervals of their figures.

pub(crate) mod attribute;
pub(crate) mod buckets;
pub(crate) mod interval;
pub(crate) mod marginals;
pub(crate) mod measure;
pub(crate) mod parse;
pub(crate) mod quantile;
pub(crate) mod query;
