//! Correlated-noise mechanisms for differentially private learning.
mod recursion;
pub use recursion::Recursion;
