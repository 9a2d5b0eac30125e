//! Correlated-noise mechanisms for differentially private learning.
//!
//! A mechanism releases A G, where G (n x m) holds one gradient a step and A (n x n, lower triangular) is the
//! [`Workload`], as M(G) = B (C G + Z) = A (G + C^-1 Z): Z (n x m) is seed noise, independent N(0, nu^2), C
//! (n x n, lower triangular, invertible) the [`Strategy`] and B = A C^-1. It is 1/sigma-GDP when nu = sigma
//! sens(C, Pi), where Pi, the [`Participation`] schema, says in which steps one unit may take part. This
//! crate chooses C:
//!
//! > minimise ||A C^-1|| sens(C, Pi) over a class of matrices C,
//!
//! where ||.|| is the largest row norm (max loss) or the Frobenius norm over sqrt(n) (RMS loss). At a given
//! privacy level, the released queries then have the least noise.
//!
//! | part | what it holds |
//! |---|---|
//! | [`workload`](Workload) | A |
//! | [`participation`](Participation) | Pi, adjacency, privacy unit |
//! | [`strategy`] | C: the classes of matrices |
//! | [`design`] | the choice of C: requests, objectives, solvers and their results |
//! | [`Encoder`] | C as a matrix, and entries of C^T C |
//! | [`sensitivity`] | sens(C, Pi), exact or an upper bound |
//! | [`rounded`] | sens of the rounded strategy, whose coefficients are those of the stream |
//! | [`loss`] | errors and losses |
//! | [`bounds`] | bounds on the loss of the best strategy |
//! | [`Recursion`] | C^-1 Z step by step |
//! | [`RowNorms`] | bounds on the size of that noise |
//! | [`Grid`] | the effect of rounding to a grid on sensitivity |
//! | [`toeplitz`] | the algebra of power series |
//!
//! Layers: each line uses only the lines above it.
//!
//! ```layers
//! error: reasons why a mechanism cannot be built
//! solution, participation: results of solvers; Pi
//! numeric: vectors, series, transforms, L-BFGS, threads, limits of size
//! grid, bounds, toeplitz: rounding of noisy sums; lower bounds; the algebra of power series
//! rational_series: series of rational functions, their stability and their variables
//! circulant, workload: circulants; A
//! problem, recursion: the problem of a design; C^-1 Z by steps
//! blt_closed_form: norms of BLTs
//! decoder: norms of B
//! tree: binary trees
//! encoder: C as a matrix
//! sensitivity: sens(C, Pi)
//! loss: errors and losses of a strategy
//! strategy: the classes of C
//! rounded, design: sens of the rounded strategy; the choice of C
//! ```

mod blt_closed_form;
pub mod bounds;
mod circulant;
mod decoder;
pub mod design;
mod encoder;
mod error;
mod grid;
pub mod loss;
mod numeric;
mod participation;
mod problem;
mod rational_series;
mod recursion;
pub mod rounded;
pub mod sensitivity;
mod solution;
pub mod strategy;
#[cfg(test)]
mod testing;
pub mod toeplitz;
mod tree;
mod workload;

pub use circulant::{Convolution, NoisePair};
pub use encoder::Encoder;
pub use error::{Error, Result};
pub use grid::Grid;
pub use participation::{Adjacency, Participation, PrivacyUnit, Separation};
pub use problem::Problem;
pub use recursion::{Recursion, RowNorms};
pub use strategy::{AnyStrategy, Class, Strategy};
pub use workload::Workload;

/// The guide to new mechanisms, whose code is a test.
#[cfg(doctest)]
#[doc = include_str!("../adding-a-mechanism.md")]
struct AddingAMechanism;

/// The README, whose code is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
