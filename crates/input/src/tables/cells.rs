//! Arrow columns, read cell by cell as the text or the number that a CSV file would hold.

use std::fmt::{self, Write};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowTemporalType, Date32Type, Date64Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrowPrimitiveType, Decimal128Array, LargeStringArray, PrimitiveArray, StringArray,
    StringViewArray,
};
use arrow_schema::{DataType, Schema, TimeUnit};
use chrono::{Datelike, FixedOffset, NaiveDateTime, TimeDelta};

use super::names::column_index;
use super::number::Number;
use super::role::Role;
use super::user::write_real_user;
use crate::InvalidParameter;

impl Role {
    /// Whether columns of this type can have this role.
    fn reads(self, found: &DataType) -> bool {
        use DataType::{
            Boolean, Date32, Date64, Decimal128, Dictionary, Float32, Float64, LargeUtf8, Null, Timestamp,
            Utf8, Utf8View,
        };
        match found {
            // A column of a table without rows may have no type.
            Null => true,
            Boolean => matches!(self, Self::Name | Self::User),
            Dictionary(_, values) => self.reads(values),
            Utf8 | LargeUtf8 | Utf8View => self != Self::Value,
            Float32 | Float64 => self != Self::Name,
            Date32 | Date64 => self == Self::Time,
            Timestamp(_, zone) => self == Self::Time && offset(zone.as_deref()).is_some(),
            Decimal128(..) => self == Self::Value,
            other => other.is_integer(),
        }
    }
}

/// The offset of a time zone in seconds east of UTC; `None` for zones whose offset changes. A time without a
/// zone has offset 0.
fn offset(zone: Option<&str>) -> Option<FixedOffset> {
    match zone {
        None | Some("UTC" | "Etc/UTC" | "GMT" | "Etc/GMT" | "Z" | "Zulu") => FixedOffset::east_opt(0),
        Some(zone) => zone.parse().ok(),
    }
}

/// The index of the column `name`, which must occur once and be readable in `role`.
///
/// # Errors
/// When it is absent, occurs twice, or has a type that `role` does not accept.
pub fn column(schema: &Schema, name: &str, role: Role) -> Result<usize, InvalidParameter> {
    let place = column_index(schema.fields().iter().map(|field| field.name().as_str()), name)?;
    readable(schema, place, role)
}

/// The index `place`, if its column is readable in `role`.
pub(super) fn readable(schema: &Schema, place: usize, role: Role) -> Result<usize, InvalidParameter> {
    let field = schema.field(place);
    match role.reads(field.data_type()) {
        true => Ok(place),
        false => Err(InvalidParameter::new(
            format!("column {:?}", field.name()),
            format!("of type {}", field.data_type()),
            role.must_be(),
        )),
    }
}

/// The cells of a column.
///
/// ```
/// use antinoise_input::tables::Cells;
/// use arrow_array::Date32Array;
/// let days = Date32Array::from(vec![Some(20_513), None]);
/// let (cells, mut room) = (Cells::new("day", &days)?, String::new());
/// assert_eq!(cells.text("day", 0, &mut room)?, "2026-03-01");
/// assert!(cells.is_null(1));
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
pub struct Cells<'a> {
    is_null: Of<'a, bool>,
    kind: Kind<'a>,
}

/// Function from a row's index to its value.
type Of<'a, T> = Box<dyn Fn(usize) -> T + 'a>;

/// The type of the cells.
enum Kind<'a> {
    Text(&'a StringArray),
    LargeText(&'a LargeStringArray),
    TextView(&'a StringViewArray),
    Truth(Of<'a, bool>),
    Whole(Of<'a, i128>),
    Single(Of<'a, f64>),
    Real(Of<'a, f64>),
    Decimal(&'a Decimal128Array),
    Day(Of<'a, Option<NaiveDateTime>>),
    Instant(Of<'a, Option<NaiveDateTime>>),
    /// Dictionary indices, and the dictionary.
    Dictionary(Vec<usize>, Box<Self>),
    /// All cells are null.
    Nothing,
}

impl<'a> Cells<'a> {
    /// The cells of `array`, whose type must be accepted by some role.
    ///
    /// # Errors
    /// When the array does not match its type, for example names with invalid UTF-8.
    pub fn new(name: &str, array: &'a dyn Array) -> Result<Self, InvalidParameter> {
        array.to_data().validate_full().map_err(|error| {
            InvalidParameter::new(
                format!("column {name:?}"),
                "not as its type says",
                format!("valid: {error}"),
            )
        })?;
        let nulls = array.logical_nulls();
        let is_null = Box::new(move |row| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)));
        Ok(Self { is_null, kind: Kind::new(array) })
    }

    /// Whether the cell of this row is null.
    pub fn is_null(&self, row: usize) -> bool {
        (self.is_null)(row)
    }

    fn given(&self, what: &str, row: usize) -> Result<(), InvalidParameter> {
        match self.is_null(row) {
            true => Err(InvalidParameter::new(what, "null", "given")),
            false => Ok(()),
        }
    }

    /// The cell as text, written to `room` if necessary; `what` names the cell in an error.
    ///
    /// # Errors
    /// When the cell is null, or a time outside of the years 0 to 9999.
    pub fn text<'t>(
        &'t self,
        what: &str,
        row: usize,
        room: &'t mut String,
    ) -> Result<&'t str, InvalidParameter> {
        self.given(what, row)?;
        room.clear();
        self.kind.text(row, room).map_err(|_| {
            InvalidParameter::new(what, "a time that cannot be written", "of the years 0 to 9999")
        })
    }

    /// The cell as the text of a user, which [`user_name`](super::user_name) reads: a number that may have
    /// been rounded is refused. `what` names the cell in an error.
    ///
    /// # Errors
    /// When the cell is null, or a single-precision number of at least 2^24.
    pub fn user<'t>(
        &'t self,
        what: &str,
        row: usize,
        room: &'t mut String,
    ) -> Result<&'t str, InvalidParameter> {
        self.given(what, row)?;
        let Some((number, is_single)) = self.kind.real_at(row) else { return self.text(what, row, room) };
        let exact_below = if is_single { f64::from(1 << 24) } else { f64::INFINITY };
        write_real_user(what, number, exact_below, room)
    }

    /// The cell as a number, or as its text, written to `room` if necessary; `what` names the cell in an
    /// error.
    ///
    /// # Errors
    /// When the cell is null.
    pub fn number<'t>(
        &'t self,
        what: &str,
        row: usize,
        room: &'t mut String,
    ) -> Result<Number<'t>, InvalidParameter> {
        self.given(what, row)?;
        Ok(self.kind.number(row, room))
    }
}

impl<'a> Kind<'a> {
    fn new(array: &'a dyn Array) -> Self {
        use DataType::{
            Boolean, Date32, Date64, Decimal128, Dictionary, Float32, Float64, LargeUtf8, Timestamp, Utf8,
            Utf8View,
        };
        match array.data_type() {
            Boolean => {
                let array = array.as_boolean();
                Self::Truth(Box::new(|row| array.value(row)))
            }
            Utf8 => Self::Text(array.as_string()),
            LargeUtf8 => Self::LargeText(array.as_string()),
            Utf8View => Self::TextView(array.as_string_view()),
            Float32 => Self::Single(real(array.as_primitive::<Float32Type>())),
            Float64 => Self::Real(real(array.as_primitive::<Float64Type>())),
            Decimal128(..) => Self::Decimal(array.as_primitive()),
            Date32 => Self::Day(clock(array.as_primitive::<Date32Type>(), None)),
            Date64 => Self::Day(clock(array.as_primitive::<Date64Type>(), None)),
            Timestamp(unit, zone) => Self::Instant(instants(array, *unit, zone.as_deref())),
            Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                if dictionary.values().is_empty() {
                    return Self::Nothing;
                }
                let values = Box::new(Self::new(dictionary.values()));
                Self::Dictionary(dictionary.normalized_keys(), values)
            }
            _ => whole(array),
        }
    }

    /// The value of a float and whether it is single precision; `None` for other types.
    fn real_at(&self, row: usize) -> Option<(f64, bool)> {
        match self {
            Self::Single(number) => Some((number(row), true)),
            Self::Real(number) => Some((number(row), false)),
            Self::Dictionary(rows, values) => values.real_at(rows[row]),
            _ => None,
        }
    }

    fn text<'t>(&'t self, row: usize, room: &'t mut String) -> std::result::Result<&'t str, fmt::Error> {
        match self {
            Self::Text(array) => return Ok(array.value(row)),
            Self::LargeText(array) => return Ok(array.value(row)),
            Self::TextView(array) => return Ok(array.value(row)),
            Self::Dictionary(rows, values) => return values.text(rows[row], room),
            Self::Truth(is_true) => write!(room, "{}", is_true(row))?,
            Self::Whole(number) => write!(room, "{}", number(row))?,
            Self::Single(number) | Self::Real(number) => write!(room, "{}", number(row))?,
            Self::Decimal(array) => write!(room, "{}", array.value_as_string(row))?,
            Self::Day(time) => write!(room, "{:?}", four_digits(time(row))?.date())?,
            Self::Instant(time) => write!(room, "{:?}", four_digits(time(row))?)?,
            Self::Nothing => {}
        }
        Ok(room)
    }

    fn number<'t>(&'t self, row: usize, room: &'t mut String) -> Number<'t> {
        match self {
            Self::Whole(number) => Number::Real(number(row) as f64),
            Self::Single(number) | Self::Real(number) => Number::Real(number(row)),
            Self::Dictionary(rows, values) => values.number(rows[row], room),
            other => {
                room.clear();
                Number::Text(other.text(row, room).unwrap_or_default())
            }
        }
    }
}

fn real<'a, T: ArrowPrimitiveType<Native: Into<f64>>>(array: &'a PrimitiveArray<T>) -> Of<'a, f64> {
    Box::new(|row| array.value(row).into())
}

/// The cells of an array of whole numbers.
fn whole(array: &dyn Array) -> Kind<'_> {
    macro_rules! numbers {
        ($($type:ty),*) => {
            $(if let Some(array) = array.as_primitive_opt::<$type>() {
                return Kind::Whole(Box::new(|row| array.value(row).into()));
            })*
        };
    }
    numbers!(Int64Type, Int32Type, Int16Type, Int8Type, UInt64Type, UInt32Type, UInt16Type, UInt8Type);
    Kind::Nothing
}

fn instants<'a>(array: &'a dyn Array, unit: TimeUnit, zone: Option<&str>) -> Of<'a, Option<NaiveDateTime>> {
    match unit {
        TimeUnit::Second => clock(array.as_primitive::<TimestampSecondType>(), zone),
        TimeUnit::Millisecond => clock(array.as_primitive::<TimestampMillisecondType>(), zone),
        TimeUnit::Microsecond => clock(array.as_primitive::<TimestampMicrosecondType>(), zone),
        TimeUnit::Nanosecond => clock(array.as_primitive::<TimestampNanosecondType>(), zone),
    }
}

/// The cells of an array of times, as local times in `zone`.
fn clock<'a, T>(array: &'a PrimitiveArray<T>, zone: Option<&str>) -> Of<'a, Option<NaiveDateTime>>
where
    T: ArrowTemporalType,
    i64: From<T::Native>,
{
    let ahead = TimeDelta::seconds(offset(zone).map_or(0, |offset| offset.local_minus_utc().into()));
    Box::new(move |row| array.value_as_datetime(row)?.checked_add_signed(ahead))
}

/// Texts have the order of times if all years have four digits.
fn four_digits(time: Option<NaiveDateTime>) -> std::result::Result<NaiveDateTime, fmt::Error> {
    time.filter(|time| (0..=9999).contains(&time.year())).ok_or(fmt::Error)
}
