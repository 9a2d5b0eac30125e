//! What is read from Parquet and Arrow files against what was written, and files that are damaged.
#![cfg(feature = "parquet")]

use std::path::Path;
use std::sync::Arc;

use antinoise_input::InvalidParameter;
use antinoise_input::tables::{Batches, Cells, ColumnFormat, Number, Role};
use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;

/// A row: day of March 2026 from 0, microseconds of the day, user, place of the shop, value.
type Row = (i32, i64, Option<i64>, usize, f64);

/// 2026-03-01 in days since 1970.
const FIRST: i32 = 20_513;
const SHOPS: [&str; 4] = ["a", "bb", "ü", ""];
const COLUMNS: [(&str, Role); 6] = [
    ("day", Role::Time),
    ("time", Role::Time),
    ("user", Role::Name),
    ("shop", Role::Name),
    ("is_new", Role::Name),
    ("value", Role::Value),
];

/// The columns, in another order, and one that is not read.
fn batch(rows: &[Row]) -> RecordBatch {
    let days = || rows.iter().map(|row| FIRST + row.0);
    let micros = days().zip(rows).map(|(day, row)| i64::from(day) * 86_400_000_000 + row.1);
    let shop: DictionaryArray<Int8Type> = rows.iter().map(|row| SHOPS[row.3]).collect();
    let new: BooleanArray = rows.iter().map(|row| Some(row.0 == 0)).collect();
    let columns: [(&str, ArrayRef, bool); 7] = [
        ("value", Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.4))), false),
        ("notes", Arc::new(StringArray::from(vec![None::<&str>; rows.len()])), true),
        ("user", Arc::new(rows.iter().map(|row| row.2).collect::<Int64Array>()), true),
        ("shop", Arc::new(shop), false),
        ("is_new", Arc::new(new), false),
        ("time", Arc::new(TimestampMicrosecondArray::from_iter_values(micros).with_timezone("UTC")), false),
        ("day", Arc::new(Date32Array::from_iter_values(days())), false),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// What the cells of a row must be.
fn texts(&(day, micros, user, shop, value): &Row) -> Vec<String> {
    let (day_text, seconds) = (format!("2026-03-{:02}", day + 1), micros / 1_000_000);
    let clock = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let rest = match micros % 1_000_000 {
        0 => String::new(),
        rest if rest % 1000 == 0 => format!(".{:03}", rest / 1000),
        rest => format!(".{rest:06}"),
    };
    let user = user.map_or_else(String::new, |user| user.to_string());
    let (time, new) = (format!("{day_text}T{clock}{rest}"), (day == 0).to_string());
    vec![day_text, time, user, SHOPS[shop].into(), new, value.to_string()]
}

fn write(path: &Path, batch: &RecordBatch, compression: Compression, group: usize) {
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_max_row_group_row_count(Some(group))
        .set_data_page_row_count_limit(group.div_ceil(2))
        .build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

/// Writes an Arrow file or stream in batches of `group` rows.
fn write_arrow(path: &Path, batch: &RecordBatch, is_stream: bool, group: usize) {
    let file = std::fs::File::create(path).unwrap();
    let parts = (0..batch.num_rows())
        .step_by(group)
        .map(|from| batch.slice(from, group.min(batch.num_rows() - from)));
    if is_stream {
        let mut writer = StreamWriter::try_new(file, &batch.schema()).unwrap();
        parts.for_each(|part| writer.write(&part).unwrap());
        writer.finish().unwrap();
    } else {
        let mut writer = FileWriter::try_new(file, &batch.schema()).unwrap();
        parts.for_each(|part| writer.write(&part).unwrap());
        writer.finish().unwrap();
    }
}

fn read(path: &Path) -> Result<Vec<Vec<String>>, InvalidParameter> {
    read_as(ColumnFormat::Parquet, path)
}

fn read_as(format: ColumnFormat, path: &Path) -> Result<Vec<Vec<String>>, InvalidParameter> {
    let mut rows = Vec::new();
    for batch in Batches::open("events", path, format, &COLUMNS)? {
        let batch = batch?;
        let cells = COLUMNS
            .iter()
            .map(|(name, role)| Ok((Cells::new(name, batch.column_by_name(name).unwrap())?, *role)))
            .collect::<Result<Vec<_>, InvalidParameter>>()?;
        for i in 0..batch.num_rows() {
            rows.push(cells.iter().map(|(cells, role)| text(cells, *role, i)).collect::<Result<_, _>>()?);
        }
    }
    Ok(rows)
}

fn text(cells: &Cells<'_>, role: Role, row: usize) -> Result<String, InvalidParameter> {
    let mut room = String::new();
    match (cells.is_null(row), role) {
        (true, _) => Ok(String::new()),
        (false, Role::Value) => match cells.number("value", row, &mut room)? {
            Number::Real(number) => Ok(number.to_string()),
            Number::Text(text) => Ok(text.to_owned()),
        },
        (false, _) => Ok(cells.text("cell", row, &mut room)?.to_owned()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn what_was_written_is_read(
        rows in prop::collection::vec(
            (0..31, prop_oneof![0..86_400_000_000i64, (0..86_400i64).prop_map(|s| s * 1_000_000)], any::<Option<i64>>(), 0..4usize, any::<f64>()),
            0..60,
        ),
        codec in 0..5usize,
        group in 1..40usize,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.parquet");
        let compression = [
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::ZSTD(ZstdLevel::default()),
            Compression::GZIP(GzipLevel::default()),
            Compression::LZ4_RAW,
        ][codec];
        write(&path, &batch(&rows), compression, group);
        let wanted = rows.iter().map(texts).collect::<Vec<_>>();
        prop_assert_eq!(read(&path).unwrap(), wanted.clone());
        for is_stream in [false, true] {
            write_arrow(&path, &batch(&rows), is_stream, group);
            prop_assert_eq!(&read_as(ColumnFormat::Arrow, &path).unwrap(), &wanted);
        }
    }
}

#[test]
fn what_is_wrong_with_a_file_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.parquet");
    let refused_as = |format: ColumnFormat, columns: &[(&str, Role)]| {
        Batches::open("events", &path, format, columns).err().unwrap().to_string()
    };
    let refused = |columns: &[(&str, Role)]| refused_as(ColumnFormat::Parquet, columns);
    let no_arrow =
        || assert!(refused_as(ColumnFormat::Arrow, &COLUMNS).contains("must be an Arrow IPC file"));
    no_arrow();
    assert!(refused(&COLUMNS).contains("must be a Parquet file that can be read"));
    std::fs::write(&path, "day,user,shop,value\n").unwrap();
    assert!(refused(&COLUMNS).contains("must be a Parquet file that can be read"));
    no_arrow();
    std::fs::write(&path, "").unwrap();
    no_arrow();
    write(&path, &batch(&[]), Compression::SNAPPY, 8);
    no_arrow();
    let columns_are_named = |format| {
        let refused = |columns: &[(&str, Role)]| refused_as(format, columns);
        assert_eq!(
            refused(&[("date", Role::Time)]),
            format!(
                "column \"date\" of {} is absent but must be one of the columns value, notes, user, shop, is_new, \
                 time, day",
                path.display()
            )
        );
        assert!(refused(&[("shop", Role::Value)]).ends_with("but must be numbers"));
        assert!(
            refused(&[("value", Role::Name)]).ends_with("but must be text, whole numbers or true and false")
        );
    };
    columns_are_named(ColumnFormat::Parquet);
    for is_stream in [false, true] {
        write_arrow(&path, &batch(&[]), is_stream, 8);
        columns_are_named(ColumnFormat::Arrow);
    }
}

#[test]
fn damaged_files_are_refused_or_read_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.parquet");
    let rows: Vec<Row> =
        (0..40).map(|i| (i % 31, i64::from(i) << 30, Some(i.into()), i as usize % 4, f64::from(i))).collect();
    let (mut refused, mut state) = (0, 1u64);
    for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::LZ4_RAW] {
        write(&path, &batch(&rows), compression, 16);
        let whole = std::fs::read(&path).unwrap();
        for _ in 0..2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (at, mask) = ((state >> 20) as usize % whole.len(), ((state >> 56) as u8).max(1));
            let mut damaged = whole.clone();
            match mask.is_multiple_of(8) {
                true => damaged.truncate(at),
                false => damaged[at] ^= mask,
            }
            std::fs::write(&path, damaged).unwrap();
            refused += usize::from(read(&path).is_err());
        }
    }
    assert!(refused > 1000, "{refused}");
}

/// Every truncation and every byte of a small Arrow file and stream.
#[test]
fn damaged_arrow_files_are_refused_or_read_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.arrow");
    let rows: Vec<Row> =
        (0..9).map(|i| (i % 31, i64::from(i) << 30, Some(i.into()), i as usize % 4, f64::from(i))).collect();
    for is_stream in [false, true] {
        write_arrow(&path, &batch(&rows), is_stream, 4);
        let whole = std::fs::read(&path).unwrap();
        let mut refused = 0;
        for at in 0..whole.len() {
            let mask = if at % 2 == 0 { 0xff } else { 1 << (at / 2 % 8) };
            for (mut bytes, mask) in [(whole[..at].to_vec(), 0), (whole.clone(), mask)] {
                bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= mask);
                std::fs::write(&path, bytes).unwrap();
                if let Err(error) = read_as(ColumnFormat::Arrow, &path) {
                    refused += 1;
                    let said = error.to_string();
                    let is_of_a_cell = said.starts_with("cell is ") || said.contains("column");
                    assert!(said.contains("events.arrow") || is_of_a_cell, "{said}");
                }
            }
        }
        assert!(refused > whole.len(), "{refused} of {}", 2 * whole.len());
    }
}
