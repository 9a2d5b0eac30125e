//! The sensitivity of the rounded strategy C~: the matrix that the coefficients of a noise stream define once
//! they are rounded.
//!
//! 1. Rounding a coefficient changes the mechanism: the release is G + C~^-1 Z, so that sens(C~) determines
//!    privacy. If C^-1 is nearly singular (as for C = A with momentum), a relative change of 2^-25 in its few
//!    coefficients changes C by several percent over 10^5 steps.
//! 2. So C~ is computed from the rounded recursion, and its sensitivity like that of any other C.
//! 3. For sums of seeds N Z with N C = I, rounding changes N by a matrix D. Then C~ = C (I + D C)^-1 = (I + C
//!    D)^-1 C, so that sens(C~) <= sens(C) / (1 - ||C D||).

mod bound;
mod history;
mod perturbation;
mod precision;
mod prefixes;

pub use bound::{encoder_upper, sensitivity_upper};
pub use history::accumulation_error_upper;
pub use precision::{OUTPUT_ROUNDING, Precision};
pub use prefixes::prefix_sensitivities_upper;
