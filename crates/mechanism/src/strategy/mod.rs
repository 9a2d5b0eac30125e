//! The strategies C, one file a class, and the one table that serialisation, the command line, the laws and
//! the benches read.
//!
//! A class is added by its file and one row of the table in `class`. A `spec` says what is requested; `designs` finds it.

mod any;
mod banded;
mod banded_inverse;
mod banded_toeplitz;
mod blt;
mod class;
mod coefficients;
mod column;
mod contract;
mod dense;
mod design;
mod designs;
mod form;
mod fourier;
mod fourier_optimal;
mod harmonic;
mod honaker_full;
mod honaker_online;
mod identity;
mod optimized;
mod output;
mod smooth_tree;
mod spec;
mod toeplitz;
mod tree;
mod weighted_tree;

pub use any::{AnyStrategy, ColumnNormalized, Restarted};
pub use banded::Banded;
pub use banded_inverse::BandedInverse;
pub use banded_toeplitz::BandedToeplitz;
pub use blt::Blt;
pub use class::Class;
pub use contract::Strategy;
pub use dense::Dense;
pub use form::Form;
pub use fourier::Fourier;
pub use fourier_optimal::FourierOptimal;
pub use honaker_full::HonakerFull;
pub use honaker_online::HonakerOnline;
pub use identity::Identity;
pub use output::OutputPerturbation;
pub use smooth_tree::SmoothTree;
pub use spec::StrategySpec;
pub use toeplitz::Toeplitz;
pub use tree::BinaryTree;
pub use weighted_tree::WeightedTree;

pub use crate::decoder::ErrorNorms;
