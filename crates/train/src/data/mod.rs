//! Labelled examples for training and testing: images and tables; texts by user.

mod characters;
mod digits;
mod examples;
mod fashion_mnist;
mod file;
mod idx;
mod images;
mod remarks;
mod speeches;
mod table;

pub use characters::{SYMBOLS, symbol};
pub use digits::digits;
pub use examples::{Dataset, Example, Examples, ImageShape, numbered_classes};
pub use fashion_mnist::fashion_mnist;
pub use idx::{idx, idx_test};
pub use images::{class_folders, image_files, images};
pub use remarks::remarks;
pub use speeches::{Part, Text, bounded, by_speaker, part_of, stretches};
pub use table::{Column, Labels, Missing, Schema, TableFile, TestPart, Values};
