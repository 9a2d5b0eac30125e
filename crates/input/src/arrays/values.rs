use std::fmt::Write;
use std::io::Read;

use super::header::{Header, refused};
use super::types::{Class, Number};
use crate::InvalidParameter;

/// Largest number of values that are read from one file.
pub(super) const MAX_VALUES: u64 = 1 << 28;

/// Number of values that may still be read from a file. A value of more than 8 bytes, as texts have, counts
/// as one for each 8.
pub(super) struct Room(u64);

impl Room {
    pub(super) fn new() -> Self {
        Self(MAX_VALUES)
    }
}

/// An array of one or two dimensions, whose values are read in the array's own type: as numbers, or as the
/// text that a CSV file would hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
    header: Header,
    bytes: Vec<u8>,
}

impl Values {
    /// Reads a `.npy` file; `name` is the array's name in errors.
    pub(super) fn read(name: &str, mut file: impl Read, room: &mut Room) -> Result<Self, InvalidParameter> {
        let header = Header::read(&mut file).map_err(|got| refused(name, got))?;
        let width = header.of.width as u64;
        let cost = |count: u64| count.checked_mul(width.div_ceil(8).max(1)).filter(|&cost| cost <= room.0);
        let Some((count, cost)) = header.count().and_then(|count| Some((count, cost(count)?))) else {
            return Err(refused(name, format!("of shape {:?}, too large", header.shape)));
        };
        let mut bytes = Vec::new();
        // One byte more than the values have, so that a longer file is noticed, and a checksum is compared.
        file.take(count * width + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| refused(name, format!("not readable ({error})")))?;
        if bytes.len() as u64 != count * width {
            let than = if (bytes.len() as u64) < count * width { "fewer" } else { "more" };
            return Err(refused(name, format!("{than} than {} bytes of values", count * width)));
        }
        room.0 -= cost;
        Ok(Self { header, bytes })
    }

    /// The length of each dimension.
    pub fn shape(&self) -> &[usize] {
        &self.header.shape
    }

    /// The kind of the values.
    pub fn class(&self) -> Class {
        self.header.of.class()
    }

    /// The values as numbers, row by row; `None` for text.
    pub(super) fn numbers(&self) -> Option<Vec<f64>> {
        if self.class() == Class::Text {
            return None;
        }
        let real = |bytes: &[u8]| match self.header.of.number(bytes) {
            Number::Real(x) => x,
            Number::Whole(x) => x as f64,
        };
        let values: Vec<f64> = self.bytes.chunks_exact(self.header.of.width).map(real).collect();
        Some(if self.header.by_columns { by_rows(&self.header.shape, &values) } else { values })
    }

    /// The value in `row` and `column` as text, written to `room`: of a truth value, true or false.
    ///
    /// # Errors
    /// When the value is not text in UTF-8 or of Unicode's code points; `what` names it in the error.
    ///
    /// # Panics
    /// Unless the array has this row, and this column, which is 0 for one dimension.
    pub fn text<'t>(
        &self,
        what: &str,
        (row, column): (usize, usize),
        room: &'t mut String,
    ) -> Result<&'t str, InvalidParameter> {
        room.clear();
        let bytes = self.at(row, column);
        match self.class() {
            Class::Text => self
                .header
                .of
                .text(bytes, room)
                .ok_or_else(|| InvalidParameter::new(what, "no text", "text in UTF-8 or Unicode"))?,
            class => {
                let _ = match self.header.of.number(bytes) {
                    Number::Real(x) => write!(room, "{x}"),
                    Number::Whole(x) if class == Class::Truth => write!(room, "{}", x != 0),
                    Number::Whole(x) => write!(room, "{x}"),
                };
            }
        }
        Ok(room)
    }

    /// The floating-point number in `row` and `column`, and the number from which on its type does not hold
    /// every whole number; `None` for other kinds.
    pub(super) fn real(&self, row: usize, column: usize) -> Option<(f64, f64)> {
        if self.class() != Class::Real {
            return None;
        }
        match self.header.of.number(self.at(row, column)) {
            Number::Real(x) => Some((x, self.header.of.exact_below())),
            Number::Whole(_) => None,
        }
    }

    fn at(&self, row: usize, column: usize) -> &[u8] {
        let (rows, columns) = match self.header.shape[..] {
            [rows] => (rows, 1),
            [rows, columns] => (rows, columns),
            _ => panic!("an array of one or two dimensions"),
        };
        assert!(row < rows && column < columns);
        let place = if self.header.by_columns { column * rows + row } else { row * columns + column };
        let width = self.header.of.width;
        &self.bytes[place * width..][..width]
    }
}

/// Values whose first dimension varies fastest, in the order in which the last does.
pub(super) fn by_rows(shape: &[usize], values: &[f64]) -> Vec<f64> {
    (0..values.len())
        .map(|at| {
            let (mut rest, mut found, mut stride) = (at, 0, values.len());
            for &length in shape.iter().rev() {
                stride /= length;
                found += rest % length * stride;
                rest /= length;
            }
            values[found]
        })
        .collect()
}
