//! Numerical tools that know no mechanism.

pub(crate) mod lanes;
pub(crate) mod vector;
