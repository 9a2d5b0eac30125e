//! The identity of a run, which a checkpoint must share with the run that resumes it.

use std::collections::BTreeMap;

use antinoise_input::hex;
use sha2::{Digest, Sha256};

use crate::clip::Groups;
use crate::trainer::Setup;

/// Another version may add the same gradients in another order, and would hide different bits with the same
/// noise.
pub(super) const PROGRAM: &str = "version of this program";

/// Plan, model, optimizer, data and program of a run.
pub(crate) struct Identity(BTreeMap<&'static str, String>);

/// An identity and a commitment to its key.
pub(crate) struct Lineage {
    pub(crate) identity: Identity,
    /// The noise's commitment at step 0: to the key, the run and the identity.
    pub(crate) origin: String,
}

impl Lineage {
    /// The lineage of a run whose noise has this commitment at step 0.
    pub fn new(identity: Identity, origin: [u8; 32]) -> Self {
        Self { identity, origin: hex(&origin) }
    }
}

impl Identity {
    /// An identity of these parts and the version of this program.
    pub(crate) fn new<const N: usize>(parts: [(&'static str, String); N]) -> Self {
        let version = (PROGRAM, env!("CARGO_PKG_VERSION").to_owned());
        Self(parts.into_iter().chain([version]).collect())
    }

    /// Adds a part that not every run has.
    fn with(mut self, what: &'static str, identity: Option<String>) -> Self {
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
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.0.iter().map(|(what, identity)| (*what, identity.clone()))
    }
}

impl Setup<'_> {
    /// The identity of a run of this setup.
    pub(crate) fn identity(&self) -> Identity {
        let [train, test] = [&self.dataset.train, &self.dataset.test].map(|part| hex(&part.sha256()));
        Identity::new([
            ("plan", hex(&self.plan.digest())),
            ("model", hex(&Sha256::digest(self.model.identity()))),
            ("optimizer", self.recipe.identity()),
            ("data set", format!("{train} {test}")),
        ])
        .with("clipping", self.groups.map(Groups::identity))
    }
}
