//! The operations by algorithms that are short before they are fast: what every answer is tested against, and what
//! answers where faer is left out.

mod eigen;
mod factor;
mod inverse;
mod product;
mod singular;
mod vector;

pub(crate) use eigen::{symmetric_eigen, symmetric_eigenvalues};
pub(crate) use factor::{lower_factor, lower_inverse};
pub(crate) use inverse::inverse;
pub(crate) use product::product;
pub(crate) use singular::singular_values;
