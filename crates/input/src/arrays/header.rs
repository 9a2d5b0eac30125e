//! The header of an array: its shape, its order of dimensions and the type of its values.

use std::io::Read;

use super::types::Type;
use crate::InvalidParameter;

/// Largest length of a header, in bytes.
const MAX_HEADER: usize = 1 << 20;

/// The error of an array, or of a file of arrays, that cannot be read.
pub(super) fn refused(name: &str, got: impl std::fmt::Display) -> InvalidParameter {
    let must_be = "of numbers, truth values or text, as NumPy's save and savez write them, and of at most 2^28 values in all";
    InvalidParameter::new(name, got, must_be)
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Header {
    pub(super) of: Type,
    /// Whether the first dimension varies fastest, instead of the last.
    pub(super) by_columns: bool,
    pub(super) shape: Vec<usize>,
}

impl Header {
    /// Reads the magic string, the version and the header: a dictionary of Python with three fields.
    pub(super) fn read(bytes: &mut impl Read) -> Result<Self, String> {
        let mut start = [0; 8];
        bytes.read_exact(&mut start).map_err(|error| shorter("a header", &error))?;
        if !start.starts_with(b"\x93NUMPY") {
            return Err("no array of NumPy".into());
        }
        let mut length = [0; 4];
        let width = if start[6] == 1 { 2 } else { 4 };
        bytes.read_exact(&mut length[..width]).map_err(|error| shorter("a header", &error))?;
        let length = u32::from_le_bytes(length) as usize;
        if !(1..=3).contains(&start[6]) || length > MAX_HEADER {
            return Err(format!("of version {} with a header of {length} bytes", start[6]));
        }
        let mut text = vec![0; length];
        bytes.read_exact(&mut text).map_err(|error| shorter("its header", &error))?;
        let text = String::from_utf8_lossy(&text);
        let unknown = || format!("an array with the header {:?}", text.trim());
        let descr = after(&text, "descr").ok_or_else(unknown)?;
        if descr.starts_with('[') {
            return Err("of structures".into());
        }
        let quoted = descr.strip_prefix('\'').and_then(|rest| rest.split_once('\''));
        let of = Type::parse(quoted.ok_or_else(unknown)?.0)?;
        let (by_columns, shape) = order_and_shape(&text).ok_or_else(unknown)?;
        Ok(Self { of, by_columns, shape })
    }

    /// Number of values; `None` if it has more than 64 bits.
    pub(super) fn count(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |all, &length| all.checked_mul(length as u64))
    }
}

fn shorter(than: &str, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => format!("shorter than {than}"),
        _ => format!("not readable ({error})"),
    }
}

/// The text of a field's value, and what follows it.
fn after<'a>(text: &'a str, field: &str) -> Option<&'a str> {
    Some(text.split_once(&format!("'{field}':"))?.1.trim_start())
}

fn order_and_shape(text: &str) -> Option<(bool, Vec<usize>)> {
    let order = after(text, "fortran_order")?;
    let by_columns = order.starts_with("True");
    let lengths = after(text, "shape")?.strip_prefix('(')?.split_once(')')?.0;
    let lengths = lengths.split(',').map(str::trim).filter(|length| !length.is_empty());
    let shape = lengths.map(|length| length.parse().ok()).collect::<Option<Vec<usize>>>()?;
    (by_columns || order.starts_with("False")).then_some((by_columns, shape))
}
