//! Differential privacy accounting whose rounding direction is part of each operation's name.
//!
//! An accountant turns a noise multiplier `sigma` (noise standard deviation over l2 sensitivity) into
//! `(epsilon, delta)`. A figure from a function named `_upper` is never below the truth and may be stated. A figure
//! from `_lower` is never above the truth and shows how tight the upper bound is.
//!
//! - [`Gdp`]: one release, or any unamplified composition, exactly; [`Zcdp`]: zero-concentrated privacy;
//! - [`Composition`] of [`SampledGaussian`] phases: Poisson sampling, bracketed from above and below;
//!   [`Composition::epsilon_estimate_from_renyi`] checks it by another method, [`calibrate`] inverts it;
//! - [`banded_to_sampled_upper`]: banded correlated noise under block-cyclic Poisson sampling, as such phases;
//! - [`BallsInBins`]: any non-negative correlated noise under balls-in-bins sampling, statistically;
//! - [`BMinSep`]: banded non-negative correlated noise under b-min-sep sampling, statistically;
//! - [`group_privacy_upper`] and [`add_or_remove_to_replace_one_upper`]: other units and adjacencies;
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
//! From the ground up; a file uses only what is above its line. `scripts/layers.py` holds every file to it. Numerics are
//! the lowest layer. Gaussian privacy is exact and uses only them. Privacy loss distributions use Gaussian privacy. Calibration, group
//! privacy and independent checks use both. The statement in words uses none of them.
//!
//! ```layers
//! error, root, normal: what can go wrong; thresholds and minima; tails of the normal distribution
//! curve: delta of two normal distributions
//! gdp: Gaussian privacy
//! zcdp, pld: zero-concentrated privacy; compositions of sampled steps, by privacy loss distributions
//! renyi, group, calibrate, monte_carlo: another accountant; groups; from privacy to noise; a check by sampling
//! amplify, balls_in_bins, b_min_sep: correlated noise under sampling
//! neighbours, checked: the adjacency and the numerical assumption of a statement
//! statement: the claim in words
//! ```
mod amplify;
mod b_min_sep;
mod balls_in_bins;
pub mod calibrate;
mod checked;
mod curve;
mod error;
mod gdp;
mod group;
mod monte_carlo;
mod neighbours;
mod normal;
mod pld;
mod renyi;
mod root;
mod statement;
mod zcdp;

pub use amplify::{BlockCyclicPoisson, banded_to_sampled_upper};
pub use b_min_sep::BMinSep;
pub use balls_in_bins::BallsInBins;
pub use checked::NUMERICAL_ASSUMPTION;
pub use error::{Error, Result};
pub use gdp::{Gdp, gaussian_noise_multiplier_upper};
pub use group::{add_or_remove_to_replace_one_upper, group_privacy_upper};
pub use monte_carlo::{MonteCarlo, StatisticalDelta};
pub use neighbours::Neighbours;
pub use pld::{Bracket, Composition, SampledGaussian};
pub use statement::{Fact, PrivacyStatement, delta_warning};
pub use zcdp::Zcdp;

/// The README, whose code runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
