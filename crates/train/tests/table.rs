//! Tables: valid lines are encoded as specified, and invalid lines are refused.

use std::path::Path;

use antinoise_input::BadInput;
use antinoise_train::Error;
use antinoise_train::data::{Column, Dataset, Labels, Missing, Schema, TableFile, TestPart, Values};
use proptest::prelude::*;

fn csv(path: &Path, schema: &Schema, test: TestPart) -> Result<Dataset, Error> {
    TableFile::csv(path, b',').dataset(schema, test)
}

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
    refused(&good.replace(',', ";"), "its first line has the delimiter ';'");
    refused("\u{feff}", "is empty");
    refused(&good.replace("2,b", "2"), "3 cells in line 3");
    refused(&good.replace('\n', "\r\n").replace("2,b", "two,b"), "\"two\" in line 3, column \"x\"");
    refused(&good.replace("2,b", "two,b"), "\"two\" in line 3, column \"x\"");
    refused(&good.replace("2,b", ",b"), "unless missing cells count as 0");
    refused(&good.replace("2,b", "2,d"), "must be one of a, b");
    refused(&good.replace("yes", "maybe"), "must be one of no, yes");
    refused(&good.replace("yes", ""), "line 3, column \"class\"");
    refused(&good.replace("x,", "y,"), "with a column \"x\"");
    refused(&good.replace("word,any", "word,word"), "two columns \"word\"");
    refused("x,word,any,class\n", "without rows");
    refused("", "is empty");
    refused("x,word,any,class\n1,a,c,no\n", "enough rows");
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
    refused(&|s| s.columns[1].name = "x".into(), "\"x\" is named twice");
    refused(&|s| s.label = "x".into(), "\"x\" is named twice");
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

/// The files were written by pyarrow (`scripts/release/parquet.py` makes all).
#[cfg(feature = "parquet")]
#[test]
fn parquet_and_arrow_say_what_csv_says() {
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
    let of_users = Schema { columns: schema.columns[..2].to_vec(), ..schema.clone() };
    let drawn = TestPart::Drawn { share: 0.2, seed: 3 };
    let csv_file = data.join("events.csv");
    let users_by_csv = TableFile::csv(&csv_file, b',').with_users("user").dataset(&of_users, drawn).unwrap();
    type Opened = for<'a> fn(&'a Path) -> TableFile<'a>;
    let parquet: Opened = |path| TableFile::parquet(path);
    let arrow: Opened = |path| TableFile::arrow(path);
    let cases = [
        (parquet, "events.parquet", "must be a Parquet file that can be read"),
        (arrow, "events.arrow", "must be an Arrow IPC file or stream"),
        (arrow, "events.arrows", "must be an Arrow IPC file or stream"),
    ];
    for (open, name, must_be) in cases {
        let path = data.join(name);
        let found = open(&path).dataset(&schema, TestPart::Last(0.2)).unwrap();
        assert_eq!(found.train.len(), 400);
        assert_eq!(Dataset { name: by_csv.name.clone(), ..found }, by_csv);
        let found = open(&path).with_users("user").dataset(&of_users, drawn).unwrap();
        assert_eq!(Dataset { name: users_by_csv.name.clone(), ..found }, users_by_csv);

        let refused = |schema: &Schema, name: &str| {
            let error = open(&data.join(name)).dataset(schema, TestPart::Last(0.2)).unwrap_err();
            assert!(error.is_bad_input() && error.to_string().contains(name), "{error:?}");
            error.to_string()
        };
        let known = Schema { classes: words("0 1"), ..schema.clone() };
        assert!(refused(&known, name).contains("in row 0, column \"late\" but must be one of 0, 1"));
        assert!(refused(&schema, "events.csv").contains(must_be));
        assert!(refused(&schema, "absent.parquet").contains(must_be));
        let of_type = |column: &str, values| {
            let columns = vec![Column { name: column.into(), values }];
            refused(&Schema { columns, ..schema.clone() }, name)
        };
        assert!(of_type("note", Values::Range(0.0, 1.0)).starts_with("column \"note\" of "));
        assert!(of_type("time", Values::Categories(words("a b"))).contains("column \"time\""));
        assert!(of_type("minute", Values::Range(0.0, 1.0)).contains("is absent"));
    }
    let compressed = TableFile::arrow(&data.join("events.feather")).dataset(&schema, TestPart::Last(0.2));
    let said = compressed.unwrap_err().to_string();
    assert!(said.contains("events.feather") && said.contains("lz4"), "{said}");
}

/// The file was written by NumPy (`scripts/train/arrays.py` makes it).
#[test]
fn arrays_say_what_csv_says() {
    let column = |name: &str, values| Column { name: name.into(), values };
    let of = |minutes: &str, user: &str, shop: &str| Schema {
        label: "late".into(),
        classes: words("false true"),
        missing: Missing::Refuse,
        columns: vec![
            column(minutes, Values::Range(0.0, 20.0)),
            column(user, Values::Range(100.0, 140.0)),
            column(shop, Values::Categories(words("north south *"))),
        ],
    };
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../release/tests/data");
    let (csv_file, arrays) = (data.join("events.csv"), data.join("events.npz"));
    let schema = of("minutes", "user", "shop");
    let wanted = csv(&csv_file, &schema, TestPart::Last(0.2)).unwrap();
    let read = |schema: &Schema| {
        let found = TableFile::npz(&arrays).dataset(schema, TestPart::Last(0.2)).unwrap();
        Dataset { name: wanted.name.clone(), ..found }
    };
    assert_eq!(read(&schema), wanted);
    for both in ["both", "both_by_columns", "both_in_half"] {
        assert_eq!(read(&of(&format!("{both}[0]"), &format!("{both}[1]"), "shop_as_bytes")), wanted);
    }
    let named =
        |name: &str| Schema { columns: vec![column(name, Values::Range(0.0, 140.0))], ..schema.clone() };
    let open = TableFile::npz(&arrays);
    let expanded = open.with_columns_of_arrays(named("both")).unwrap();
    let names: Vec<&str> = expanded.columns.iter().map(|column| &*column.name).collect();
    assert_eq!(
        (names, &expanded.columns[1].values),
        (vec!["both[0]", "both[1]"], &Values::Range(0.0, 140.0))
    );
    assert_eq!(open.with_columns_of_arrays(schema.clone()).unwrap(), schema);
    assert_eq!(TableFile::csv(&csv_file, b',').with_columns_of_arrays(named("both")).unwrap(), named("both"));

    let of_users =
        Schema { columns: vec![schema.columns[0].clone(), schema.columns[2].clone()], ..schema.clone() };
    let drawn = TestPart::Drawn { share: 0.2, seed: 3 };
    let users = |file: TableFile, user| file.with_users(user).dataset(&of_users, drawn).unwrap();
    let wanted = users(TableFile::csv(&csv_file, b','), "user");
    for user in ["user", "both[1]", "both_by_columns[1]"] {
        let found = users(open, user);
        assert_eq!(Dataset { name: wanted.name.clone(), ..found }, wanted);
    }

    let refused = |schema: &Schema, path: &Path, words: &str| {
        let error = TableFile::npz(path).dataset(schema, TestPart::Last(0.2)).unwrap_err();
        let said = error.to_string();
        assert!(error.is_bad_input() && said.contains(words), "{words}: {said}");
        assert!(said.starts_with(&format!("data file {} is ", path.display())), "{said}");
        assert_eq!(said.matches("but must be").count(), 1, "{said}");
    };
    refused(&named("both"), &arrays, "array \"both\" is of 2 columns");
    refused(&named("both_as_objects"), &arrays, "array \"both_as_objects\" is of Python objects");
    refused(&named("shop"), &arrays, "array \"shop\" is of text but must be numbers");
    refused(&named("hours"), &arrays, "column \"hours\" is absent");
    refused(&Schema { classes: words("0 1"), ..schema.clone() }, &arrays, "in row 0, column \"late\"");
    refused(&schema, &csv_file, "is not readable");
    refused(&schema, &data.join("absent.npz"), "is absent but must be an .npz archive of numbers");
    assert!(TableFile::npz(&arrays).with_columns_of_arrays(named("both_as_objects")).is_err());
}

/// The same rows in all formats are the same examples, and rows without labels are the same features.
#[test]
fn delimiters_and_json_lines_say_what_csv_says() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let schema = schema(Missing::Zero);
    let comma = write("comma.csv", "x,word,any,class\n1.5,a,c,no\n,b,\"q,r\",yes\n");
    let tab = write("tab.tsv", "class\tany\tword\tx\nno\tc\ta\t1.5\nyes\tq,r\tb\t\n");
    let json = write(
        "rows.jsonl",
        "{\"x\": 1.5, \"word\": \"a\", \"any\": \"c\", \"class\": \"no\", \"other\": [1]}\n\n\
         {\"x\": null, \"word\": \"b\", \"any\": \"q,r\", \"class\": \"yes\"}\n",
    );
    let read = |file: TableFile, labels| file.examples(&schema, labels).unwrap();
    let wanted = read(TableFile::csv(&comma, b','), Labels::Required);
    assert_eq!(wanted.labels(), [0, 1]);
    assert_eq!(read(TableFile::csv(&tab, b'\t'), Labels::Required), wanted);
    assert_eq!(read(TableFile::json_lines(&json), Labels::Required), wanted);
    let unlabelled = write("new.csv", "any;x;word\nc;1.5;a\nq,r;;b\n");
    let found = read(TableFile::csv(&unlabelled, b';'), Labels::Ignored);
    assert_eq!(found.labels(), [0, 0]);
    assert!((0..2).all(|row| found.features(row) == wanted.features(row)));
    for (line, words) in [
        ("{\"x\": [1]}", "a list or an object in line 2, column \"x\""),
        (
            "{\"x\": 1, \"word\": \"d\", \"any\": \"c\", \"class\": \"no\"}",
            "\"d\" in line 2, column \"word\"",
        ),
        ("[1]", "line 2"),
        ("{\"x\": 1", "line 2"),
    ] {
        let path = write("bad.jsonl", &format!("\n{line}\n"));
        let error = TableFile::json_lines(&path).examples(&schema, Labels::Required).unwrap_err();
        assert!(error.is_bad_input() && error.to_string().contains(words), "{error}");
    }
    let path = folder.path().join("utf16.csv");
    std::fs::write(&path, b"\xff\xfex\0,\0y\0\n\0").unwrap();
    let error = csv(&path, &schema, TestPart::Last(0.5)).unwrap_err().to_string();
    assert!(error.contains("UTF-16"), "{error}");
}

/// Drawn rows are of all rows, and the others keep their order.
#[test]
fn test_rows_are_drawn_from_all_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sorted.csv");
    let rows: String =
        (0..100).map(|row| format!("{},a,c,{}\n", row as f64 / 10.0, ["no", "yes"][row / 50])).collect();
    std::fs::write(&path, format!("x,word,any,class\n{rows}")).unwrap();
    let read = |seed| csv(&path, &schema(Missing::Refuse), TestPart::Drawn { share: 0.2, seed }).unwrap();
    let found = read(0);
    assert_eq!((found.train.len(), found.test.len()), (80, 20));
    let x = |part: &antinoise_train::data::Examples| {
        (0..part.len()).map(|row| part.features(row)[0]).collect::<Vec<_>>()
    };
    assert!(x(&found.train).is_sorted() && x(&found.test).is_sorted());
    assert!(found.test.labels().contains(&0) && found.test.labels().contains(&1));
    let mut all = [x(&found.train), x(&found.test)].concat();
    all.sort_by(f32::total_cmp);
    all.dedup();
    assert_eq!(all.len(), 100);
    assert_eq!(read(0).test, found.test);
    assert_ne!(read(1).test, found.test);
}
