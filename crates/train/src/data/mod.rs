//! Labelled examples for training and testing: images and tables; texts by user.

mod characters;
mod digits;
mod examples;
mod fashion_mnist;
mod file;
mod idx;
mod images;
mod speeches;
mod table;

pub use characters::{SYMBOLS, symbol};
pub use digits::digits;
pub use examples::{Dataset, Example, Examples, ImageShape};
pub use fashion_mnist::fashion_mnist;
pub use idx::idx;
pub use images::images;
pub use speeches::{Part, Text, bounded, by_speaker, part_of, stretches};
#[cfg(feature = "parquet")]
pub use table::parquet;
pub use table::{Column, Missing, Schema, TestPart, Values, csv};
