//! Conversion of single Python objects: periods, times, names and numbers.

use antinoise_input::InvalidParameter;
use antinoise_release::Period;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyString};

use crate::errors::{Raised, Result};

/// A period: text, a whole number or a date. No other object is converted to text, since the first period of
/// a release fixes the form of all later ones.
pub fn period(given: &Bound<'_, PyAny>) -> Result<Period> {
    if let Ok(text) = given.cast::<PyString>() {
        return Ok(text.to_cow()?.parse()?);
    }
    let py = given.py();
    let datetime = py.import("datetime")?;
    if given.is_instance(&datetime.getattr("date")?)? && !given.is_instance(&datetime.getattr("datetime")?)? {
        return Ok(given.call_method0("isoformat")?.extract::<String>()?.parse()?);
    }
    if is_named(given, "datetime64") {
        let unit = given.getattr("dtype")?.str()?;
        // The text of a year would be read as a whole number, and that of a week as its first day.
        if (unit == "datetime64[D]" || unit == "datetime64[M]") && given.eq(given)? {
            return Ok(given.str()?.to_cow()?.parse()?);
        }
    } else if !is_truth_or_span(given)
        && let Ok(number) = py.import("operator")?.call_method1("index", (given,))
    {
        return Ok(number.str()?.to_cow()?.parse()?);
    }
    let must_be =
        "text, a whole number, a date, or NumPy's day or month: of a datetime, give day.date() or text";
    Err(InvalidParameter::new("period", kind(given), must_be).into())
}

/// A cell as text. Accepted are text, a whole number, true or false; for a time: text, a number, a date or a
/// datetime, also those of NumPy and pandas.
pub fn text(what: &str, row: usize, cell: &Bound<'_, PyAny>) -> Result<String> {
    if let Ok(text) = cell.cast::<PyString>() {
        return Ok(text.to_cow()?.into_owned());
    }
    present(what, row, cell)?;
    if what == "time" {
        return time(cell)?
            .ok_or_else(|| refused(what, row, kind(cell), "text, a number, a date or a datetime"));
    }
    if let Ok(is_true) = cell.extract::<bool>() {
        return Ok(is_true.to_string());
    }
    if what == "user" {
        return user(row, cell);
    }
    match cell.extract::<i64>() {
        Ok(number) if !is_truth_or_span(cell) => Ok(number.to_string()),
        _ => Err(refused(what, row, kind(cell), "text, a whole number, or true or false")),
    }
}

/// A user given as a number, as text for `antinoise_input::tables::user_name`; refused if the number may have
/// been rounded.
fn user(row: usize, cell: &Bound<'_, PyAny>) -> Result<String> {
    let must_be = "text, a whole number, or true or false";
    if is_truth_or_span(cell) || is_named(cell, "datetime64") {
        return Err(refused("user", row, kind(cell), must_be));
    }
    if let Ok(number) = cell.py().import("operator")?.call_method1("index", (cell,)) {
        return Ok(number.str()?.to_cow()?.into_owned());
    }
    let is_real = cell.is_instance_of::<PyFloat>()
        || ["float64", "float32", "float16"].iter().any(|name| is_named(cell, name));
    let number: f64 =
        cell.extract().ok().filter(|_| is_real).ok_or_else(|| refused("user", row, kind(cell), must_be))?;
    let exact = if is_named(cell, "float16") {
        11
    } else if is_named(cell, "float32") {
        24
    } else {
        53
    };
    if number.abs() >= f64::from(exact).exp2() {
        let must_be =
            format!("below 2^{exact}: larger numbers may have been rounded, so that several users share one");
        return Err(InvalidParameter::new(format!("user of an event (row {row})"), number, must_be).into());
    }
    Ok(format!("{number:?}"))
}

/// A time that is not text; `None` if the object is no time.
fn time(cell: &Bound<'_, PyAny>) -> Result<Option<String>> {
    // `extract` would give the count of nanoseconds since 1970, or of the object's other unit.
    if is_named(cell, "datetime64") {
        return Ok(Some(cell.str()?.to_cow()?.into_owned()));
    }
    if is_truth_or_span(cell) {
        return Ok(None);
    }
    if let Ok(number) = cell.extract::<i64>() {
        return Ok(Some(number.to_string()));
    }
    if let Ok(number) = cell.extract::<f64>() {
        return Ok(Some(number.to_string()));
    }
    match cell.call_method0("isoformat") {
        Ok(time) => Ok(Some(time.extract()?)),
        Err(_) => Ok(None),
    }
}

/// A cell as a number.
pub fn real(what: &str, row: usize, cell: &Bound<'_, PyAny>) -> Result<f64> {
    present(what, row, cell)?;
    let refused = || refused(what, row, kind(cell), "a number");
    if is_named(cell, "datetime64") || is_truth_or_span(cell) {
        return Err(refused());
    }
    cell.extract::<f64>().map_err(|_| refused())
}

/// The type of an object, in words.
pub fn kind(of: &Bound<'_, PyAny>) -> String {
    of.get_type().name().map_or("something else".into(), |name| format!("of type {name}"))
}

/// Whether the object's type has this name, as NumPy's types do.
fn is_named(of: &Bound<'_, PyAny>, name: &str) -> bool {
    of.get_type().name().is_ok_and(|found| found == name)
}

/// Whether the object is a truth value or NumPy's time span, of Python or NumPy: both would be read as
/// numbers.
fn is_truth_or_span(of: &Bound<'_, PyAny>) -> bool {
    of.extract::<bool>().is_ok() || is_named(of, "timedelta64")
}

/// The error for a cell.
fn refused(what: &str, row: usize, got: String, must_be: &str) -> Raised {
    InvalidParameter::new(format!("{what} of an event (row {row})"), got, must_be).into()
}

/// Refuses None, NaN and NaT, which are missing values.
fn present(what: &str, row: usize, cell: &Bound<'_, PyAny>) -> Result<()> {
    if cell.is_none() || cell.ne(cell).unwrap_or(true) {
        return Err(refused(what, row, "null".into(), "given"));
    }
    Ok(())
}
