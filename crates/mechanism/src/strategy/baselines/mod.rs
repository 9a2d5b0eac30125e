//! Research baselines: trees and the Fourier mechanism, for comparison with published figures. The search for
//! a plan tries only `honaker-full` of them.

mod estimate;
mod fixed;
mod fourier;
mod least_squares;
mod weighted_tree;
mod weights;

pub use fixed::{BinaryTree, Fourier, FourierOptimal, HonakerFull, HonakerOnline, SmoothTree};
pub use weighted_tree::WeightedTree;
pub(crate) use weights::precisions;
