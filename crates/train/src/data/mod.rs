//! Labelled images to train on and to test with.

mod digits;
mod examples;
mod fashion_mnist;
mod idx;

pub use digits::digits;
pub use examples::{Dataset, Examples, ImageShape};
pub use fashion_mnist::fashion_mnist;
pub use idx::idx;
