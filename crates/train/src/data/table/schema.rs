//! Public knowledge of a table.

use std::collections::HashSet;

use antinoise_input::{InvalidParameter, at_least};
use serde::{Deserialize, Serialize};

use super::column::{Column, check_words};

/// Public knowledge of a table: the column of labels, its classes, and the possible values of the columns
/// that are used. It must not come from the data: the smallest, largest or most frequent values of private
/// data would reveal something about them.
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
    /// The labels of class 0, 1, ..., as written in cells.
    pub classes: Vec<String>,
    /// The treatment of missing cells.
    #[serde(default)]
    pub missing: Missing,
    /// The columns that are used, in the order of their features; other columns are not read.
    pub columns: Vec<Column>,
}

/// The treatment of cells that are empty, NA, null, NaN or infinite. A missing label is always refused.
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
    /// If the text is not a schema, or as [`check`](Self::check).
    pub fn from_toml(text: &str) -> Result<Self, InvalidParameter> {
        let schema: Self = toml::from_str(text).map_err(|error| {
            let got = format!("unreadable ({})", error.message());
            InvalidParameter::new("schema", got, "label, classes and [[columns]] in TOML")
        })?;
        schema.check()?;
        Ok(schema)
    }

    /// Refuses schemas without columns or with fewer than 2 classes, duplicate columns, and invalid ranges or
    /// words.
    ///
    /// # Errors
    /// Names the column.
    pub fn check(&self) -> Result<(), InvalidParameter> {
        check_words(&format!("classes of column {:?}", self.label), &self.classes, 2)?;
        at_least("number of columns", self.columns.len(), 1)?;
        let mut names = HashSet::from([&self.label]);
        for column in &self.columns {
            column.check()?;
            if !names.insert(&column.name) {
                let must_be = "named once, and not be the label";
                return Err(InvalidParameter::new(
                    format!("column {:?}", column.name),
                    "named twice",
                    must_be,
                ));
            }
        }
        Ok(())
    }

    /// Number of features of one example.
    pub fn features(&self) -> usize {
        self.columns.iter().map(Column::width).sum()
    }

    /// Norm of an encoded row by public knowledge, for [`crate::trainer::default_rate`]: the root of the sum
    /// over columns of 1/3 for a range (the mean square of a number spread evenly over -1 to 1) and of 1 for
    /// categories and texts.
    ///
    /// ```
    /// use antinoise_train::data::{Column, Missing, Schema, Values};
    /// let (label, classes) = ("section".into(), vec!["doc".into(), "net".into()]);
    /// let column = Column { name: "description".into(), values: Values::Text(2048) };
    /// let schema = Schema { label, classes, missing: Missing::Refuse, columns: vec![column] };
    /// assert_eq!(schema.input_norm(), 1.0);
    /// ```
    pub fn input_norm(&self) -> f64 {
        self.columns.iter().map(Column::mean_square).sum::<f64>().sqrt()
    }
}
