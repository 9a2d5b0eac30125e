//! An array of numbers.

/// Largest number of values of an array: 0.8 GB.
pub(super) const MAX_VALUES: u64 = 100_000_000;

/// An array of numbers, row by row.
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
