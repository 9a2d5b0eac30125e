//! One row of numbers in memory that Python owns: one array, or several that hold it in consecutive parts.

use antinoise_input::InvalidParameter;
use numpy::{
    Element, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyReadwriteArrayDyn,
};
use numpy::{PyUntypedArray, PyUntypedArrayMethods, dtype};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::errors::Result;

const MUST_BE: &str = "a NumPy array, a tensor in the host's memory or another object with the buffer \
                       protocol, or a list of these";

/// The arrays that a caller passed as `name`: each of type `T` and contiguous, no two overlapping.
pub struct Arrays<'py, T: Element> {
    name: &'static str,
    arrays: Vec<Bound<'py, PyArrayDyn<T>>>,
}

impl<'py, T: Element> Arrays<'py, T> {
    /// The arrays in `given`: one array, or a list or tuple of arrays.
    ///
    /// # Errors
    /// Names `name`, its value and the values that are accepted.
    pub fn of(name: &'static str, given: &Bound<'py, PyAny>) -> Result<Self> {
        let parts: Vec<Bound<'py, PyAny>> =
            if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
                given.try_iter()?.collect::<PyResult<_>>()?
            } else {
                vec![given.clone()]
            };
        let arrays = parts.iter().map(|part| typed(name, &array(name, part)?)).collect::<Result<_>>()?;
        Ok(Self { name, arrays })
    }

    /// A single array, for reading.
    pub fn one(name: &'static str, given: &Bound<'py, PyAny>) -> Result<PyReadonlyArrayDyn<'py, T>> {
        Ok(Self::alone(name, given)?.readable()?.remove(0))
    }

    /// A single array, for writing.
    pub fn one_to_write(
        name: &'static str,
        given: &Bound<'py, PyAny>,
    ) -> Result<PyReadwriteArrayDyn<'py, T>> {
        Ok(Self::alone(name, given)?.writable()?.remove(0))
    }

    fn alone(name: &'static str, given: &Bound<'py, PyAny>) -> Result<Self> {
        Ok(Self { name, arrays: vec![typed(name, &array(name, given)?)?] })
    }

    /// The address ranges of the arrays: first byte, and one past the last.
    pub fn spans(&self) -> Vec<(usize, usize)> {
        let span = |array: &Bound<'py, PyArrayDyn<T>>| {
            let start = array.data() as usize;
            (start, start + array.len() * size_of::<T>())
        };
        self.arrays.iter().map(span).collect()
    }

    /// All arrays, for reading.
    pub fn readable(&self) -> Result<Vec<PyReadonlyArrayDyn<'py, T>>> {
        let borrowed = |array: &Bound<'py, PyArrayDyn<T>>| {
            array.try_readonly().map_err(|error| {
                refused(self.name, error, "an array that no other code writes meanwhile").into()
            })
        };
        self.arrays.iter().map(borrowed).collect()
    }

    /// All arrays, for writing.
    pub fn writable(&self) -> Result<Vec<PyReadwriteArrayDyn<'py, T>>> {
        let borrowed = |array: &Bound<'py, PyArrayDyn<T>>| {
            array.try_readwrite().map_err(|error| {
                refused(self.name, error, "a writable array that no other code uses meanwhile").into()
            })
        };
        self.arrays.iter().map(borrowed).collect()
    }
}

/// Refuses arrays that share memory, since a write to one would change the other.
pub fn refuse_overlap(name: &str, mut spans: Vec<(usize, usize)>) -> Result<()> {
    spans.retain(|span| span.0 < span.1);
    spans.sort_unstable();
    if spans.windows(2).any(|pair| pair[0].1 > pair[1].0) {
        return Err(refused(name, "arrays that share memory", "arrays that do not overlap").into());
    }
    Ok(())
}

fn refused(name: &str, got: impl ToString, must_be: &str) -> InvalidParameter {
    InvalidParameter::new(name, got.to_string(), must_be)
}

/// An array that shares the memory of `given`; never a copy, since the caller would not see changes to it.
fn array<'py>(name: &str, given: &Bound<'py, PyAny>) -> Result<Bound<'py, PyUntypedArray>> {
    if let Ok(array) = given.cast::<PyUntypedArray>() {
        return Ok(array.clone());
    }
    let not_one = || refused(name, given.get_type(), MUST_BE);
    if given.hasattr("data_ptr")? && given.hasattr("numpy")? {
        let shared = given.call_method0("detach").and_then(|tensor| tensor.call_method0("numpy"));
        let array = shared.map_err(|error| refused(name, error.value(given.py()), MUST_BE))?;
        let array = array.cast_into::<PyUntypedArray>().map_err(|_| not_one())?;
        let start: usize = array.getattr("ctypes")?.getattr("data")?.extract()?;
        let same = start == given.call_method0("data_ptr")?.extract::<usize>()?;
        return if same || array.is_empty() { Ok(array) } else { Err(not_one().into()) };
    }
    let py = given.py();
    let view = py.import("builtins")?.getattr("memoryview")?.call1((given,)).map_err(|_| not_one())?;
    let array = py.import("numpy")?.getattr("asarray")?.call1((view,))?;
    Ok(array.cast_into().map_err(|_| not_one())?)
}

/// The array as one of type `T`, contiguous.
fn typed<'py, T: Element>(
    name: &str,
    array: &Bound<'py, PyUntypedArray>,
) -> Result<Bound<'py, PyArrayDyn<T>>> {
    let (py, found) = (array.py(), array.dtype());
    let wanted = dtype::<T>(py);
    if !found.is_equiv_to(&wanted) {
        return Err(refused(name, format!("of dtype {found}"), &format!("of dtype {wanted}")).into());
    }
    if !array.is_c_contiguous() {
        let (strides, shape) = (array.strides(), array.shape());
        let got = format!("an array of shape {shape:?} and strides {strides:?}");
        return Err(refused(name, got, "contiguous, its last index fastest").into());
    }
    let whole: Bound<'py, PyArrayDyn<T>> =
        array.as_any().cast::<PyArrayDyn<T>>().map_err(PyErr::from)?.clone();
    if !(whole.data() as usize).is_multiple_of(align_of::<T>()) {
        return Err(refused(
            name,
            "an unaligned array",
            "an array aligned to its type, as NumPy allocates it",
        )
        .into());
    }
    Ok(whole)
}
