//! Tables: valid lines are encoded as specified, and invalid lines are refused.

use std::path::Path;

use antinoise_input::BadInput;
use antinoise_train::data::{Column, Dataset, Missing, Schema, TestPart, Values, csv};
use proptest::prelude::*;

fn words(list: &str) -> Vec<String> {
    list.split(' ').map(str::to_owned).collect()
}

fn schema(missing: Missing) -> Schema {
    let column = |name: &str, values| Column { name: name.into(), values };
    Schema {
        label: "class".into(),
        classes: words("no yes"),
        missing,
        columns: vec![
            column("x", Values::Range(-10.0, 30.0)),
            column("word", Values::Categories(words("a b"))),
            column("any", Values::Categories(words("c *"))),
        ],
    }
}

fn read(text: &str, missing: Missing) -> Result<Dataset, String> {
    read_as(text, &schema(missing))
}

fn read_as(text: &str, schema: &Schema) -> Result<Dataset, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    std::fs::write(&path, text).unwrap();
    csv(&path, schema, TestPart::Last(0.25)).map_err(|error| {
        assert!(error.is_bad_input(), "{error:?}");
        error.to_string()
    })
}

/// A cell of x and its expected features, and so on for the other columns.
fn row() -> impl Strategy<Value = (String, Vec<f32>, u32)> {
    let x = prop_oneof![
        Just(("".to_owned(), 0.0)),
        Just(("NaN".to_owned(), 0.0)),
        Just(("inf".to_owned(), 0.0)),
        Just(("1e300".to_owned(), 1.0)),
        (-100f64..100.0)
            .prop_map(|x| (format!(" {x}"), (((x.clamp(-10.0, 30.0) + 10.0) / 20.0) - 1.0) as f32)),
    ];
    let word = prop_oneof![Just(("a", [1f32, 0.0])), Just(("b", [0.0, 1.0])), Just(("NA", [0.0, 0.0]))];
    let any = prop_oneof![Just(("c", [1f32, 0.0])), Just(("\"q, \"\"r\"\"\"", [0.0, 1.0]))];
    // By their digests, "pain" adds 1 to the first of two features, and "no" subtracts 1 from the second.
    let half = 0.5f32.sqrt();
    let note = prop_oneof![
        Just(("", [0.0, 0.0])),
        Just(("--", [0.0, 0.0])),
        Just(("No pain", [half, -half])),
        Just(("pain! Pain", [1.0, 0.0]))
    ];
    (x, word, any, note, 0u32..2).prop_map(|((cell, x), (w, one), (a, two), (note, words), class)| {
        let label = ["no", "yes"][class as usize];
        let features = vec![x, one[0], one[1], two[0], two[1], words[0], words[1]];
        (format!("{label},junk,{cell},{a},{w},{note}\n"), features, class)
    })
}

proptest! {
    #[test]
    fn rows_are_what_their_cells_say_in_their_order(rows in proptest::collection::vec(row(), 2..40)) {
        let lines: String = rows.iter().map(|(line, ..)| line.as_str()).collect();
        let mut schema = schema(Missing::Zero);
        schema.columns.push(Column { name: "note".into(), values: Values::Text(2) });
        let table = read_as(&format!("\u{feff}class,other,x,any,word,note\n{lines}"), &schema).unwrap();
        let test = ((rows.len() as f64 * 0.25).round() as usize).max(1);
        prop_assert_eq!(table.test.len(), test);
        prop_assert_eq!(table.train.len() + test, rows.len());
        for (i, (_, features, class)) in rows.iter().enumerate() {
            let (part, at) = if i < table.train.len() { (&table.train, i) } else { (&table.test, i - table.train.len()) };
            prop_assert_eq!(part.labels()[at], *class);
            for (got, expected) in part.features(at).iter().zip(features) {
                prop_assert!((got - expected).abs() < 1e-6, "row {i}: {got} {expected}");
            }
        }
    }
}

#[test]
fn what_cannot_be_used_is_named() {
    let good = "x,word,any,class\n1,a,c,no\n2,b,c,yes\n";
    assert!(read(good, Missing::Refuse).is_ok());
    let refused = |text: &str, words: &str| {
        let message = read(text, Missing::Refuse).unwrap_err();
        assert!(message.contains(words), "{words:?} not in {message}");
    };
    refused(&good.replace("2,b", "2,b,b"), "5 cells in line 3");
    refused(&good.replace("2,b", "2"), "3 cells in line 3");
    refused(&good.replace("2,b", "two,b"), "\"two\" in line 3, column \"x\"");
    refused(&good.replace("2,b", ",b"), "missing = zero");
    refused(&good.replace("2,b", "2,d"), "must be one of a, b");
    refused(&good.replace("yes", "maybe"), "must be one of no, yes");
    refused(&good.replace("yes", ""), "line 3, column \"class\"");
    refused(&good.replace("x,", "y,"), "with a column \"x\"");
    refused(&good.replace("word,any", "word,word"), "two columns \"word\"");
    refused("x,word,any,class\n", "without rows");
    refused("", "column");
    refused("x,word,any,class\n1,a,c,no\n", "rows enough");
    refused("\0\u{1}\u{2}", "column");
    let absent =
        csv(Path::new("/nonexistent/t.csv"), &schema(Missing::Refuse), TestPart::Last(0.5)).unwrap_err();
    assert!(absent.to_string().contains("absent"));
    // Bytes that are not text.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bytes.csv");
    std::fs::write(&path, [b"x,word,any,class\n1,a,c,no\n", &b"\xff,b,c,yes\n"[..]].concat()).unwrap();
    let error = csv(&path, &schema(Missing::Refuse), TestPart::Last(0.5)).unwrap_err().to_string();
    assert!(error.contains("line 3, column \"x\"") && error.contains("UTF-8"), "{error}");
}

#[test]
fn schemas_that_do_not_hold_are_refused() {
    let refused = |alter: &dyn Fn(&mut Schema), words: &str| {
        let mut schema = schema(Missing::Refuse);
        alter(&mut schema);
        let message = schema.check().unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    };
    for (low, high) in [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY)] {
        refused(&|s| s.columns[0].values = Values::Range(low, high), "range of column \"x\"");
    }
    refused(&|s| s.columns[1].values = Values::Categories(words("a a")), "categories of column \"word\"");
    refused(&|s| s.columns[1].values = Values::Categories(vec![]), "categories of column \"word\"");
    for features in [0, (1 << 16) + 1, usize::MAX] {
        refused(&|s| s.columns[1].values = Values::Text(features), "features of text column \"word\"");
    }
    refused(&|s| s.columns[1].name = "x".into(), "\"x\" again");
    refused(&|s| s.label = "x".into(), "\"x\" again");
    refused(&|s| s.classes = words("one"), "classes");
    refused(&|s| s.columns.clear(), "number of columns");
    // A range as wide as double precision.
    let wide = Column { name: "x".into(), values: Values::Range(-f64::MAX, f64::MAX) };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wide.csv");
    std::fs::write(&path, format!("x,class\n{},no\n0,yes\n-1e400,no\n", f64::MAX)).unwrap();
    let schema = Schema { columns: vec![wide], missing: Missing::Zero, ..schema(Missing::Zero) };
    let table = csv(&path, &schema, TestPart::Last(0.3)).unwrap();
    assert_eq!((table.train.features(0), table.train.features(1)), (&[1.0][..], &[0.0][..]));
}

/// The file was written by pyarrow (`scripts/release/parquet.py` makes both).
#[cfg(feature = "parquet")]
#[test]
fn parquet_says_what_csv_says() {
    let column = |name: &str, values| Column { name: name.into(), values };
    let schema = Schema {
        label: "late".into(),
        classes: words("false true"),
        missing: Missing::Refuse,
        columns: vec![
            column("shop", Values::Categories(words("north south *"))),
            column("minutes", Values::Range(0.0, 20.0)),
            column("user", Values::Range(100.0, 140.0)),
        ],
    };
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../release/tests/data");
    let by_csv = csv(&data.join("events.csv"), &schema, TestPart::Last(0.2)).unwrap();
    let parquet = antinoise_train::data::parquet;
    let by_parquet = parquet(&data.join("events.parquet"), &schema, TestPart::Last(0.2)).unwrap();
    assert_eq!(by_parquet.train.len(), 400);
    for (part, other) in [(&by_parquet.train, &by_csv.train), (&by_parquet.test, &by_csv.test)] {
        assert_eq!(part.labels(), other.labels());
        assert!((0..part.len()).all(|i| part.features(i) == other.features(i)));
    }

    let refused = |schema: &Schema, name: &str| {
        let error = parquet(&data.join(name), schema, TestPart::Last(0.2)).unwrap_err();
        assert!(error.is_bad_input(), "{error:?}");
        error.to_string()
    };
    let known = Schema { classes: words("0 1"), ..schema.clone() };
    assert!(refused(&known, "events.parquet").contains("in row 0, column \"late\" but must be one of 0, 1"));
    assert!(refused(&schema, "events.csv").contains("must be a Parquet file that can be read"));
    assert!(refused(&schema, "absent.parquet").contains("must be a Parquet file that can be read"));
}
