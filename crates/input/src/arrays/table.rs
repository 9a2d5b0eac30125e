//! The arrays of an `.npz` archive as columns.

use std::collections::HashMap;
use std::path::Path;

use super::archive::Archive;
use super::types::Class;
use super::values::Values;
use crate::InvalidParameter;
use crate::tables::{Role, column_index, write_real_user};

/// Columns of an `.npz` archive: `x` is an array of one dimension, and `x[0]`, `x[1]`, ... are the columns of
/// an array of two.
///
/// Errors name an array, and not the file.
pub struct ArrayTable {
    rows: usize,
    arrays: Vec<Values>,
    columns: Vec<Column>,
}

/// A column that was asked for.
struct Column {
    /// The index of its array.
    array: usize,
    /// The column of the array.
    index: usize,
    role: Role,
}

/// Largest number of columns of an array, each of which a schema names.
const MAX_COLUMNS: usize = 1 << 16;

/// The name of column `index` of the array `name`.
fn column_name(name: &str, index: usize) -> String {
    format!("{name}[{index}]")
}

/// The array and the index in the name of a column of an array of two dimensions.
///
/// ```
/// use antinoise_input::arrays::column_of_array;
/// assert_eq!(column_of_array("x[12]"), Some(("x", 12)));
/// assert_eq!([column_of_array("x"), column_of_array("x[01]"), column_of_array("x[]")], [None; 3]);
/// ```
pub fn column_of_array(column: &str) -> Option<(&str, usize)> {
    let (name, index) = column.strip_suffix(']')?.rsplit_once('[')?;
    Some((name, index.parse().ok().filter(|&number: &usize| number.to_string() == index)?))
}

impl Archive {
    /// The columns of the array `name`: its own name if it has one dimension, and `name[0]`, `name[1]`, ...
    /// if it has two; also its own name if there is no such array. No value is read.
    ///
    /// # Errors
    /// When the array's header cannot be read, or the array has neither one nor two dimensions, no column, or
    /// more than 65536 columns.
    pub fn columns(&mut self, name: &str) -> Result<Vec<String>, InvalidParameter> {
        match self.shape(name)?.as_deref() {
            None | Some([_]) => Ok(vec![name.to_string()]),
            Some(&[_, columns]) if (1..=MAX_COLUMNS).contains(&columns) => {
                Ok((0..columns).map(|i| column_name(name, i)).collect())
            }
            Some(shape) => Err(shape_refused(name, shape)),
        }
    }
}

fn shape_refused(name: &str, shape: &[usize]) -> InvalidParameter {
    let must_be = "of one dimension, rows, or of two, rows and 1 to 65536 columns";
    InvalidParameter::new(format!("array {name:?}"), format!("of shape {shape:?}"), must_be)
}

impl ArrayTable {
    /// Reads the arrays with these columns from the `.npz` archive at `path`; other arrays are not read.
    ///
    /// # Errors
    /// When a column is absent or of values that its role does not accept, arrays have different numbers of
    /// rows, or an array is damaged, of objects, or too large together with the others.
    pub fn open(path: &Path, asked: &[(&str, Role)]) -> Result<Self, InvalidParameter> {
        let mut archive = Archive::open(path)?;
        let mut table = Self { rows: 0, arrays: Vec::new(), columns: Vec::new() };
        let mut known: HashMap<&str, usize> = HashMap::new();
        for &(column, role) in asked {
            let is_array = archive.names().any(|name| name == column);
            let (name, index) = match column_of_array(column).filter(|_| !is_array) {
                Some((name, index)) => (name, Some(index)),
                None => (column, None),
            };
            let at = match known.get(name) {
                Some(&at) => at,
                None => {
                    column_index(archive.names(), name)?;
                    table.add(name, archive.values(name)?.expect("the name is one of the archive"))?;
                    known.insert(name, table.arrays.len() - 1);
                    table.arrays.len() - 1
                }
            };
            table.columns.push(Column { array: at, index: table.column(at, name, index, role)?, role });
        }
        Ok(table)
    }

    fn add(&mut self, name: &str, values: Values) -> Result<(), InvalidParameter> {
        let &([rows] | [rows, _]) = values.shape() else { return Err(shape_refused(name, values.shape())) };
        if self.arrays.is_empty() {
            self.rows = rows;
        }
        if rows != self.rows {
            let must_be = format!("{}, as in the other arrays", self.rows);
            return Err(InvalidParameter::new(format!("number of rows of array {name:?}"), rows, must_be));
        }
        self.arrays.push(values);
        Ok(())
    }

    /// The column of the array number `at` that `name[index]` names, or `name` alone.
    fn column(
        &self,
        at: usize,
        name: &str,
        index: Option<usize>,
        role: Role,
    ) -> Result<usize, InvalidParameter> {
        let values = &self.arrays[at];
        let refused =
            |got: String, must_be: &str| Err(InvalidParameter::new(format!("array {name:?}"), got, must_be));
        let column = match (values.shape(), index) {
            (&[_], None) => 0,
            (&[_, columns], Some(index)) if index < columns => index,
            (&[_, columns], None) => {
                return refused(
                    format!("of {columns} columns"),
                    "one column, such as an array of one dimension",
                );
            }
            (shape, Some(index)) => {
                return refused(
                    format!("of shape {shape:?}"),
                    &format!("of two dimensions with a column {index}"),
                );
            }
            (shape, None) => return Err(shape_refused(name, shape)),
        };
        let is_read = match role {
            Role::Time => values.class() != Class::Truth,
            Role::Name => values.class() != Class::Real,
            Role::User => true,
            Role::Value => matches!(values.class(), Class::Real | Class::Whole),
        };
        if is_read { Ok(column) } else { refused(format!("of {}", values.class()), role.must_be()) }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The cell in `row` of the column number `column` of those that were asked for, as the text that a CSV
    /// file would hold, written to `room`; of a user as [`user_name`](crate::tables::user_name) reads it.
    ///
    /// # Errors
    /// When it is text that is not Unicode, or a user's number that may have been rounded. The error names
    /// the cell by `what`.
    ///
    /// # Panics
    /// Unless `row < self.rows()` and the column was asked for.
    pub fn text<'t>(
        &self,
        what: &str,
        (row, column): (usize, usize),
        room: &'t mut String,
    ) -> Result<&'t str, InvalidParameter> {
        let Column { array, index, role } = self.columns[column];
        let values = &self.arrays[array];
        match values.real(row, index).filter(|_| role == Role::User) {
            Some((number, exact_below)) => write_real_user(what, number, exact_below, room),
            None => values.text(what, (row, index), room),
        }
    }
}
