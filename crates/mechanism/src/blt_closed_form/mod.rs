//! Closed forms of the sensitivity and the error of a BLT that stay accurate as its decays approach 1.
//!
//! Everything is written in delta = 1 - lambda (C) and delta^ = 1 - lambda^ (C^-1), interlaced as
//! delta_1 < delta^_1 < delta_2 < ... < delta^_d. Then every term is positive and nothing cancels.

pub(crate) mod cascade;
pub(crate) mod geometric;
pub(crate) mod interlaced;
pub(crate) mod norms;
mod shifts;

pub(crate) use geometric::coefficients;
