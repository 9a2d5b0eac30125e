//! Numerical tools that do not depend on any mechanism.

pub(crate) mod lanes;
pub(crate) mod lbfgs;
pub(crate) mod limits;
pub(crate) mod parallel;
pub(crate) mod series_division;
pub(crate) mod softmax;
pub(crate) mod transform;
pub(crate) mod vector;
