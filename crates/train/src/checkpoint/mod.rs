//! Checkpoints: a run that is stopped or killed resumes with the same bits, or restarts with a fresh key; a
//! finished run leaves its results and no key.
//!
//! A [`RunState`] is the part of a run that changes: noise, optimizer, parameters and [`History`]. It is
//! saved to and resumed from [`Checkpoints`], a folder of one run, and is bound to the [`Identity`] of the
//! run.

mod contents;
mod files;
mod folder;
mod identity;
mod manifest;
mod state;

pub use contents::{Finished, History};
pub use folder::{Checkpoints, Committed, FolderLock};
pub use identity::Identity;
pub use state::RunState;
#[cfg(test)]
pub(crate) use state::noise_of;
