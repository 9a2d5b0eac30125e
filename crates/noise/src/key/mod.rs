//! Secrets: the caller's key, and the keys derived from it for a run and for each purpose.
//!
//! A stream takes its key by value, so that a key serves one stream; a key that is read twice from a file is
//! not recognised here. Python's `Key` keeps a record of its runs, and `used_steps` refuses a step that was
//! used.

mod derive;
mod run;
mod secret;

pub(crate) use derive::{BYTES, Derived, Description, StateFields};
pub use run::RunId;
pub(crate) use run::RunKey;
pub use secret::Key;
