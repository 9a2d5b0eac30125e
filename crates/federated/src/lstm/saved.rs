//! Trained models of characters in a folder.
//!
//! ```text
//! model.safetensors   the parameters as named tensors in PyTorch's layout
//! model.toml          the sizes of the model, and the columns of the table that it was trained on
//! ```

use std::path::Path;

use antinoise_input::{InvalidParameter, at_least, hex};
use antinoise_train::Error;
use antinoise_train::saved_model::{ModelFolder, check_parameters, tensors_to_bytes};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::shape::Lstm;
use super::users::UserTexts;
use crate::plays::UserText;

const VERSION: u32 = 1;
/// The kind of model, as `model.toml` names it.
const KIND: &str = "lstm";

/// A trained model of characters, with the length of sequences and the columns of the texts.
///
/// ```
/// use antinoise_federated::lstm::{Lstm, SavedLstm};
/// let model = Lstm::new(64, 2, 3)?;
/// let folder = tempfile::tempdir().unwrap();
/// let saved = SavedLstm::new(model, vec![0.5; model.parameters()], 40, ("line", "speaker"))?;
/// saved.save(folder.path())?;
/// assert!(SavedLstm::is_in(folder.path()));
/// assert_eq!(SavedLstm::load(folder.path())?, saved);
/// # Ok::<(), antinoise_train::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SavedLstm {
    model: Lstm,
    parameters: Vec<f32>,
    length: usize,
    text: String,
    user: String,
}

/// The kind of any model in `model.toml`.
#[derive(Deserialize)]
struct Kind {
    kind: String,
}

/// The contents of `model.toml`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    version: u32,
    kind: String,
    /// SHA-256 of `model.safetensors`.
    sha256: String,
    symbols: usize,
    embedding: usize,
    hidden: usize,
    /// Number of symbols in a sequence, before which h and c are 0.
    sequence_length: usize,
    /// The column of texts.
    text: String,
    /// The column of users.
    user: String,
}

impl SavedLstm {
    /// A model to save, which was trained on sequences of `length` symbols of the columns `text` and `user`.
    ///
    /// # Errors
    /// If `length` is 0, the parameters are not those of the model, or one is not finite.
    pub fn new(
        model: Lstm,
        parameters: Vec<f32>,
        length: usize,
        (text, user): (&str, &str),
    ) -> Result<Self, InvalidParameter> {
        at_least("sequence_length", length, 1)?;
        check_parameters(&parameters, model.parameters())?;
        Ok(Self { model, parameters, length, text: text.into(), user: user.into() })
    }

    /// Whether the folder holds such a model, rather than one of labels.
    pub fn is_in(folder: &Path) -> bool {
        ModelFolder(folder).description::<Kind>().is_ok_and(|found| found.kind == KIND)
    }

    /// The bytes of `model.safetensors`: the parameters as the tensors of [`Lstm::tensors`].
    ///
    /// # Errors
    /// If the format cannot hold the tensors.
    pub fn to_safetensors(&self) -> Result<Vec<u8>, Error> {
        Ok(tensors_to_bytes(&self.model.tensors(), &self.parameters)?)
    }

    /// Writes `model.safetensors` and `model.toml` into an existing folder, each whole or not at all.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn save(&self, folder: &Path) -> Result<(), Error> {
        let tensors = self.to_safetensors()?;
        let description = Description {
            version: VERSION,
            kind: KIND.into(),
            sha256: hex(&Sha256::digest(&tensors)),
            symbols: self.model.symbols(),
            embedding: self.model.embedding(),
            hidden: self.model.hidden(),
            sequence_length: self.length,
            text: self.text.clone(),
            user: self.user.clone(),
        };
        ModelFolder(folder).save(&tensors, &description)
    }

    /// Reads a folder that [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// If a file is absent or altered, or the two files are not of the same model.
    pub fn load(folder: &Path) -> Result<Self, Error> {
        let folder = ModelFolder(folder);
        let found: Description = folder.description()?;
        if (found.version, &found.kind[..]) != (VERSION, KIND) {
            let got = format!("of version {} and kind {}", found.version, found.kind);
            return Err(InvalidParameter::new("model.toml", got, "of version 1 and kind lstm").into());
        }
        let model = Lstm::new(found.symbols, found.embedding, found.hidden)?;
        let parameters = folder.parameters(model.parameters(), || model.tensors(), &found.sha256)?;
        Ok(Self::new(model, parameters, found.sequence_length, (&found.text, &found.user))?)
    }

    /// The texts as sequences for the model.
    ///
    /// # Errors
    /// As [`UserTexts::new`].
    pub fn users_of(&self, texts: Vec<UserText>) -> Result<UserTexts, InvalidParameter> {
        UserTexts::new(self.model, texts, self.length)
    }

    /// The model without its parameters.
    pub fn model(&self) -> Lstm {
        self.model
    }

    /// The parameters, as one vector.
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// Number of symbols in a sequence.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The columns of texts and of users.
    pub fn columns(&self) -> (&str, &str) {
        (&self.text, &self.user)
    }
}
