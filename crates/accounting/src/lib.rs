//! Differential privacy accounting whose rounding direction is part of each operation's name.
//!
//! An accountant computes `(epsilon, delta)` from a noise multiplier `sigma` (noise standard deviation over
//! l2 sensitivity). A figure from a function named `_upper` is never below the truth and may be stated. A
//! figure from `_lower` is never above the truth and shows how tight the upper bound is.
//!
//! - [`Gdp`]: Gaussian mechanisms and their compositions without sampling, exactly;
//! - [`Composition`] of [`PoissonSampledGaussian`] phases: DP-SGD with Poisson sampling, bounded from above
//!   and below, where an example or a group is removed, added or replaced; [`calibrate`] solves for noise,
//!   steps or sampling rate;
//! - [`block_cyclic_poisson_reduction`]: banded correlated noise under block-cyclic Poisson sampling, reduced
//!   to such a phase; [`fixed_size_reduction`]: batches of a fixed size, reduced likewise;
//! - [`MonteCarloMechanism`]: correlated noise with C >= 0 under balls-in-bins or b-min-sep sampling, by
//!   statistical bounds;
//! - [`group_privacy_upper`]: groups of units, from the privacy of one;
//! - [`PrivacyStatement`]: the claim in words.
//!
//! ```
//! use antinoise_accounting::Gdp;
//! let privacy = Gdp::from_noise_multiplier_upper(2.23048)?;
//! let epsilon = privacy.epsilon_upper(1e-6)?;
//! assert!((epsilon - 2.0).abs() < 1e-4 && privacy.epsilon_lower(1e-6)? <= epsilon);
//! # Ok::<(), antinoise_accounting::Error>(())
//! ```
//!
//! # Layers
//!
//! From the ground up; a file uses only what is above its line. `scripts/layers.py` holds every file to it.
//! Numerics are the lowest layer. Gaussian privacy is exact and uses only them. Privacy loss distributions
//! use Gaussian privacy. Calibration, group privacy and independent checks use both. The statement in words
//! uses none of them.
//!
//! ```layers
//! error, root, normal: what can go wrong; thresholds and minima; tails of the normal distribution
//! curve: delta of two normal distributions
//! gdp: Gaussian privacy
//! pld: compositions of sampled steps, by privacy loss distributions
//! group, calibrate, monte_carlo: groups; from privacy to noise; Monte Carlo accounting of a dominating pair
//! amplify, balls_in_bins, b_min_sep: correlated noise under sampling, and batches of a fixed size
//! mechanism: the mechanisms that Monte Carlo accounts for
//! neighbours: the adjacency of a statement
//! sampling: noise and the way in which batches are drawn, as a caller describes them
//! statement: the claim in words
//! statement_format: its text, Markdown and LaTeX
//! ```
mod amplify;
mod b_min_sep;
mod balls_in_bins;
pub mod calibrate;
mod curve;
mod error;
mod gdp;
mod group;
mod mechanism;
mod monte_carlo;
mod neighbours;
mod normal;
mod pld;
mod root;
mod sampling;
mod statement;
mod statement_format;

pub use amplify::{
    BlockCyclicPoisson, FixedSizeBatches, block_cyclic_poisson_reduction, fixed_size_reduction,
};
pub use error::{Error, Result};
pub use gdp::{Gdp, gaussian_noise_multiplier_upper};
pub use group::group_privacy_upper;
pub use mechanism::MonteCarloMechanism;
pub use monte_carlo::{MonteCarlo, PrivacyCurve, StatisticalDelta};
pub use neighbours::Neighbours;
pub use pld::{Bounds, Composition, PoissonSampledGaussian, RandomAllocation};
pub use sampling::{MaxBatch, Sampling};
pub use statement::{Fact, PrivacyStatement, delta_warning, three_digits_up};
pub use statement_format::Markup;

/// The README, whose code runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
