//! Texts by user, of which the next characters are predicted.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A table of texts by user, and a model of their characters, as the folder of a study stores them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Texts {
    /// The column of texts.
    pub column: String,
    /// The column of users.
    pub user: String,
    /// A file of the same format with the texts to test on; `None`: users of the same file.
    pub test: Option<PathBuf>,
    /// The share of users of the same file to test on.
    pub test_share: f64,
    /// The seed of the users to test on.
    pub test_seed: u64,
    /// The character between the cells of a CSV file.
    pub delimiter: u8,
    /// Maximum number of a user's characters that are trained on.
    pub max_characters: usize,
    /// Number of characters in a sequence, at whose start the model has seen nothing.
    pub sequence_length: usize,
    /// Length of a character's vector.
    pub embedding: usize,
    /// Number of cells of the LSTM.
    pub hidden: usize,
}

impl Texts {
    /// The part of a user's texts that is trained on, in words.
    pub(crate) fn in_words(&self) -> String {
        format!(
            ", whose texts are their examples: sequences of {} characters, of the first {} characters of a user",
            self.sequence_length, self.max_characters
        )
    }
}
