//! The computation of a user in a federated run: local steps on its own examples; and the clipped sum of a
//! cohort.

mod cohort;
mod examples;
mod population;
mod steps;
#[cfg(test)]
mod tests;

pub(crate) use cohort::{CHUNK, cohort_sum};
pub use examples::UserExamples;
pub use population::Population;
pub use steps::LocalSteps;
