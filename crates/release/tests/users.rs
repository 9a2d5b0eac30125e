//! Which names are one user, in CSV and JSON lines, and which names cause a warning.

use antinoise_input::BadInput;
use antinoise_release::{Columns, Format, Freezing, Handling, Late, Period, Release, Settings, Unit};

fn in_a_day(max_periods: usize, days: &[&dyn Fn(&mut Freezing)]) -> Vec<(String, usize)> {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { max_periods, ..Settings::new(vec!["a".into()], 9, Unit::User) };
    let mut release = Release::create(folder.path(), &settings).unwrap();
    for (day, fill) in days.iter().enumerate() {
        let mut freezing = release.freeze(&Period::Number(day as i64)).unwrap();
        fill(&mut freezing);
        freezing.commit().unwrap();
    }
    let mut counted = Vec::new();
    release.counted(|user, period, _| counted.push((user.to_string(), period))).unwrap();
    counted
}

fn read(freezing: &mut Freezing, text: &str) -> antinoise_release::Result<u64> {
    let named = String::from;
    let columns = Columns {
        time: named("time"),
        user: Some(named("user")),
        key: Some(named("key")),
        ..Columns::default()
    };
    let format = if text.starts_with('{') { Format::JsonLines } else { Format::Csv };
    let handling = Handling { late: Late::Refuse, leave_unknown_keys: false };
    Ok(freezing.read(text.as_bytes(), format, &columns, handling, || ())?.tally.counted)
}

fn lines(users: &[String], is_json: bool) -> String {
    let row = |user: &String| match is_json {
        true => format!("{{\"time\":0,\"user\":{user},\"key\":\"a\"}}\n"),
        false => format!("0,{user},a\n"),
    };
    let rows: String = users.iter().map(row).collect();
    if is_json { rows } else { format!("time,user,key\n{rows}") }
}

#[test]
fn numbers_are_one_user_however_csv_and_json_write_them() {
    let mut state = 5u64;
    let mut numbers: Vec<u64> = vec![0, 7, (1 << 53) - 1, (1 << 53) + 1, u64::MAX];
    numbers.extend((0..2000).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> ((state >> 33) % 60)
    }));
    numbers.sort_unstable();
    numbers.dedup();
    let (mut csv, mut json) = (Vec::new(), Vec::new());
    for number in &numbers {
        let (mut texts, mut exponents) = (vec![number.to_string()], Vec::new());
        if *number < 1 << 53 {
            texts.extend([".0", ".00"].map(|end| format!("{number}{end}")));
            exponents.extend([
                format!("{:e}", *number as f64),
                format!("{:E}", *number as f64).replace('E', "E+0"),
            ]);
        }
        let all = || texts.iter().chain(&exponents);
        csv.extend(all().flat_map(|text| [text.clone(), format!("\" {text} \""), format!("+{text}")]));
        csv.extend(texts.iter().map(|text| format!("0{text}")));
        json.extend(all().flat_map(|text| [text.clone(), format!("\"{text}\"")]));
        json.extend(texts.iter().map(|text| format!("\" 0{text}\"")));
    }
    let mut wanted: Vec<String> = numbers.iter().map(u64::to_string).collect();
    wanted.sort();
    for text in [lines(&csv, false), lines(&json, true)] {
        // A user of all these rows has one row.
        let counted = in_a_day(1, &[&|day| assert_eq!(read(day, &text).unwrap(), numbers.len() as u64)]);
        let found: Vec<String> = counted.into_iter().map(|(user, _)| user).collect();
        assert_eq!(found, wanted);
    }
}

#[test]
fn numbers_that_name_no_user_are_refused_by_line() {
    for user in [
        "7.5",
        "1e-3",
        "9007199254740992.0",
        "1e30",
        "\"nan\"",
        "\"7.25\"",
        "\"-inf\"",
        "7.0000000000000000001",
    ] {
        for is_json in [false, true] {
            in_a_day(
                1,
                &[&|day| {
                    let error = read(day, &lines(&["1".into(), user.into()], is_json)).unwrap_err();
                    let line = if is_json { 2 } else { 3 };
                    assert!(error.is_bad_input(), "{error}");
                    assert!(
                        error.to_string().starts_with(&format!("user of an event (line {line}) is ")),
                        "{error}"
                    );
                }],
            );
        }
    }
}

#[test]
fn names_that_are_nearly_the_same_are_warned_of_with_examples() {
    let add = |day: &mut Freezing, users: &[&str]| {
        for user in users {
            day.add(user, "a", None).unwrap();
        }
        day.similar_users().unwrap()
    };
    let days: [&dyn Fn(&mut Freezing); 4] = [
        &|day| {
            let similar =
                add(day, &["ada", "Ada", "a da ", "grace", "7", "8", "e\u{301}mile", "\u{e9}mile", "edsger"]);
            assert_eq!((similar.users, similar.examples.len()), (3, 3));
            assert_eq!(similar.examples[0], ("Ada".into(), "ada".into()));
            assert!(
                similar
                    .warning()
                    .unwrap()
                    .starts_with("3 users have names that differ from another user's only in case, spaces")
            );
        },
        // Repeated names cause no second warning, and a number is already one user.
        &|day| assert_eq!(add(day, &["grace", "7.0", "8"]).warning(), None),
        &|day| {
            let similar = add(day, &["GRACE", "edsger", "barbara", "\u{ff18}"]);
            assert_eq!(similar.examples, [("GRACE".into(), "grace".into()), ("\u{ff18}".into(), "8".into())]);
        },
        &|day| assert_eq!(add(day, &["grace"]).examples, [("grace".into(), "GRACE".into())]),
    ];
    in_a_day(4, &days);
}
