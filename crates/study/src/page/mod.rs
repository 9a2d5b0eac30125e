//! The pages of a training: one study, or a sweep.

mod parts;
mod study;
mod sweep;
#[cfg(test)]
mod tests;

pub use study::study_page;
pub use sweep::sweep_page;
