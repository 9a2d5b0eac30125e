//! Sensitivity of the rounded strategy C~: the C whose coefficients, after rounding, the stream really uses.
//!
//! 1. Rounding a coefficient gives another mechanism. The release is exactly G + C~^-1 Z, so that its
//!    sensitivity is sens(C~). If C^-1 is near singular (C = A for momentum), a relative change of 2^-25 in
//!    its few coefficients changes C by percents over 10^5 steps.
//! 2. So C~ is computed from the rounded recursion, and its sensitivity like that of any other C.
//! 3. Sums of seeds N Z with N C = I are rounded to N + D, which is bounded as a perturbation: (N + D) C (I +
//!    D C)^-1 = I and C (I + D C)^-1 = (I + C D)^-1 C, so that sens(C~) <= sens(C) / (1 - ||C D||).

mod bound;
mod history;
mod perturbation;
mod precision;
mod prefixes;

pub use bound::{encoder_upper, sensitivity_upper};
pub use history::accumulation_error_upper;
pub use precision::{OUTPUT_ROUNDING, Precision};
pub use prefixes::prefix_sensitivities_upper;
