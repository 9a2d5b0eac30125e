//! Secrets: the caller's key, and the keys derived from it for a run and for each purpose.

mod derive;
mod run;
mod secret;

pub(crate) use derive::{BYTES, Derived, Description, StateFields};
pub use run::RunId;
pub(crate) use run::RunKey;
pub use secret::Key;
