//! The strategies C: matrices, one file per family, and the table of their classes.
//!
//! A new class needs its own file here, a row of the table in `class`, and a design in `design/`. Files here
//! represent matrices and compute their figures; they design none.

mod any;
mod banded;
mod banded_inverse;
mod banded_toeplitz;
pub(crate) mod baselines;
mod blt;
mod class;
pub(crate) mod contract;
mod dense;
pub(crate) mod first_column;
mod identity;
mod matrix;
mod output_perturbation;
pub(crate) mod rational;
mod toeplitz;
pub(crate) mod varying_blt;

pub use any::{AnyStrategy, ColumnNormalized, Restarted};
pub use banded::Banded;
pub use banded_inverse::BandedInverse;
pub use banded_toeplitz::BandedToeplitz;
pub use baselines::{
    BinaryTree, Fourier, FourierOptimal, HonakerFull, HonakerOnline, SmoothTree, WeightedTree,
};
pub use blt::Blt;
pub use class::Class;
pub(crate) use class::for_each_class;
pub use contract::Strategy;
pub use dense::Dense;
pub use identity::Identity;
pub use matrix::Factors;
pub use output_perturbation::OutputPerturbation;
pub use rational::Rational;
pub use toeplitz::Toeplitz;
pub use varying_blt::VaryingBlt;

pub use crate::decoder::ErrorNorms;
