//! The two files of a trained model: its parameters, and what describes them.

use std::path::Path;

use antinoise_input::files::{Access, write_whole};
use antinoise_input::{InvalidParameter, hex};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::files::tensors_from_bytes;
use crate::Error;
use crate::model::NamedTensor;

const TENSORS: &str = "model.safetensors";
const DESCRIPTION: &str = "model.toml";
/// Largest description: a schema of 10^6 words.
const MAX_DESCRIPTION: u64 = 1 << 26;

/// A folder with `model.safetensors`, the parameters, and `model.toml`, a description with their SHA-256.
#[derive(Debug, Clone, Copy)]
pub struct ModelFolder<'a>(pub &'a Path);

impl ModelFolder<'_> {
    /// Writes both files into the existing folder, each whole or not at all.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn save(self, tensors: &[u8], description: &impl Serialize) -> Result<(), Error> {
        let text = toml::to_string(description)
            .map_err(|error| InvalidParameter::new(DESCRIPTION, error, "a description in TOML"))?;
        for (name, contents) in [(TENSORS, tensors), (DESCRIPTION, text.as_bytes())] {
            let path = self.0.join(name);
            write_whole(&path, Access::Everyone, contents).map_err(Error::io(&path))?;
        }
        Ok(())
    }

    /// Reads the description.
    ///
    /// # Errors
    /// If the folder has no description, or one of another form.
    pub fn description<D: DeserializeOwned>(self) -> Result<D, Error> {
        let path = self.0.join(DESCRIPTION);
        if !std::fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= MAX_DESCRIPTION) {
            let inside = self.0.join("model");
            let must_be = match inside.join(DESCRIPTION).is_file() {
                true => format!("{}, the folder of the model in it", inside.display()),
                false => {
                    format!("a folder with {DESCRIPTION}, as `antinoise train --out DIR` writes DIR/model")
                }
            };
            return Err(InvalidParameter::new("model folder", self.0.display(), must_be).into());
        }
        let text = std::fs::read_to_string(&path).map_err(Error::io(&path))?;
        Ok(toml::from_str(&text).map_err(|error| {
            let got = format!("unreadable ({})", error.message());
            InvalidParameter::new(DESCRIPTION, got, "a description that `antinoise train` wrote")
        })?)
    }

    /// Reads the `count` parameters: the numbers of `tensors`, in a file of this SHA-256.
    ///
    /// # Errors
    /// If the file is absent, altered, or of another model.
    pub fn parameters(
        self,
        count: usize,
        tensors: impl FnOnce() -> Vec<NamedTensor>,
        sha256: &str,
    ) -> Result<Vec<f32>, Error> {
        let path = self.0.join(TENSORS);
        let size = std::fs::metadata(&path).map_err(Error::io(&path))?.len();
        // Before memory is allocated for a model that is larger than the file.
        if size / 4 < count as u64 {
            let must_be = format!("a file of {count} numbers, the model's");
            return Err(
                InvalidParameter::new(path.display().to_string(), format!("{size} bytes"), must_be).into()
            );
        }
        let bytes = std::fs::read(&path).map_err(Error::io(&path))?;
        if hex(&Sha256::digest(&bytes)) != sha256 {
            let must_be =
                format!("the file that {DESCRIPTION} describes: its SHA-256 differs from the one there");
            return Err(InvalidParameter::new(path.display().to_string(), "altered", must_be).into());
        }
        Ok(tensors_from_bytes(&path, &tensors(), &bytes)?)
    }
}

/// Refuses parameters of another number than `count`, or that are not finite.
///
/// # Errors
/// Names the number, or a parameter.
pub fn check_parameters(parameters: &[f32], count: usize) -> Result<(), InvalidParameter> {
    if parameters.len() != count {
        let must_be = format!("{count}, the model's");
        return Err(InvalidParameter::new("number of parameters", parameters.len(), must_be));
    }
    match parameters.iter().find(|x| !x.is_finite()) {
        Some(other) => Err(InvalidParameter::new("parameter", other, "a finite number")),
        None => Ok(()),
    }
}
