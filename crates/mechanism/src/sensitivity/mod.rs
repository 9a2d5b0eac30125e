//! sens(C, Pi): how far one privacy unit can move C G, either exactly or as an upper bound, and the theorem
//! that proves the value.
//!
//! For gradients of norm at most 1, sens^2 = max over patterns pi of the sum over t, tau in pi of (C^T C)\[t,
//! tau\]. This is exact for gradients of every dimension if these entries are non-negative; with absolute
//! values it is an upper bound. Conditions are checked on the numbers.
//!
//! For rows of l1 norm at most 1, scalars among them, sens^2 = max over patterns pi and signs u of the sum
//! over t, tau in pi of u_t u_tau (C^T C)\[t, tau\], whatever the signs of the entries: see [`RowNorm`].
//!
//! - `toeplitz`: Toeplitz C under every schema, min-sep included.
//! - `general`: any C.
//! - `each_epoch`: any C, once in each epoch.
//! - `patterns`: any C under a schema of few patterns.
//! - `nested`: trees under min-sep.
//! - `worst_pattern`: the search over patterns under min-sep, with signs or without.
//! - `rows`: rows of l1 norm at most 1, by `signs` within a pattern, and by `worst_pattern` under min-sep.

mod each_epoch;
mod general;
mod nested;
mod patterns;
mod rows;
mod signs;
mod toeplitz;
mod value;
mod worst_pattern;

pub(crate) use each_epoch::MAX_BLT_STEPS_BY_EPOCHS;
pub(crate) use general::of_encoder;
pub use rows::RowNorm;
pub(crate) use rows::of_l1_rows;
pub(crate) use toeplitz::{of_toeplitz, orthogonal_counts, sum_of_columns, sum_of_columns_adjoint};
pub use value::{Kind, Sensitivity};
pub(crate) use worst_pattern::PatternSearch;

#[cfg(test)]
mod tests;
