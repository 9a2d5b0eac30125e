//! Characters of users' texts: `--characters` and the model of them.

use antinoise_input::InvalidParameter;
use antinoise_study::{TABLES, Texts, table_file};
use clap::Args;

use super::table::TableOptions;
use crate::failure::Result;
use crate::numbers::count;

/// The prediction of characters.
#[derive(Debug, Clone, Args)]
pub struct TextOptions {
    /// Predict the next character of the texts in this column of a table, with an LSTM, instead of a label.
    /// All rows of a person are one text, in the file's order. Needs --user, --setting federated and
    /// --learning-rate. Characters are A to Z, a to z, space, newline and !&',-.:;? by number; all others
    /// are one.
    #[arg(long, value_name = "COLUMN")]
    characters: Option<String>,
    /// With --characters: the number of characters after which the model forgets all before [default: 40].
    #[arg(long, value_name = "N", value_parser = count)]
    sequence_length: Option<usize>,
    /// With --characters: how many of a person's characters are trained on, at most: the first [default:
    /// 4000].
    #[arg(long, value_name = "N", value_parser = count)]
    max_characters: Option<usize>,
    /// With --characters: the length of a character's vector [default: 16].
    #[arg(long, value_name = "N", value_parser = count)]
    embedding: Option<usize>,
    /// With --characters: the number of cells of the LSTM [default: 64].
    #[arg(long, value_name = "N", value_parser = count)]
    hidden: Option<usize>,
}

impl TextOptions {
    /// Name of the first option that is given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("characters", self.characters.is_some()),
            ("sequence_length", self.sequence_length.is_some()),
            ("max_characters", self.max_characters.is_some()),
            ("embedding", self.embedding.is_some()),
            ("hidden", self.hidden.is_some()),
        ];
        given.into_iter().find_map(|(name, given)| given.then_some(name))
    }

    /// The texts of `data` and their model, if characters are predicted.
    pub fn texts(
        &self,
        data: &str,
        table: &TableOptions,
        user: impl FnOnce() -> Result<Option<String>>,
    ) -> Result<Option<Texts>> {
        let Some(column) = &self.characters else {
            return self.given().map_or(Ok(None), |name| {
                let must_be = "left out without --characters";
                Err(InvalidParameter::new(name, "given", must_be).into())
            });
        };
        let Some((kind, _)) = table_file(data) else {
            let must_be = format!("left out unless --data is {TABLES}");
            return Err(InvalidParameter::new("characters", "given", must_be).into());
        };
        let (test, test_share, test_seed, delimiter) = table.of_texts(kind)?;
        Ok(Some(Texts {
            column: column.clone(),
            user: user()?.ok_or_else(|| {
                InvalidParameter::new("user", "absent", "the column of the persons whose texts are predicted")
            })?,
            test,
            test_share,
            test_seed,
            delimiter,
            max_characters: self.max_characters.unwrap_or(4000),
            sequence_length: self.sequence_length.unwrap_or(40),
            embedding: self.embedding.unwrap_or(16),
            hidden: self.hidden.unwrap_or(64),
        }))
    }
}
