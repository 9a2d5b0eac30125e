//! Checkpoints: a run that is stopped or killed resumes with the same bits, or restarts with a fresh key; a
//! finished run leaves its results and no key.

mod files;
mod folder;
mod format;
mod identity;
mod lock;
mod manifest;
mod training;

pub(super) use files::refuse;
pub use folder::{Checkpoints, Committed};
pub(super) use format::Training;
pub(crate) use identity::{Identity, Lineage};
pub use lock::FolderLock;
pub(super) use manifest::Manifest;
pub use training::Finished;
pub(super) use training::{read_training, write_training};
