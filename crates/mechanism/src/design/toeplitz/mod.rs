//! Minimise sens(C, Pi) ||A C^-1|| over Toeplitz C with few coefficients, or with few coefficients of C^-1.
//!
//! 1. The objective is ln sens^2 + ln ||B||^2. `squared_error` has ||B||^2 and its derivatives for any
//!    lower-triangular A, `sums` the sensitivity as a function of magnitudes m >= |c|, and `shape` free
//!    variables for c and m.
//! 2. With more bands than the separation of several participations, c is first kept non-negative (cyclic) or
//!    decreasing (min-sep), which makes the sensitivity exact. Then it is unconstrained, and the sensitivity
//!    is an upper bound.
//! 3. `inverse` has the loss as a function of the first column of C^-1.
//! 4. `coefficients` applies the requested rule; `start` and `optimized` choose starts.
//! 5. `search` compares the loss of every solve with those of the start, the identity, the workload and
//!    solutions with fewer bands, so that a class never does worse than a class that it contains.
//!
//! An evaluation takes O(n bands) time for few bands, O(n log n) for many, and O(n^2) if A is not Toeplitz.
//! For prefix sums over many steps, w is nearly constant after a horizon of O(bands^2) steps, which then
//! replaces n.
//!
//! # Source
//! Monograph, Section 4.3; BandMF, Algorithm 5 and Appendix D.2.

mod averaged;
mod banded_inverse;
mod classes;
mod coefficients;
mod harmonic;
mod inverse;
mod last_iterate;
mod loss;
mod optimized;
mod search;
mod shape;
mod squared_error;
mod start;
mod sums;

pub(super) use coefficients::coefficients;
pub(super) use inverse::SmoothMagnitudes;
pub(super) use last_iterate::LastIterateError;
pub(super) use loss::{ToeplitzLoss, errors};
pub(super) use search::minimize_banded;
pub(super) use squared_error::SquaredError;
pub(super) use start::{bands_of, square_root_of};
pub(super) use sums::Sums;
