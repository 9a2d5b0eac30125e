//! What a checkpoint must share with the run that resumes it.

use std::collections::BTreeMap;

use antinoise_input::hex;
use sha2::{Digest, Sha256};

use crate::trainer::Setup;

/// Another version may add up the same gradients to other bits, and would hide them with the same noise.
pub(super) const PROGRAM: &str = "version of this program";

/// The plan, model, optimiser, data and program of a run.
pub(crate) struct Identity(BTreeMap<&'static str, String>);

/// An identity and the key that goes with it.
pub(crate) struct Lineage {
    pub(crate) identity: Identity,
    /// The noise's commitment at step 0: to the key, the run and the identity.
    pub(crate) origin: String,
}

impl Lineage {
    /// Of a run whose noise has this commitment at step 0.
    pub fn new(identity: Identity, origin: [u8; 32]) -> Self {
        Self { identity, origin: hex(&origin) }
    }
}

impl Identity {
    /// Of these parts; the version of this program is one more.
    pub(crate) fn new<const N: usize>(parts: [(&'static str, String); N]) -> Self {
        let version = (PROGRAM, env!("CARGO_PKG_VERSION").to_owned());
        Self(parts.into_iter().chain([version]).collect())
    }

    /// SHA-256 of all of it.
    pub fn digest(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        for part in self.0.iter().flat_map(|(what, identity)| [*what, identity]) {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        digest.finalize().into()
    }

    /// What is identified, and by which text.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.0.iter().map(|(what, identity)| (*what, identity.clone()))
    }
}

impl Setup<'_> {
    /// What a run of this setup is known by.
    pub(crate) fn identity(&self) -> Identity {
        let [train, test] = [&self.dataset.train, &self.dataset.test].map(|part| hex(&part.sha256()));
        Identity::new([
            ("plan", hex(&self.plan.digest())),
            ("model", hex(&Sha256::digest(self.model.identity()))),
            ("optimizer", self.recipe.identity()),
            ("data set", format!("{train} {test}")),
        ])
    }
}
