//! Probes of a training on public data: how much the noise of a single step raises the final loss, and the
//! workload of the last iterate that follows. NOT PRIVATE.
//!
//! Weights of the curvatures are measured by repeated trainings ([`Probe::growths`], [`Probe::workload`]), or
//! computed from the spectrum of curvatures at the end of a training ([`Probe::spectrum`],
//! [`Probe::workload_of_spectrum`]).

mod definition;
#[cfg(test)]
mod examples;
mod fit;
mod growth;
mod lanczos;
mod product;
mod spectrum;
mod training;

pub use definition::Probe;
pub use growth::Growth;
pub use spectrum::{Curvature, effective_dimension};
