//! Closed forms of the sensitivity and the error of a BLT that stay accurate as its decays approach 1.
//!
//! They are functions of the nodes delta = 1 - lambda, for the decays lambda of C, and delta^ = 1 - lambda^,
//! for the decays lambda^ of C^-1. The nodes interlace: delta_1 < delta^_1 < delta_2 < ... < delta^_d. So
//! every term is positive and nothing cancels.

pub(crate) mod cascade;
pub(crate) mod geometric;
pub(crate) mod interlaced;
pub(crate) mod norms;
mod shifts;

pub(crate) use geometric::coefficients;
