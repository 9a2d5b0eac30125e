//! Secrets: the caller's key, and the keys derived from it for a run and for each purpose.
//!
//! A stream that takes its key by value is the only one that uses this key; but a key that is read twice from
//! a file is not detected here. Python's `Key` records its runs, and `used_steps` refuses steps whose noise
//! was handed out.

mod derive;
mod run;
mod secret;

pub(crate) use derive::{BYTES, Derived, Description, StateFields};
pub use run::RunId;
pub(crate) use run::RunKey;
pub use secret::Key;
