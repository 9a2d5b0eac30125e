//! Minimise sens(C, Pi) ||A C^-1|| over Toeplitz C with few coefficients, or with few coefficients of C^-1.
//!
//! The objective is ln sens^2 + ln ||B||^2: `squared_error` has ||B||^2 and its derivatives for any lower-triangular A, `sums` the
//! sensitivity as a function of magnitudes m >= |c|, `shape` the variables in which c and m are free. With more bands than
//! the separation of several participations, c is first kept non-negative (cyclic) or decreasing (min-sep), where the
//! sensitivity is exact, and then unconstrained, where it is an upper bound. `inverse` solves for C^-1.
//!
//! Every solve is compared by the loss that is reported, with the start, the identity, the workload and solutions with
//! fewer bands: a class never loses to what it contains. O(n bands) time an evaluation for few bands, O(n log n) for many,
//! O(n^2) where A is not Toeplitz. Beyond 10^7 steps of prefix sums w is constant after a horizon of O(bands^2) steps, which
//! then replaces n.
//!
//! # Source
//! Monograph, Section 4.3; BandMF, Algorithm 5 and Appendix D.2.

mod averaged;
mod squared_error;
mod inverse;
mod loss;
mod search;
mod shape;
mod sums;

pub(crate) use averaged::minimize_averaged;
pub(crate) use loss::ToeplitzLoss;
pub(crate) use search::{minimize_banded, minimize_banded_inverse};
