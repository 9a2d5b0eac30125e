//! Events in Parquet files.

use std::sync::Arc;

use antinoise_input::BadInput;
use antinoise_input::tables::ColumnFormat;
use antinoise_release::Late;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::events::{columns, with_release};
use crate::files::file;

/// The first byte says how the file, which the others are, is read: every row has one fate, or the file is
/// refused.
pub fn run(data: &[u8]) -> bool {
    let Some((&kind, bytes)) = data.split_first() else { return false };
    if kind & 3 == 3 {
        return false;
    }
    let path = file("events.parquet", bytes);
    with_release(kind, |release, period, handling| {
        let columns = columns(release);
        let mut rows = 0;
        let mut freezing = release.freeze(period).expect("a period");
        let format = ColumnFormat::Parquet;
        let found = freezing.read_columns(&path, format, &columns, handling, || rows += 1);
        match found {
            Ok(found) => {
                let elsewhere = found.later + if handling.late == Late::Leave { found.late } else { 0 };
                assert_eq!(found.tally.rows + elsewhere, rows, "{found:?}");
            }
            Err(error) => assert!(error.is_bad_input(), "{error:?}"),
        }
    });
    true
}

pub fn seeds() -> Vec<Vec<u8>> {
    let words = |words: [&str; 3]| Arc::new(StringArray::from(words.to_vec())) as ArrayRef;
    let numbers = |numbers: [f64; 3]| Arc::new(Float64Array::from(numbers.to_vec())) as ArrayRef;
    let columns = [
        ("day", words(["2026-03-01", "2026-03-01", "2026-03-02"])),
        ("id", words(["ada", "grace", "ada"])),
        ("shop", words(["north", "7", "7"])),
        ("spent", numbers([0.5, 1.0, -2.0])),
        ("x", numbers([0.5, 0.0, 1.0])),
        ("y", numbers([0.5, 0.0, 1.0])),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    let written = |compression: Compression| {
        let mut bytes = Vec::new();
        let properties = WriterProperties::builder().set_compression(compression).build();
        let mut writer =
            ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).expect("a writer");
        writer.write(&batch).and_then(|()| writer.close().map(drop)).expect("a file");
        bytes
    };
    let files = [Compression::UNCOMPRESSED, Compression::SNAPPY].map(written);
    files.iter().flat_map(|file| [8u8, 9, 10].map(|kind| [&[kind], &file[..]].concat())).collect()
}
