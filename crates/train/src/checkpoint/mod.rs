//! Checkpoints: a run that is stopped or killed resumes with the same bits, or restarts with a fresh key; a
//! finished run leaves its results and no key.
//!
//! A [`RunState`] is the part of a run that changes: noise, optimizer, parameters and [`History`]. It is
//! saved to and resumed from [`Checkpoints`], a folder of one run, and is bound to the [`Identity`] of the
//! run.
//!
//! A save writes, in this order: `noise-N.safetensors` (key and state of the noise), `training-N.safetensors`
//! (parameters, moments, history), and `checkpoint.toml` with the digests of both, whose rename commits the
//! step. Then the files of the previous step are wiped. After the last step there is no noise file.

mod files;
mod folder;
mod identity;
mod manifest;
mod state;
mod training_file;

pub use folder::{Checkpoints, Committed, FolderLock};
pub use identity::Identity;
pub use state::RunState;
#[cfg(test)]
pub(crate) use state::noise_of;
pub use training_file::{Finished, History};
