//! The persons of data without columns.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The source of the names of persons of data without columns, as the folder of a study stores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Persons {
    /// The folders of images.
    Folders,
    /// The lines of a file.
    Lines(PathBuf),
}
