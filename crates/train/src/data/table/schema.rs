//! What is publicly known of a table.

use antinoise_input::{InvalidParameter, at_least};
use serde::{Deserialize, Serialize};

use super::column::{Column, check_words};

/// What is publicly known of a table: which column is the label, its classes, and what the columns that are used may hold.
/// Nothing of it comes from the data, whose own least, largest or most frequent values would tell of them.
///
/// ```
/// use antinoise_train::data::Schema;
/// let schema = Schema::from_toml(r#"
///     label = "late"
///     classes = ["no", "yes"]
///     [[columns]]
///     name = "distance"
///     values = { range = [0, 5000] }
///     [[columns]]
///     name = "carrier"
///     values = { categories = ["AA", "UA", "*"] }
/// "#)?;
/// assert_eq!(schema.features(), 4);
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// The column whose cells are classes.
    pub label: String,
    /// Class 0, 1, ... as its cells have them.
    pub classes: Vec<String>,
    /// What becomes of missing cells.
    #[serde(default)]
    pub missing: Missing,
    /// The columns that are used, in the order of their features; others are not read.
    pub columns: Vec<Column>,
}

/// What becomes of cells that are empty, NA, null, NaN or infinite. A label is never missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// The file is refused.
    #[default]
    Refuse,
    /// Features of 0: the middle of a range, no category, no word.
    Zero,
}

impl Schema {
    /// Reads a schema in TOML.
    ///
    /// # Errors
    /// When it is not one, or as [`check`](Self::check).
    pub fn from_toml(text: &str) -> Result<Self, InvalidParameter> {
        let schema: Self = toml::from_str(text).map_err(|error| {
            InvalidParameter::new("schema", error.message(), "label, classes and [[columns]] in TOML")
        })?;
        schema.check()?;
        Ok(schema)
    }

    /// Refuses schemas without columns or with fewer than 2 classes, columns that are there twice, and ranges or words that
    /// are none.
    ///
    /// # Errors
    /// Names the column.
    pub fn check(&self) -> Result<(), InvalidParameter> {
        check_words(&format!("classes of column {:?}", self.label), &self.classes, 2)?;
        at_least("number of columns", self.columns.len(), 1)?;
        for (i, column) in self.columns.iter().enumerate() {
            column.check()?;
            let before = self.columns[..i].iter().map(|column| &column.name).chain([&self.label]);
            if before.into_iter().any(|name| *name == column.name) {
                let must_be = "named once, and not the label";
                return Err(InvalidParameter::new("column", format!("{:?} again", column.name), must_be));
            }
        }
        Ok(())
    }

    /// Numbers in one example.
    pub fn features(&self) -> usize {
        self.columns.iter().map(Column::width).sum()
    }
}
