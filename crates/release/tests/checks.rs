//! Signs that a period is mistyped or its rows another period's: named before anything is changed.

use antinoise_release::{Check, Columns, Format, Found, Handling, Late, Period, Release, Settings, Unit};

const LEAVE: Handling = Handling { late: Late::Leave, leave_unknown_keys: true };

fn columns() -> Columns {
    let (user, key) = (Some("user".into()), Some("shop".into()));
    Columns { time: "day".into(), user, key, ..Columns::default() }
}

/// What a period does with rows of these days, one user a row; `commit`: whether it is frozen.
fn tried(
    release: &mut Release,
    period: &str,
    days: &[&str],
    handling: Handling,
    commit: bool,
) -> (Check, Found) {
    let rows: String = days.iter().enumerate().map(|(user, day)| format!("{day},u{user},a\n")).collect();
    let period: Period = period.parse().unwrap();
    let mut freezing = release.freeze_in_any_order(&period).unwrap();
    let text = format!("day,user,shop\n{rows}");
    let found = freezing.read(text.as_bytes(), Format::Csv, &columns(), handling, || ()).unwrap();
    let check = freezing.check(&found);
    if commit {
        freezing.commit().unwrap();
    }
    (check, found)
}

fn release(folder: &std::path::Path, unit: Unit) -> Release {
    let max_periods = if unit == Unit::User { 3 } else { 1 };
    let settings = Settings { max_periods, ..Settings::new(vec!["a".into()], 20, unit) };
    Release::create(folder, &settings).unwrap()
}

#[test]
fn each_sign_is_named_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut release = release(folder.path(), Unit::User);
    let (first, _) = tried(&mut release, "2026-03-01", &["2026-03-01", "2026-03-01"], LEAVE, true);
    assert!(first.problems.is_empty() && first.counted == 2, "{first:?}");
    let before = std::fs::read(folder.path().join("release.db")).unwrap();
    for (period, days, named) in [
        ("2026-02-28", &["2026-02-28"][..], "comes before 2026-03-01"),
        ("2026-04", &["2026-04-01"], "differs in form from the first period, 2026-03-01"),
        ("2062-03-02", &["2026-03-02", "2026-03-02"], "is after all 2 rows"),
        ("2026-03-02", &[], "no row is counted in 2026-03-02"),
        ("2026-03-04", &["2026-03-02", "2026-03-04"], "1 row between 2026-03-01 and 2026-03-04"),
    ] {
        let (check, _) = tried(&mut release, period, days, LEAVE, false);
        assert!(check.problems.iter().any(|problem| problem.contains(named)), "{named}: {check:?}");
    }
    assert_eq!(std::fs::read(folder.path().join("release.db")).unwrap(), before);
    // Whose rows may be in the frozen period too.
    for period in ["2026-03-01", "2026-03", "2026-03-01T12", "17"] {
        let refused = release.freeze_in_any_order(&period.parse().unwrap()).unwrap_err().to_string();
        assert!(refused.contains("2026-03-01 was frozen, and a row is counted once"), "{refused}");
    }
    let (next, _) = tried(&mut release, "2026-03-02", &["2026-03-02", "2026-03-01"], LEAVE, true);
    assert!(next.problems.is_empty() && (next.counted, next.lost) == (1, 0), "{next:?}");
}

/// A mistyped period that was frozen does not end the release.
#[test]
fn a_release_continues_after_a_period_of_the_far_future() {
    let folder = tempfile::tempdir().unwrap();
    let mut release = release(folder.path(), Unit::User);
    tried(&mut release, "2062-03-01", &["2062-03-01"], LEAVE, true);
    let next: Period = "2026-03-02".parse().unwrap();
    assert!(release.freeze(&next).is_err());
    let (check, _) = tried(&mut release, "2026-03-02", &["2026-03-02"], LEAVE, true);
    assert!(check.problems[0].contains("comes before 2062-03-01"), "{check:?}");
    assert_eq!(release.publish().unwrap().len(), 2);
}

/// Rows of periods that were never frozen are lost; rows of frozen periods are late. With late rows included,
/// none is lost.
#[test]
fn lost_rows_are_apart_from_late_ones() {
    let folder = tempfile::tempdir().unwrap();
    let mut release = release(folder.path(), Unit::User);
    tried(&mut release, "2026-03-01", &["2026-03-01"], LEAVE, true);
    let days = ["2026-02-27", "2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04", "2026-03-05"];
    let (check, found) = tried(&mut release, "2026-03-04", &days, LEAVE, false);
    assert_eq!((found.late, found.lost, found.later), (2, 2, 1));
    assert_eq!((check.counted, check.left_out, check.lost), (1, 0, 2));
    let include = Handling { late: Late::Include, ..LEAVE };
    let (check, found) = tried(&mut release, "2026-03-04", &days, include, false);
    assert_eq!((found.late, found.lost, check.counted), (4, 0, 5));
    let freezing = release.freeze(&"2026-03-04".parse().unwrap()).unwrap();
    assert_eq!(freezing.skipped(), 2);
}

/// An empty period after an empty one is expected where users show that both are.
#[test]
fn periods_without_rows_follow_each_other() {
    for (unit, expected) in [(Unit::User, 0), (Unit::Event, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let mut release = release(folder.path(), unit);
        let count = |release: &mut Release, period| tried(release, period, &[], LEAVE, true).0.problems.len();
        assert_eq!([count(&mut release, "1"), count(&mut release, "2")], [1, expected], "{unit}");
        let (check, _) = tried(&mut release, "3", &["3"], LEAVE, true);
        assert!(check.problems.is_empty());
        assert_eq!(count(&mut release, "4"), 1);
    }
}

/// Rows beyond the bounds and rows with unknown keys are left out.
#[test]
fn rows_left_out_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut release = release(folder.path(), Unit::User);
    let mut freezing = release.freeze_in_any_order(&Period::Number(1)).unwrap();
    let text = "day,user,shop\n1,ada,a\n1,ada,a\n1,grace,a\n1,grace,elsewhere\n";
    let found = freezing.read(text.as_bytes(), Format::Csv, &columns(), LEAVE, || ()).unwrap();
    let check = freezing.check(&found);
    assert_eq!((check.counted, check.left_out, check.lost), (2, 2, 0));
}

/// After periods out of order, a period's neighbours are those of the calendar, not the last frozen ones.
#[test]
fn neighbours_are_found_by_time_after_periods_out_of_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut release = release(folder.path(), Unit::User);
    for day in ["2026-03-01", "2026-03-09", "2026-03-04"] {
        tried(&mut release, day, &[day], LEAVE, true);
    }
    // Before the latest one: 2026-03-05 and 06 are lost, 2026-03-02 was lost when 2026-03-04 was frozen.
    let days = ["2026-03-02", "2026-03-04", "2026-03-05", "2026-03-06", "2026-03-07", "2026-03-09"];
    let (check, found) = tried(&mut release, "2026-03-07", &days, LEAVE, false);
    assert_eq!((found.late, found.lost, found.later), (2, 2, 1));
    assert!(check.problems[0].contains("2026-03-07 comes before 2026-03-09"), "{check:?}");
    assert!(check.problems[1].contains("2 rows between 2026-03-04 and 2026-03-07"), "{check:?}");
    assert_eq!(release.freeze_in_any_order(&"2026-03-07".parse().unwrap()).unwrap().skipped(), 2);
    // After the latest one, although 2026-03-04 was frozen last.
    let (check, found) =
        tried(&mut release, "2026-03-11", &["2026-03-08", "2026-03-10", "2026-03-11"], LEAVE, false);
    assert_eq!((found.late, found.lost), (1, 1));
    assert!(check.problems[0].contains("1 row between 2026-03-09 and 2026-03-11"), "{check:?}");
    assert!(release.freeze(&"2026-03-05".parse().unwrap()).is_err());
    assert_eq!(release.freeze(&"2026-03-11".parse().unwrap()).unwrap().skipped(), 1);
}

/// Late rows that are counted do not hide a mistyped period, and are named where the order is unusual.
#[test]
fn included_late_rows_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut release = release(folder.path(), Unit::User);
    tried(&mut release, "2026-03-05", &["2026-03-05"], LEAVE, true);
    let include = Handling { late: Late::Include, ..LEAVE };
    let (check, _) = tried(&mut release, "2062-03-06", &["2026-03-06", "2026-03-06"], include, false);
    assert_eq!(check.problems, ["2062-03-06 is after all 2 rows"]);
    let (check, _) = tried(&mut release, "2026-03-06", &["2026-03-05", "2026-03-06"], include, false);
    assert!(check.problems.is_empty(), "{check:?}");
    let (check, _) = tried(&mut release, "2026-03-03", &["2026-03-02", "2026-03-03"], include, false);
    let named = [
        "2026-03-03 comes before 2026-03-05",
        "1 row before 2026-03-03 would be counted in it, out of order",
    ];
    for (problem, named) in check.problems.iter().zip(named) {
        assert!(problem.contains(named), "{check:?}");
    }
    assert_eq!(check.problems.len(), 2);
}

/// A first period that loses rows before it, or takes several dates for one number, is named; a month is not.
#[test]
fn a_mistyped_first_period_is_named() {
    let days = ["2026-03-01", "2026-03-02", "2026-03-05", "2026-03-08"];
    for (period, named) in [
        ("2026-03-05", Some("2 rows before 2026-03-05, the first period, would be lost")),
        ("1", Some("rows of several days, 2026-03-01 to 2026-03-08, would be counted in 1")),
        ("20260301", Some("2026-03-01 to 2026-03-08, would be counted in 20260301")),
        ("2026-03", None),
        ("2026-03-01", None),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut release = release(folder.path(), Unit::User);
        let (check, _) = tried(&mut release, period, &days, LEAVE, true);
        let problems: Vec<bool> =
            check.problems.iter().map(|problem| problem.contains(named.unwrap_or(" "))).collect();
        assert_eq!(problems, vec![true; named.iter().count()], "{period}: {check:?}");
        // What was confirmed once is not asked again.
        if period == "1" {
            let (check, _) = tried(&mut release, "2", &days, LEAVE, false);
            assert!(check.problems.is_empty(), "{check:?}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let include = Handling { late: Late::Include, ..LEAVE };
    let (check, _) = tried(&mut release(folder.path(), Unit::User), "2026-03-05", &days, include, false);
    assert!(check.problems.is_empty() && check.counted == 3 && check.late == 0, "{check:?}");
}

/// Times that differ in form from the period's name are named; if all are, the name is refused.
#[test]
fn times_of_another_form_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut release = release(folder.path(), Unit::User);
    let days = ["2026-03-03", "03/04/2026", "2026-03-04T12:00", "2026-3-2"];
    let (check, _) = tried(&mut release, "2026-03-03", &days, LEAVE, false);
    assert_eq!(check.problems, ["times of 2 rows differ in form from 2026-03-03, such as \"03/04/2026\""]);
    assert_eq!((check.counted, check.late, check.later), (1, 1, 2));
    for period in ["03/02/2026", "01.03.2026", "2026-03-01T12"] {
        for late in [Late::Leave, Late::Include] {
            let mut freezing = release.freeze_in_any_order(&period.parse().unwrap()).unwrap();
            let text = "day,user,shop\n2026-03-01,ada,a\n2026-03-02,ada,a\n";
            let handling = Handling { late, ..LEAVE };
            let read = freezing.read(text.as_bytes(), Format::Csv, &columns(), handling, || ());
            let refused = read.unwrap_err().to_string();
            let named = format!("period is {period} but must be written as the times of events are, such as");
            assert!(refused.contains(&named), "{refused}");
        }
    }
}

/// A period between the rows of its file is not said to be after all of them.
#[test]
fn a_period_between_the_rows_is_described() {
    let folder = tempfile::tempdir().unwrap();
    let mut release = release(folder.path(), Unit::User);
    let days = ["2026-03-05", "2026-03-05", "2026-03-07"];
    let (check, _) = tried(&mut release, "2026-03-06", &days, LEAVE, false);
    assert_eq!(check.problems, ["no row lies in 2026-03-06: 2 before it, 1 after it"]);
    let (check, _) = tried(&mut release, "2026-03-08", &days[..1], LEAVE, false);
    assert_eq!(check.problems, ["2026-03-08 is after the only row"]);
}

/// Counts have no rows by which a mistyped name would show: skipped periods are a sign.
#[test]
fn counts_after_a_skipped_period_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut release = release(folder.path(), Unit::User);
    release.freeze_counts(&"2026-03-01".parse().unwrap(), &[3]).unwrap();
    let mut problems = |period: &str| {
        let freezing = release.freeze_counts_in_any_order(&period.parse().unwrap(), &[3]).unwrap();
        freezing.problems(&Found::default())
    };
    assert_eq!(problems("2026-03-02"), [""; 0]);
    assert_eq!(problems("2026-03-03"), ["1 period between 2026-03-01 and 2026-03-03 would be skipped"]);
    assert!(problems("2036-03-02")[0].starts_with("3653 periods between"));
}

/// A list of names is checked as a whole.
#[test]
fn names_of_a_list_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let mut release = release(folder.path(), Unit::User);
    let list = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<Vec<Period>>();
    let of = |release: &Release, names: &[&str]| release.problems_of_names(&list(names));
    assert!(of(&release, &["2026-03-01", "2026-03-02", "2026-03-05"]).unwrap().is_empty());
    for (names, named) in [
        (["2026-03-02", "2026-03-01"], "2026-03-01 comes before 2026-03-02"),
        (["2026-03-02", "2026-04"], "2026-04 differs in form from the first period, 2026-03-02"),
    ] {
        let problems = of(&release, &names).unwrap();
        assert!(problems.len() == 1 && problems[0].contains(named), "{problems:?}");
    }
    for (names, named) in [
        (["2026-03-01", "2026-03-01"], "2026-03-01 is in the list too"),
        (["2026-03", "2026-03-01"], "2026-03 is in the list too"),
        (["2026-03-01", "7"], "2026-03-01 is in the list too"),
    ] {
        assert!(of(&release, &names).unwrap_err().to_string().contains(named), "{named}");
    }
    let many: Vec<String> = (0..21).map(|day| day.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(of(&release, &many[..20]).unwrap().is_empty());
    let refused = of(&release, &many).unwrap_err().to_string();
    assert!(
        refused.contains("one of the 20 periods of the plan, of which fewer are left than the list has"),
        "{refused}"
    );
    tried(&mut release, "2026-03-01", &["2026-03-01"], LEAVE, true);
    let refused = of(&release, &["2026-03-02", "2026-03-01"]).unwrap_err().to_string();
    assert!(refused.contains("2026-03-01 was frozen, and a row is counted once"), "{refused}");
}
