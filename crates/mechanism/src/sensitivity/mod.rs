//! How far one privacy unit can move C G: sens(C, Pi), exact or an upper bound, and by which result.
//!
//! With gradients of norm at most 1, sens^2 = max over patterns pi of sum over t, tau in pi of
//! (C^T C)\[t, tau\], exact in every dimension where those entries are not negative; with absolute values it
//! is an upper bound. Hypotheses are checked on the numbers.

mod general;
mod value;
mod patterns;
mod toeplitz;

pub(crate) use general::of_encoder;
pub use value::{Kind, Sensitivity};
pub(crate) use toeplitz::{of_toeplitz, orthogonal_counts, sum_of_columns, sum_of_columns_adjoint};
