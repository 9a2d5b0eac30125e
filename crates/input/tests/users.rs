//! A whole number is one user, whichever type of column or file holds it.
#![cfg(feature = "parquet")]

use std::sync::Arc;

use antinoise_input::tables::{Batches, Cells, ColumnFormat, Role, user_name};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array,
};

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 20 << 20 | *state >> 44
}

/// Of all sizes, negative too.
fn numbers() -> Vec<i128> {
    let mut state = 3;
    let edges = [
        0,
        7,
        -7,
        (1 << 24) - 1,
        (1 << 53) - 1,
        (1 << 53) + 1,
        i64::MAX as i128,
        i64::MIN as i128,
        u64::MAX as i128,
    ];
    let drawn = (0..3000).map(|_| {
        let (number, bits) = (random(&mut state), random(&mut state) % 64);
        i128::from(number >> bits) * if number % 3 == 0 { -1 } else { 1 }
    });
    edges.into_iter().chain(drawn).collect()
}

/// Every text that is this number.
fn spellings(number: i128) -> Vec<String> {
    let (sign, digits) = (if number < 0 { "-" } else { "" }, number.unsigned_abs().to_string());
    let mut all = vec![format!("{sign}{digits}"), format!(" {sign}00{digits}\t")];
    if number >= 0 {
        all.push(format!("+{digits}"));
    }
    if number.unsigned_abs() < 1 << 53 {
        let (first, rest) = digits.split_at(1);
        all.extend(["", ".", ".0", ".000"].map(|end| format!("{sign}{digits}{end}")));
        all.push(format!("{sign}{first}.{rest}e{}", rest.len()));
        all.push(format!("{sign}{first}.{rest}00E+{:05}", rest.len()));
        all.push(format!("{:?}", number as f64));
        all.push(format!("{:e}", number as f64));
    }
    all
}

fn names(array: &ArrayRef) -> Vec<String> {
    let cells = Cells::new("user", array).unwrap();
    let name =
        |row| user_name("user", cells.user("user", row, &mut String::new()).unwrap()).unwrap().into_owned();
    (0..array.len()).map(name).collect()
}

/// Arrays of all types that hold such a number exactly.
fn arrays(number: i128) -> Vec<ArrayRef> {
    let texts = spellings(number);
    let dictionary: DictionaryArray<Int32Type> = texts.iter().map(String::as_str).collect();
    let mut all: Vec<ArrayRef> = vec![Arc::new(StringArray::from(texts)), Arc::new(dictionary)];
    all.extend(i64::try_from(number).ok().map(|number| Arc::new(Int64Array::from(vec![number])) as ArrayRef));
    all.extend(
        u64::try_from(number).ok().map(|number| Arc::new(UInt64Array::from(vec![number])) as ArrayRef),
    );
    if number.unsigned_abs() < 1 << 53 {
        // Next to an empty cell, as in data frames.
        all.push(Arc::new(Float64Array::from(vec![Some(number as f64), None]).slice(0, 1)));
    }
    if number.unsigned_abs() < 1 << 24 {
        all.push(Arc::new(Float32Array::from(vec![number as f32])));
    }
    all
}

#[test]
fn a_whole_number_is_one_user_in_every_type_of_column_and_in_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let (mut spelled, mut files) = (0, 0);
    for (at, number) in numbers().into_iter().enumerate() {
        for array in arrays(number) {
            let found = names(&array);
            spelled += found.len();
            assert!(found.iter().all(|name| *name == number.to_string()), "{number}: {found:?} of {array:?}");
            if at % 40 != 0 {
                continue;
            }
            files += 1;
            let path = folder.path().join("users.parquet");
            let batch = RecordBatch::try_from_iter([("user", array)]).unwrap();
            let file = std::fs::File::create(&path).unwrap();
            let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
            for batch in
                Batches::open("events", &path, ColumnFormat::Parquet, &[("user", Role::User)]).unwrap()
            {
                assert!(names(batch.unwrap().column(0)).iter().all(|name| *name == number.to_string()));
            }
        }
    }
    assert!(spelled > 60_000 && files > 300, "{spelled} spellings, {files} files");
}

#[test]
fn other_numbers_are_refused_and_other_texts_are_as_they_are() {
    let mut state = 9;
    for _ in 0..3000 {
        let number = random(&mut state) as i64 as f64 / 2f64.powi(40);
        let is_whole = number.fract() == 0.0;
        for text in [format!("{number}"), format!("{number:?}"), format!("{number:e}")] {
            assert_eq!(user_name("user", &text).is_err(), !is_whole, "{text}");
        }
        let large = (random(&mut state) | 1 << 53) as f64;
        for text in [format!("{large:?}"), format!("{large:e}"), format!("{large}.0")] {
            assert!(user_name("user", &text).unwrap_err().to_string().contains("below 2^53"), "{text}");
        }
        let single = Float32Array::from(vec![(random(&mut state) | 1 << 24) as f32]);
        let cells = Cells::new("user", &single).unwrap();
        assert!(cells.user("user", 0, &mut String::new()).unwrap_err().to_string().contains("below 2^24"));
    }
    for text in [
        "nan",
        "NaN",
        "-inf",
        "Infinity",
        "7.5",
        "1e-3",
        "1e400",
        "0.1e-999999999999999999999",
        "1e+99999999999999999999",
        "",
        " ",
        "NA",
        " null\t",
        "None",
        "<NA>",
        "n/a",
    ] {
        assert!(user_name("user", text).is_err(), "{text}");
    }
    for text in [
        "ada",
        " Ada",
        "0x10",
        "1_000",
        "7 8",
        "7.0.0",
        "e7",
        "7e",
        "1e+",
        ".",
        "-",
        "--7",
        "\u{ff17}",
        "7a",
        "000000e0",
        "12345e67",
        "00e1",
        "12.5e1",
        "1e2345",
        "1e99999999999999999999",
    ] {
        assert_eq!(user_name("user", text).unwrap(), text.trim());
    }
    for zero in ["0", "-0", "0.0", "-0e9", "00", "0e+99999999999999999999"] {
        assert_eq!(user_name("user", zero).unwrap(), "0");
    }
}
