//! The pages of a training: one epsilon, or several.

mod epsilons;
mod parts;
mod study;
#[cfg(test)]
mod tests;

pub use epsilons::epsilon_page;
pub use study::study_page;
