//! Attributes of rows: columns whose categories or buckets are known in advance, and whose combinations
//! marginals count.

use std::collections::HashMap;
use std::fmt;

use antinoise_input::tables::normal_form;
use antinoise_input::{InvalidParameter, between};

use crate::queries::marginals::tables;
use crate::queries::measure::{bucket_name, most_ways};

/// A column of the events, and the classes into which its cells are sorted.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// The name of the column.
    pub column: String,
    /// The classes of its cells.
    pub classes: Classes,
}

/// The classes of a column: they are public, and must not depend on the data.
#[derive(Debug, Clone, PartialEq)]
pub enum Classes {
    /// `COLUMN=A|B|...`: each name is a class.
    Names(Vec<String>),
    /// `COLUMN@E1,E2,...`: numbers below E1, from E1 to below E2, and so on, and not below the last edge.
    Edges(Vec<f64>),
}

/// Maximum number of columns of marginals, and of their tables.
const MOST_ATTRIBUTES: usize = 16;
const MOST_TABLES: usize = 1024;
/// Maximum length in bytes of the name of a column or class: names are part of the published table.
const LONGEST: usize = 256;
/// The published name of the table of no columns and of its cell.
pub(crate) const TOTAL: &str = "all";
/// Characters that have a meaning in the text of a query or between names of columns.
const RESERVED: [char; 5] = [';', '=', '@', '|', ','];

/// Refuses columns or tables that cannot be published.
pub(crate) fn check(attributes: &[Attribute], ways: &[usize]) -> Result<(), InvalidParameter> {
    between("columns of the marginals", attributes.len(), 1, MOST_ATTRIBUTES, "the limit")?;
    for (at, attribute) in attributes.iter().enumerate() {
        attribute.check()?;
        if attributes[..at].iter().any(|other| other.column == attribute.column) {
            let got = format!("{:?} twice", attribute.column);
            return Err(InvalidParameter::new("columns of the marginals", got, "distinct"));
        }
    }
    let increase = ways.windows(2).all(|pair| pair[0] < pair[1]);
    if ways.is_empty() || !increase || most_ways(ways) > attributes.len() {
        let got = ways.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let must_be = format!("increasing numbers of columns, from 0 to {}", attributes.len());
        return Err(InvalidParameter::new("ways of the marginals", got, must_be));
    }
    if ways == [0] {
        return Err(InvalidParameter::new("ways of the marginals", 0, "1 or more too: counts are the total"));
    }
    let tables = tables::count(attributes.len(), most_ways(ways));
    between("tables of the marginals", tables, 1, MOST_TABLES, "the limit")?;
    Ok(())
}

impl Attribute {
    /// The attribute that `text` describes, without checks; `None` if it has neither form.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let at = text.find(['=', '@'])?;
        let (column, rest) = (text[..at].trim().to_string(), &text[at + 1..]);
        let classes = if text[at..].starts_with('=') {
            Classes::Names(rest.split('|').map(String::from).collect())
        } else {
            let edges = rest.split(',').map(|edge| edge.trim().parse().ok());
            Classes::Edges(edges.collect::<Option<_>>()?)
        };
        Some(Self { column, classes })
    }

    /// Number of classes.
    pub(crate) fn count(&self) -> usize {
        match &self.classes {
            Classes::Names(names) => names.len(),
            Classes::Edges(edges) => edges.len() + 1,
        }
    }

    /// A class with its column: `city=north`, or `age 18 to 30`.
    pub(crate) fn class_name(&self, class: usize) -> String {
        match &self.classes {
            Classes::Names(names) => format!("{}={}", self.column, names[class]),
            Classes::Edges(edges) => format!("{} {}", self.column, bucket_name(edges, class)),
        }
    }

    /// Refuses names that could not be written or published, and classes that are not apart.
    pub(crate) fn check(&self) -> Result<(), InvalidParameter> {
        let column = &self.column;
        if !is_visible(column) || column.contains(RESERVED) || column == TOTAL {
            let must_be =
                "a name of 1 to 256 bytes, not all, without outer spaces, control characters, ; = @ | and ,";
            return Err(InvalidParameter::new("column of the marginals", format!("{column:?}"), must_be));
        }
        match &self.classes {
            Classes::Names(names) => self.check_names(names),
            Classes::Edges(edges) => {
                let increase = edges.windows(2).all(|pair| pair[0] < pair[1]);
                if edges.is_empty() || !increase || edges.iter().any(|edge| !edge.is_finite()) {
                    let must_be = "finite and increasing, one at least";
                    return Err(InvalidParameter::new(format!("edges of {column}"), self, must_be));
                }
                Ok(())
            }
        }
    }

    fn check_names(&self, names: &[String]) -> Result<(), InvalidParameter> {
        let parameter = || format!("categories of {}", self.column);
        let mut seen = HashMap::new();
        for name in names {
            if !is_visible(name) || name.contains([';', '|']) {
                let must_be = "names of 1 to 256 bytes without outer spaces, control characters, ; and |";
                return Err(InvalidParameter::new(parameter(), format!("with {name:?}"), must_be));
            }
            if let Some(other) = seen.insert(normal_form(name), name) {
                let must_be = "distinct, whatever their case, spaces and Unicode form";
                return Err(InvalidParameter::new(parameter(), format!("{other:?} and {name:?}"), must_be));
            }
        }
        if names.len() < 2 {
            let must_be = "two at least: with a single one, all rows are alike";
            return Err(InvalidParameter::new(parameter(), names.len(), must_be));
        }
        Ok(())
    }
}

/// Whether a name can be read where it is published, and written by others.
fn is_visible(name: &str) -> bool {
    !name.is_empty() && name.len() <= LONGEST && name.trim() == name && !name.chars().any(char::is_control)
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.classes {
            Classes::Names(names) => write!(f, "{}={}", self.column, names.join("|")),
            Classes::Edges(edges) => {
                let edges: Vec<String> = edges.iter().map(f64::to_string).collect();
                write!(f, "{}@{}", self.column, edges.join(","))
            }
        }
    }
}
