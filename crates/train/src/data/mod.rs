//! Labelled examples for training and testing: images and tables.

mod digits;
mod draw;
mod examples;
mod fashion_mnist;
mod file;
mod idx;
mod images;
mod remarks;
mod table;
mod users;

pub use digits::digits;
pub use examples::{Dataset, Example, Examples, ImageShape, numbered_classes};
pub use fashion_mnist::fashion_mnist;
pub use idx::{idx, idx_test};
pub use images::{class_folders, image_files, images, images_of_persons};
pub use remarks::remarks;
pub use table::{Column, Labels, Missing, Schema, TableFile, TestPart, TextRows, Values};
pub use users::Users;
