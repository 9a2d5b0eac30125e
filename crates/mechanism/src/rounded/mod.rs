//! The sensitivity of the C that runs: the C of the rounded coefficients by which noise is really multiplied.
//!
//! Rounding a coefficient gives another mechanism, C_run. The release is exactly G + C_run^-1 Z, so the sensitivity that counts is
//! sens(C_run). Where C^-1 is near singular (C = A for momentum), a relative change of 2^-25 in its few
//! coefficients changes C itself by percents over 10^5 steps. So C_run is written out from the rounded recursion, and its
//! sensitivity is computed like that of any other C. For sums of seeds N Z with N C = I, N_run = N + D, it is bounded by a
//! perturbation: N_run C (I + D C)^-1 = I, and C (I + D C)^-1 = (I + C D)^-1 C, so that
//! sens(C_run) <= sens(C) / (1 - ||C D||).

mod bound;
mod prefixes;
mod history;
mod perturbation;
mod precision;

pub use bound::{encoder_upper, sensitivity_upper};
pub use prefixes::prefix_sensitivities_upper;
pub use history::accumulation_error_upper;
pub use precision::{OUTPUT_ROUNDING, Precision};
