//! sens(C, Pi): how far one privacy unit can move C G, either exactly or as an upper bound, and the theorem
//! that proves the value.
//!
//! For gradients of norm at most 1, sens^2 = max over patterns pi of the sum over t, tau in pi of (C^T C)\[t,
//! tau\]. This is exact for gradients of every dimension if these entries are non-negative; with absolute
//! values it is an upper bound. Conditions are checked on the numbers.
//!
//! - `toeplitz`: Toeplitz C under every schema, min-sep included.
//! - `general`: any C.
//! - `patterns`: any C under a schema of few patterns.

mod general;
mod patterns;
mod toeplitz;
mod value;

pub(crate) use general::of_encoder;
pub(crate) use toeplitz::{of_toeplitz, orthogonal_counts, sum_of_columns, sum_of_columns_adjoint};
pub use value::{Kind, Sensitivity};

#[cfg(test)]
mod tests;
