//! One column of a table: public knowledge of its values, and the features that encode a cell.

use antinoise_input::arrays::column_of_array;
use antinoise_input::tables::is_missing;
use antinoise_input::{InvalidParameter, at_least, between};
use serde::{Deserialize, Serialize};

use super::text;

/// A column that is used, and public knowledge of its values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// The name in the file's first line.
    pub name: String,
    /// The possible values of the column's cells.
    pub values: Values,
}

/// The possible values of a column's cells, stated without looking at the private data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Values {
    /// A number x, encoded as the feature 2 (x - low) / (high - low) - 1; numbers outside the range are
    /// clamped to it.
    Range(f64, f64),
    /// One of these words, encoded as one feature per word: 1 for the cell's word and 0 for the others. The
    /// word `*` stands for every word that is not listed.
    Categories(Vec<String>),
    /// A text, encoded by hashing its words to this number of features; see `docs/tables.md`.
    Text(usize),
}

/// Bound on the features of a text: every row stores all of them, mostly zeros.
const MOST_OF_A_TEXT: usize = 1 << 16;

/// The category of words that are not listed.
const ANY: &str = "*";

/// The reason for which a cell is refused.
pub(super) enum Refused {
    /// The cell is empty, NaN or infinite.
    Missing,
    /// The cell must be something else.
    MustBe(String),
}

impl Column {
    /// Refuses an empty or infinite range, and words that are not distinct.
    pub(super) fn check(&self) -> Result<(), InvalidParameter> {
        match &self.values {
            Values::Range(low, high) if low.is_finite() && high.is_finite() && low < high => Ok(()),
            Values::Range(low, high) => {
                let must_be = "LOW:HIGH, finite numbers, the first below the second";
                Err(InvalidParameter::new(
                    format!("range of column {:?}", self.name),
                    format!("{low}:{high}"),
                    must_be,
                ))
            }
            Values::Categories(words) => {
                check_words(&format!("categories of column {:?}", self.name), words, 1)
            }
            Values::Text(features) => {
                let what = format!("features of text column {:?}", self.name);
                between(&what, *features, 1, MOST_OF_A_TEXT, "2^16").map(drop)
            }
        }
    }

    /// Whether `next` is the next column of the same array, with the same values: `x[3]` is before `x[4]`.
    ///
    /// ```
    /// use antinoise_train::data::{Column, Values};
    /// let column = |name: &str| Column { name: name.into(), values: Values::Range(0.0, 1.0) };
    /// assert!(column("x[9]").is_before(&column("x[10]")));
    /// assert!(!column("x[9]").is_before(&column("x[11]")) && !column("x").is_before(&column("x[1]")));
    /// ```
    pub fn is_before(&self, next: &Self) -> bool {
        match (column_of_array(&self.name), column_of_array(&next.name)) {
            (Some((array, index)), Some((other, following))) => {
                array == other && index + 1 == following && self.values == next.values
            }
            _ => false,
        }
    }

    /// Number of features of a cell.
    pub(crate) fn width(&self) -> usize {
        match &self.values {
            Values::Range(..) => 1,
            Values::Categories(words) => words.len(),
            Values::Text(features) => *features,
        }
    }

    /// Expected square of a cell's features: those of a number that is spread evenly over its range, else 1.
    pub(super) fn mean_square(&self) -> f64 {
        match &self.values {
            Values::Range(..) => 1.0 / 3.0,
            Values::Categories(_) | Values::Text(_) => 1.0,
        }
    }

    /// Writes the features of a cell over zeros. A missing cell keeps zeros: the middle of a range, no
    /// category, no word.
    pub(super) fn fill(&self, cell: &str, features: &mut [f32]) -> Result<(), Refused> {
        if is_missing(cell) {
            return Err(Refused::Missing);
        }
        match &self.values {
            Values::Range(low, high) => {
                let x: f64 = cell.parse().map_err(|_| Refused::MustBe("a number".into()))?;
                if !x.is_finite() {
                    return Err(Refused::Missing);
                }
                // Halved, so that ranges as wide as double precision do not overflow.
                let share = (x.clamp(*low, *high) / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
                features[0] = (2.0 * share - 1.0) as f32;
            }
            Values::Categories(words) => {
                let known = words.iter().position(|word| word == cell);
                let at = known.or_else(|| words.iter().position(|word| word == ANY));
                let must_be = || {
                    format!(
                        "{}, or any word if * is listed; list words that are publicly known, not those that occur",
                        one_of(words)
                    )
                };
                features[at.ok_or_else(|| Refused::MustBe(must_be()))?] = 1.0;
            }
            Values::Text(_) => text::fill(cell, features),
        }
        Ok(())
    }
}

/// Refuses fewer than `least` words, empty words and duplicates.
pub(super) fn check_words(what: &str, words: &[String], least: usize) -> Result<(), InvalidParameter> {
    at_least(&format!("number of {what}"), words.len(), least)?;
    for (i, word) in words.iter().enumerate() {
        if is_missing(word) || words[..i].contains(word) {
            let must_be = "different words, none of which stands for a missing cell";
            return Err(InvalidParameter::new(what, format!("{words:?}"), must_be));
        }
    }
    Ok(())
}

/// A list of words for an error message.
pub(super) fn one_of(words: &[String]) -> String {
    format!("one of {}", words.join(", "))
}
