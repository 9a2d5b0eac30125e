//! Files that are written completely or not at all, their permissions, and locks between processes.

mod lock;
pub mod owner;
mod whole;

pub use lock::Lock;
pub use whole::{Access, NewFile, failpoint, remove_stale, target_name, wipe, write_whole};
