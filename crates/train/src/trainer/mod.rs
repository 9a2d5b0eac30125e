//! Training runs: the plan's batches, clipping, the plan's noise, an optimizer.

mod checkpoint;
mod history;
mod run;
mod saved;
mod setup;
mod steps;

pub use checkpoint::{Checkpoints, Committed, Finished, FolderLock};
#[cfg(feature = "federated")]
pub(crate) use checkpoint::{Identity, Lineage};
pub use history::History;
pub use run::{Options, Outcome, Pace};
#[cfg(feature = "federated")]
pub(crate) use saved::{Restored, State};
pub use setup::Setup;
#[cfg(feature = "federated")]
pub(crate) use setup::noise_of;
pub use steps::Trainer;
