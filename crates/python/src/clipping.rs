//! The two passes over gradients of examples that PyTorch made, in double precision.

use antinoise_input::InvalidParameter;
use antinoise_train::clip;
use numpy::PyUntypedArrayMethods;
use pyo3::prelude::*;

use crate::errors::{Raised, Result};
use crate::process::threaded;
use crate::rows::Arrays;

/// Writes the squared length of each of `squares`' vectors in `vectors`, float32, into `squares`, float64.
#[pyfunction]
pub fn _squared_lengths(
    vectors: &Bound<'_, PyAny>,
    squares: &Bound<'_, PyAny>,
    threads: usize,
) -> Result<()> {
    let vectors = Arrays::<f32>::one("vectors", vectors)?;
    let mut squares = Arrays::<f64>::one_to_write("squares", squares)?;
    check_size(vectors.len(), squares.len(), vectors.len().checked_div(squares.len()).unwrap_or(0))?;
    let (py, vectors) = (squares.py(), vectors.as_slice().map_err(Raised::failed)?);
    let squares = squares.as_slice_mut().map_err(Raised::failed)?;
    py.detach(|| threaded(threads == 1, || clip::squared_lengths(vectors, squares, threads)))
}

/// Adds the `vectors`, float32, times their `factors`, float64, to `sums`, float64. A vector with factor 0 is
/// not read.
#[pyfunction]
pub fn _add_weighted(
    vectors: &Bound<'_, PyAny>,
    factors: &Bound<'_, PyAny>,
    sums: &Bound<'_, PyAny>,
    threads: usize,
) -> Result<()> {
    let vectors = Arrays::<f32>::one("vectors", vectors)?;
    let factors = Arrays::<f64>::one("factors", factors)?;
    let mut sums = Arrays::<f64>::one_to_write("sums", sums)?;
    check_size(vectors.len(), factors.len(), sums.len())?;
    let (py, vectors) = (sums.py(), vectors.as_slice().map_err(Raised::failed)?);
    let factors = factors.as_slice().map_err(Raised::failed)?;
    let sums = sums.as_slice_mut().map_err(Raised::failed)?;
    py.detach(|| threaded(threads == 1, || clip::add_weighted(vectors, factors, sums, threads)))
}

fn check_size(numbers: usize, vectors: usize, each: usize) -> Result<()> {
    if vectors.checked_mul(each) == Some(numbers) {
        return Ok(());
    }
    let must_be = format!("{vectors} times {each}");
    Err(InvalidParameter::new("size of vectors", numbers, must_be).into())
}
