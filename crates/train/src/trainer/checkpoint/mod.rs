//! Checkpoints: a run that is stopped or killed goes on to the same bits, or starts anew with a fresh key; a run that
//! is finished leaves its results and no key.

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
