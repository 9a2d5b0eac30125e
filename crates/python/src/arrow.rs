//! Reads an Arrow C stream batch by batch. Arrow's own reader would count rows that are null as a whole.

use std::ffi::CStr;
use std::sync::Arc;

use antinoise_input::InvalidParameter;
use antinoise_input::tables::catch_panic;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatch, RecordBatchOptions, StructArray};
use arrow_schema::{DataType, Schema, SchemaRef};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::{Raised, Result};
use crate::table::STREAM;

/// Maximum nesting of types: Arrow's library reads nested types by recursion.
const DEEPEST: usize = 64;

/// A stream of record batches from a foreign producer.
pub struct Stream {
    stream: FFI_ArrowArrayStream,
    schema: SchemaRef,
}

impl Stream {
    /// Takes ownership of the stream that `events` exports.
    pub fn of(events: &Bound<'_, PyAny>) -> Result<Self> {
        let capsule = events.call_method0("__arrow_c_stream__")?;
        let capsule = capsule.cast::<PyCapsule>().map_err(|error| unreadable(error.to_string()))?;
        let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
        // SAFETY: by Arrow's PyCapsule protocol, a capsule of this name holds such a stream until the stream
        // is moved out, and moving it out marks the original as released.
        let mut stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) };
        let get_schema = stream
            .get_schema()
            .filter(|_| stream.release().is_some())
            .ok_or_else(|| unreadable("it was used up"))?;
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the function is the stream's own. It fills the schema, which is released when dropped.
        if unsafe { get_schema(&raw mut stream, &raw mut schema) } != 0 {
            return Err(unreadable(last_error(&mut stream)));
        }
        let schema = Arc::new(read_schema(&schema)?);
        Ok(Self { stream, schema })
    }

    /// The columns of every batch.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The next batch; `None` at the end of the stream.
    pub fn next(&mut self) -> Result<Option<RecordBatch>> {
        let get_next = self.stream.get_next().ok_or_else(|| unreadable("it gives no batches"))?;
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: the function is the stream's own. It fills the array, which is released when dropped.
        if unsafe { get_next(&raw mut self.stream, &raw mut array) } != 0 {
            return Err(broke_off(last_error(&mut self.stream)));
        }
        if array.is_released() {
            return Ok(None);
        }
        let row = DataType::Struct(self.schema.fields().clone());
        // SAFETY: by Arrow's C stream interface, the array has the type of the stream's schema and owns its
        // memory.
        let data =
            unsafe { from_ffi_and_data_type(array, row) }.map_err(|error| unreadable(error.to_string()))?;
        let rows = StructArray::from(data);
        if rows.null_count() > 0 {
            let got = format!("a table with {} rows that are null as a whole", rows.null_count());
            return Err(
                InvalidParameter::new("events", got, "one without such rows, which have no user").into()
            );
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch =
            RecordBatch::try_new_with_options(Arc::clone(&self.schema), rows.columns().to_vec(), &options);
        Ok(Some(batch.map_err(|error| unreadable(error.to_string()))?))
    }
}

/// Runs `read`, and returns an error if Arrow's library panics on a malformed stream. After such an error the
/// values that `read` used must not be used again.
pub fn refusing_panics<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_panic(read).unwrap_or_else(|| Err(unreadable("its parts contradict each other")))
}

fn read_schema(schema: &FFI_ArrowSchema) -> Result<Schema> {
    let mut left = vec![(schema, 0)];
    while let Some((part, depth)) = left.pop() {
        if depth > DEEPEST {
            return Err(unreadable(format!("its types are nested deeper than {DEEPEST}")));
        }
        left.extend(part.children().chain(part.dictionary()).map(|child| (child, depth + 1)));
    }
    Schema::try_from(schema).map_err(|error| unreadable(error.to_string()))
}

/// The stream's message about its last error.
fn last_error(stream: &mut FFI_ArrowArrayStream) -> String {
    let Some(get) = stream.get_last_error() else { return String::new() };
    // SAFETY: the function is the stream's own.
    let text = unsafe { get(&raw mut *stream) };
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the text ends with a zero byte, and is valid until the next call on the stream.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

fn unreadable(why: impl ToString) -> Raised {
    let got = format!("a stream that cannot be read ({})", why.to_string());
    InvalidParameter::new("events", got, "as Arrow's C stream interface says").into()
}

/// The error of a stream that broke off. Ctrl-C may have interrupted the producer, for example a Python
/// generator, whose exception arrives only as text.
fn broke_off(why: String) -> Raised {
    if let Err(error) = Python::attach(|py| py.check_signals()) {
        return error.into();
    }
    if why.contains("KeyboardInterrupt") {
        return PyKeyboardInterrupt::new_err(why).into();
    }
    InvalidParameter::new(
        "events",
        format!("a stream that broke off ({why})"),
        "one that can be read to its end",
    )
    .into()
}
