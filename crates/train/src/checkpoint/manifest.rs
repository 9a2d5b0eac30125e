//! The manifest: a small file whose renaming commits a checkpoint.

use std::io::ErrorKind;
use std::path::Path;

use antinoise_input::hex;
use antinoise_noise::RunId;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::files::{self, mismatch};
use crate::Error;

/// Increased by every change after which older folders cannot be read.
const VERSION: u32 = 2;
pub(super) const NAME: &str = "checkpoint.toml";
const CHECKSUM: &str = "checksum = ";

/// The committed state of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    version: u32,
    /// The caller's name of the run.
    pub run: String,
    /// The number in the files' names, increased by one at each checkpoint.
    pub save: u64,
    /// Number of steps done.
    pub step: usize,
    /// The commitment to the key, the run, its plan, model, data and optimizer, and the step.
    pub commitment: String,
    /// The commitment of step 0: the same for all checkpoints of a run, and different for every other key.
    pub origin: String,
    /// SHA-256 of the training file.
    pub training: String,
    /// SHA-256 of the noise file; absent once the run is finished and its key wiped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<String>,
    /// The date, in UTC, of the last step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<String>,
}

impl Manifest {
    /// The manifest of an unfinished run.
    pub fn new(run: &RunId, save: u64, step: usize, (origin, commitment): (String, String)) -> Self {
        let (run, training) = (run.to_string(), String::new());
        Self { version: VERSION, run, save, step, commitment, origin, training, noise: None, finished: None }
    }

    /// Reads the manifest in `folder`; `None` if nothing was committed there.
    pub fn read(folder: &Path) -> Result<Option<Self>, Error> {
        let path = folder.join(NAME);
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                return Err(mismatch(&path, "no text"));
            }
            read => read.map_err(Error::io(&path))?,
        };
        Self::parse(&text).map(Some).map_err(|reason| mismatch(&path, reason))
    }

    /// Makes this the folder's manifest: the rename is the commit.
    pub fn commit(&self, folder: &Path) -> Result<(), Error> {
        files::write(&folder.join(NAME), self.to_text().as_bytes())
    }

    fn to_text(&self) -> String {
        let text = toml::to_string(self).expect("a manifest has only strings and numbers");
        format!("{text}{CHECKSUM}\"{}\"\n", hex(&Sha256::digest(&text)))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let (body, checksum) = text.split_at(text.rfind(CHECKSUM).ok_or("without its checksum")?);
        if checksum != format!("{CHECKSUM}\"{}\"\n", hex(&Sha256::digest(body))) {
            return Err("altered: its checksum does not match".into());
        }
        let manifest: Self = toml::from_str(body).map_err(|error| error.message().to_owned())?;
        if manifest.version != VERSION {
            return Err(format!("of version {}, where this program writes {VERSION}", manifest.version));
        }
        if manifest.noise.is_some() == manifest.finished.is_some() {
            return Err("with both or neither of `noise` (a run to resume) and `finished`".into());
        }
        Ok(manifest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_altered_byte_is_noticed() {
        let mut manifest = Manifest::new(&RunId::default(), 3, 400, ("11".into(), "00ff".into()));
        (manifest.training, manifest.noise) = ("12".into(), Some("34".into()));
        let text = manifest.to_text();
        assert_eq!(Manifest::parse(&text), Ok(manifest));
        assert!(Manifest::parse(&text.replace("step = 400", "step = 0")).unwrap_err().contains("altered"));
        for at in 0..text.len() {
            let mut altered = text.clone().into_bytes();
            altered[at] ^= 1;
            assert!(Manifest::parse(&String::from_utf8(altered).unwrap()).is_err(), "byte {at}");
            assert!(Manifest::parse(&text[..at]).is_err(), "{at} bytes");
        }
    }
}
