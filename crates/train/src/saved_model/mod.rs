//! Trained models in a folder: named tensors, and everything that new rows need to become features.
//!
//! ```text
//! model.safetensors   the parameters as named tensors in PyTorch's layout
//! model.toml          layers, the shape of an input, the names of classes, the schema of a table
//! ```

mod description;
mod files;
mod folder;
mod model;
mod scores;

pub use files::tensors_to_bytes;
pub use folder::{ModelFolder, check_parameters};
pub use model::SavedModel;
pub use scores::{Prediction, Scores};
