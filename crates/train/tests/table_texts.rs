//! Texts by user from tables: the same in every format, parted by user, and what is refused.

use std::path::{Path, PathBuf};

use antinoise_train::data::{TableFile, TestPart, TextRows};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../release/tests/data").join(name)
}

/// The texts of each user, by name.
fn by_name(rows: &TextRows) -> Vec<(String, Vec<String>)> {
    let users = rows.users();
    let text = |user| (users.name(user).to_owned(), rows.of(user).map(String::from).collect());
    let mut texts: Vec<_> = (0..users.len()).map(text).collect();
    texts.sort();
    texts
}

/// The files were written by NumPy and pyarrow (`scripts/train/arrays.py` and `scripts/release/parquet.py`).
#[test]
fn all_formats_have_the_texts_of_csv() {
    let (csv, arrays) = (data("events.csv"), data("events.npz"));
    let wanted = TableFile::csv(&csv, b',').with_users("user").texts("shop").unwrap();
    let all = by_name(&wanted);
    assert_eq!(all.iter().map(|(_, rows)| rows.len()).sum::<usize>(), 500);
    assert!(all.len() > 10 && all.iter().all(|(_, rows)| !rows.is_empty()));
    assert_eq!(by_name(&TableFile::npz(&arrays).with_users("user").texts("shop").unwrap()), all);

    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("texts.jsonl");
    let line = |user: &str, row: &String| serde_json::json!({"user": user, "shop": row}).to_string() + "\n";
    let lines: String =
        all.iter().flat_map(|(user, rows)| rows.iter().map(move |row| line(user, row))).collect();
    std::fs::write(&json, lines).unwrap();
    assert_eq!(by_name(&TableFile::json_lines(&json).with_users("user").texts("shop").unwrap()), all);

    #[cfg(feature = "parquet")]
    for (name, is_arrow) in [("events.parquet", false), ("events.arrow", true), ("events.arrows", true)] {
        let path = data(name);
        let file = if is_arrow { TableFile::arrow(&path) } else { TableFile::parquet(&path) };
        assert_eq!(by_name(&file.with_users("user").texts("shop").unwrap()), all, "{name}");
    }
}

/// Every user is in one part with all of their texts, in the file's order.
#[test]
fn parts_are_of_whole_users() {
    let csv = data("events.csv");
    let file = TableFile::csv(&csv, b',').with_users("user");
    let all = by_name(&file.texts("shop").unwrap());
    let (mut parted, mut without_test) = (0, 0);
    for seed in 0..50 {
        let Ok((training, test)) = file.text_parts("shop", TestPart::Drawn { share: 0.2, seed }) else {
            // No user is drawn with probability 0.8^19.
            without_test += 1;
            continue;
        };
        let mut both = by_name(&training);
        both.extend(by_name(&test));
        both.sort();
        assert_eq!(both, all, "{seed}");
        parted += usize::from(!training.users().is_empty() && !test.users().is_empty());
    }
    assert!(parted + without_test == 50 && parted > 40, "{parted} of 50, {without_test} without test users");

    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let training = write("training.csv", "who,said\nA,\"Oh,\nno!\"\nB,What?\nA,\n");
    let (other, same) = (write("other.csv", "said,who\nI.,C\n"), write("same.csv", "who,said\nB,I.\n"));
    let file = TableFile::csv(&training, b',').with_users("who");
    let (texts, test) = file.text_parts("said", TestPart::File(&other)).unwrap();
    let text =
        |user: &str, rows: &[&str]| (user.to_owned(), rows.iter().map(|row| row.to_string()).collect());
    assert_eq!(by_name(&texts), [text("A", &["Oh,\nno!", ""]), text("B", &["What?"])]);
    assert_eq!(by_name(&test), [text("C", &["I."])]);
    let shared = file.text_parts("said", TestPart::File(&same)).unwrap_err().to_string();
    assert!(shared.contains("same.csv"), "{shared}");
}

#[test]
fn tables_without_texts_of_users_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |text: &[u8], user: Option<&str>, column: &str, words: &str| {
        let path = folder.path().join("table.csv");
        std::fs::write(&path, text).unwrap();
        let file = TableFile::csv(&path, b',');
        let file = user.map_or(file, |user| file.with_users(user));
        let error = file.texts(column).unwrap_err();
        assert!(
            antinoise_input::BadInput::is_bad_input(&error) && error.to_string().contains(words),
            "{error}"
        );
    };
    let good: &[u8] = b"who,said\nA,Oh!\n";
    refused(good, None, "said", "user is absent but must be the column");
    refused(good, Some("who"), "who", "must be another column than that of the texts");
    refused(good, Some("who"), "words", "with a column \"words\"");
    refused(good, Some("speaker"), "said", "with a column \"speaker\"");
    refused(b"who,said\n", Some("who"), "said", "without rows");
    refused(b"who,said\nA,\xff\xfe\n", Some("who"), "said", "text in UTF-8");
    refused(b"who,said\n,Oh!\n", Some("who"), "said", "column \"who\"");
    // A quote that is not closed would make the next persons' rows text of this one.
    refused(b"who,said\nA,\"Oh!\nB,No!\n", Some("who"), "said", "quote in line 2 that is not closed");
    refused(b"who,\"said\nA,Oh!\n", Some("who"), "said", "empty");
    refused(b"", Some("who"), "said", "empty");
    refused(b"who,said\n7.5,Oh!\n", Some("who"), "said", "7.5");
    for share in [0.0, 1.0, f64::NAN, 1e-9] {
        let path = folder.path().join("two.csv");
        std::fs::write(&path, b"who,said\nA,Oh!\nB,No!\n").unwrap();
        let file = TableFile::csv(&path, b',').with_users("who");
        assert!(file.text_parts("said", TestPart::Drawn { share, seed: 0 }).is_err(), "{share}");
    }
}
