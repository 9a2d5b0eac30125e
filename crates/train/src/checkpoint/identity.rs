//! The identity of a run, which a checkpoint must share with the run that resumes it.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

/// The part that names the version of this program. Another version may add the same gradients in another
/// order, so that the same noise would hide different sums.
pub(super) const PROGRAM: &str = "version of this program";

/// The parts of a run that a resumed run must share, such as its plan, model, optimizer and data, and the
/// version of this program.
///
/// ```
/// use antinoise_train::checkpoint::Identity;
/// let one = Identity::new([("plan", "12".into()), ("model", "34".into())]);
/// assert_ne!(one.digest(), one.clone().with("clipping", Some("56".into())).digest());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Identity(BTreeMap<&'static str, String>);

impl Identity {
    /// An identity of these parts, each with its name, and the version of this program.
    pub fn new<const N: usize>(parts: [(&'static str, String); N]) -> Self {
        let version = (PROGRAM, env!("CARGO_PKG_VERSION").to_owned());
        Self(parts.into_iter().chain([version]).collect())
    }

    /// Adds a part that not every run has.
    #[must_use]
    pub fn with(mut self, what: &'static str, identity: Option<String>) -> Self {
        self.0.extend(identity.map(|identity| (what, identity)));
        self
    }

    /// SHA-256 of all parts.
    pub fn digest(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        for part in self.0.iter().flat_map(|(what, identity)| [*what, identity]) {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        digest.finalize().into()
    }

    /// The parts: names and values.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.0.iter().map(|(what, identity)| (*what, identity.clone()))
    }
}
