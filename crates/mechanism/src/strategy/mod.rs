//! The strategies C, one file per class (`fixed` holds the classes without a size), and the table of classes.
//!
//! A class is added by its file and one row of the table in `class`. A `spec` is a request; `designs` fulfils
//! it.

mod any;
mod banded;
mod banded_inverse;
mod banded_toeplitz;
mod blt;
mod class;
mod coefficient_rule;
mod coefficients;
mod column;
mod contract;
mod dense;
mod design;
mod designs;
mod fixed;
mod harmonic;
mod identity;
mod optimized;
mod output_perturbation;
mod spec;
mod toeplitz;
mod weighted_tree;

pub use any::{AnyStrategy, ColumnNormalized, Restarted};
pub use banded::Banded;
pub use banded_inverse::BandedInverse;
pub use banded_toeplitz::BandedToeplitz;
pub use blt::Blt;
pub use class::Class;
pub use coefficient_rule::CoefficientRule;
pub use contract::Strategy;
pub use dense::Dense;
pub use fixed::{BinaryTree, Fourier, FourierOptimal, HonakerFull, HonakerOnline, SmoothTree};
pub use identity::Identity;
pub use output_perturbation::OutputPerturbation;
pub use spec::StrategySpec;
pub use toeplitz::Toeplitz;
pub use weighted_tree::WeightedTree;

pub use crate::decoder::ErrorNorms;
