//! A run: the plan's batches, clipping, the plan's noise, an optimiser.

mod checkpoint;
mod history;
mod run;
mod saved;
mod setup;
mod steps;

pub use checkpoint::{Checkpoints, Committed, Finished, FolderLock};
pub use history::History;
pub use run::{Options, Outcome};
pub use setup::Setup;
pub use steps::Trainer;
