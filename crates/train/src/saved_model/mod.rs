//! Trained models in a folder: named tensors, and everything that new rows need to become features.
//!
//! ```text
//! model.safetensors   the parameters as named tensors in PyTorch's layout
//! model.toml          layers, the shape of an input, the names of classes, the schema of a table
//! ```

mod description;
mod files;
mod model;
mod scores;

pub use model::SavedModel;
pub use scores::{Prediction, Scores};
