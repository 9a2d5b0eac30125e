//! Labelled examples for training and testing: images and tables.

mod digits;
mod examples;
mod fashion_mnist;
mod file;
mod idx;
mod images;
mod table;

pub use digits::digits;
pub use examples::{Dataset, Example, Examples, ImageShape, numbered_classes};
pub use fashion_mnist::fashion_mnist;
pub use idx::idx;
pub use images::images;
#[cfg(feature = "parquet")]
pub use table::parquet;
pub use table::{Column, Missing, Schema, TestPart, Values, csv};
