//! The operations implemented with short algorithms: the reference of all tests, and the implementation
//! without faer.

mod eigen;
mod factor;
mod inverse;
mod product;
mod vector;

pub(crate) use eigen::{symmetric_eigen, symmetric_eigenvalues};
pub(crate) use factor::{lower_inverse, reverse_cholesky, upper_factor};
pub(crate) use inverse::inverse;
pub(crate) use product::product;
