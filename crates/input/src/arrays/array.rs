use std::io::Read;

use super::header::refused;
use super::values::{Room, Values};
use crate::InvalidParameter;

/// An array of numbers in double precision, row by row.
///
/// ```
/// let mut file = b"\x93NUMPY\x01\x00\x46\x00".to_vec();
/// file.extend(format!("{:<70}", "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }").bytes());
/// file.extend([1f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_le_bytes()));
/// let array = antinoise_input::arrays::Array::from_npy("C", &file[..])?;
/// assert_eq!((array.shape, array.values), (vec![2, 2], vec![1.0, 3.0, 2.0, 4.0]));
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Array {
    /// The length of each dimension.
    pub shape: Vec<usize>,
    /// The values; the last dimension varies fastest.
    pub values: Vec<f64>,
}

impl Array {
    /// Reads a `.npy` file; `name` is the array's name in errors.
    ///
    /// # Errors
    /// When the bytes are not an array of numbers, are too few or too many for the array's shape, or the
    /// array has more than 2^28 values.
    pub fn from_npy(name: &str, bytes: impl Read) -> Result<Self, InvalidParameter> {
        Self::of(name, &Values::read(name, bytes, &mut Room::new())?)
    }

    pub(super) fn of(name: &str, values: &Values) -> Result<Self, InvalidParameter> {
        let numbers = values.numbers().ok_or_else(|| refused(name, "of text, where numbers are needed,"))?;
        Ok(Self { shape: values.shape().to_vec(), values: numbers })
    }
}
