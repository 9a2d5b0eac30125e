//! Events in Arrow's tables, of every type of column.

use std::sync::Arc;

use antinoise_input::BadInput;
use antinoise_release::{EventTable, Late};
use arrow_array::types::{ArrowDictionaryKeyType, Int8Type, Int32Type};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Date64Array, Decimal128Array, DictionaryArray, Float32Array,
    Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, LargeStringArray, NullArray, RecordBatch,
    StringArray, StringViewArray, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray, TimestampSecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};

use crate::events::{columns, with_release};

const ZONES: [Option<&str>; 6] =
    [None, Some("UTC"), Some("+02:00"), Some("-23:59"), Some("Europe/Berlin"), Some("")];

/// Bytes that are used up.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn word(&mut self) -> i64 {
        i64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// A text of 31 bytes at most.
    fn text(&mut self) -> String {
        let length = usize::from(self.byte() & 31).min(self.0.len());
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        String::from_utf8_lossy(text).into_owned()
    }

    fn cells<T>(&mut self, rows: usize, mut cell: impl FnMut(&mut Self) -> T) -> Vec<Option<T>> {
        let nulls = self.byte();
        (0..rows).map(|row| (nulls >> row & 1 == 0).then(|| cell(self))).collect()
    }

    fn column(&mut self, rows: usize) -> ArrayRef {
        macro_rules! whole {
            ($array:ty, $type:ty) => {
                Arc::new(<$array>::from(self.cells(rows, |bytes| bytes.word() as $type)))
            };
        }
        macro_rules! instant {
            ($array:ty) => {{
                let zone = ZONES[self.byte() as usize % ZONES.len()];
                let cells = self.cells(rows, Self::word);
                Arc::new(<$array>::from(cells).with_timezone_opt(zone))
            }};
        }
        match self.byte() % 24 {
            0 => Arc::new(LargeStringArray::from(self.cells(rows, Self::text))),
            1 => Arc::new(StringViewArray::from_iter(self.cells(rows, Self::text))),
            2 => Arc::new(BooleanArray::from(self.cells(rows, |bytes| bytes.byte() & 1 == 1))),
            3 => whole!(Int8Array, i8),
            4 => whole!(Int16Array, i16),
            5 => whole!(Int32Array, i32),
            6 => whole!(Int64Array, i64),
            7 => whole!(UInt8Array, u8),
            8 => whole!(UInt16Array, u16),
            9 => whole!(UInt32Array, u32),
            10 => whole!(UInt64Array, u64),
            11 => Arc::new(Float32Array::from(self.cells(rows, |bytes| f32::from_bits(bytes.word() as u32)))),
            12 => Arc::new(Float64Array::from(self.cells(rows, |bytes| f64::from_bits(bytes.word() as u64)))),
            13 => whole!(Date32Array, i32),
            14 => whole!(Date64Array, i64),
            15 => instant!(TimestampSecondArray),
            16 => instant!(TimestampMillisecondArray),
            17 => instant!(TimestampMicrosecondArray),
            18 => instant!(TimestampNanosecondArray),
            19 => {
                let scale = (self.byte() as i8).clamp(-38, 38);
                let cells = Decimal128Array::from(self.cells(rows, |bytes| i128::from(bytes.word())));
                Arc::new(cells.clone().with_precision_and_scale(38, scale).unwrap_or(cells))
            }
            20 => self.dictionary::<Int8Type>(rows),
            21 => self.dictionary::<Int32Type>(rows),
            22 => Arc::new(NullArray::new(rows)),
            _ => Arc::new(StringArray::from(self.cells(rows, Self::text))),
        }
    }

    fn dictionary<K: ArrowDictionaryKeyType>(&mut self, rows: usize) -> ArrayRef {
        let cells = self.cells(rows, Self::text);
        Arc::new(cells.iter().map(Option::as_deref).collect::<DictionaryArray<K>>())
    }
}

/// Two bytes say how the table, whose columns the others make, is read: in one piece or in two, it has the
/// same rows.
pub fn run(data: &[u8]) -> bool {
    let mut bytes = Bytes(data);
    let (kind, rows) = (bytes.byte(), 1 + (bytes.byte() & 7) as usize);
    if kind & 3 == 3 {
        return false;
    }
    let columns_of_table =
        ["day", "id", "shop", "spent", "x", "y"].map(|name| (name, bytes.column(rows), true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns_of_table).expect("as many rows");
    with_release(kind, |release, period, handling| {
        let columns = columns(release);
        let mut read = |ends: &[usize]| {
            let mut day = release.freeze(period).expect("a period");
            let mut table = EventTable::new(batch.schema_ref(), &columns)?;
            let mut rows = day.rows(handling);
            let mut cells = table.batch(&batch)?;
            ends.windows(2).try_for_each(|ends| cells.read(ends[0]..ends[1], &mut rows))?;
            rows.end()
        };
        let (whole, halves) = (read(&[0, rows]), read(&[0, rows / 2, rows]));
        match (whole, halves) {
            (Ok(found), Ok(same)) => {
                assert_eq!(found, same);
                let elsewhere = found.later + if handling.late == Late::Leave { found.late } else { 0 };
                assert_eq!(found.tally.rows + elsewhere, rows as u64);
            }
            (Err(error), Err(same)) => {
                assert!(error.is_bad_input(), "{error:?}");
                assert_eq!(error.to_string(), same.to_string());
            }
            (found, other) => panic!("{found:?} and {other:?}"),
        }
    });
    true
}

pub fn seeds() -> Vec<Vec<u8>> {
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    let column = |kind: u8, cells: [Vec<u8>; 2]| [&[kind, 0], &cells.concat()[..]].concat();
    let real = |x: f64| x.to_bits().to_le_bytes().to_vec();
    let words = |kind, first, second| column(kind, [text(first), text(second)]);
    let numbers = |first, second| column(12, [real(first), real(second)]);
    let whole = |kind, first: i64, second: i64| {
        column(kind, [first.to_le_bytes().into(), second.to_le_bytes().into()])
    };
    let points = [numbers(0.5, 1.0), numbers(0.25, -1.0)].concat();
    let tables = [
        [
            words(23, "2026-03-01", "2026-03-01T1"),
            words(1, "ada", "bob"),
            words(20, "north", "7"),
            numbers(1.0, 2.0),
        ],
        [whole(13, 20_513, 20_513), whole(6, 17, 18), words(0, "north", "7"), whole(3, 1, 2)],
    ];
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    for table in tables {
        for kind in [0u8, 1, 2, 9] {
            seeds.push([&[kind, 1], &table.concat()[..], &points].concat());
        }
    }
    seeds
}
