//! Periods that are frozen: mistyped ones, lists of them, and checks beforehand.

use serde_json::Value;

use super::{EVENTS, antinoise, init, json, refused};

/// `--check` shows what a file would do, a mistyped period is refused, and `--yes` freezes it.
#[test]
fn a_mistyped_period_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    init(folder, "shops");
    std::fs::write(folder.join("events.csv"), "day,user,shop\n2026-03-02,ada,a\n2026-03-02,ada,a\n").unwrap();
    let freeze = |period, option: &'static [&str]| {
        [&["release", "freeze", "shops", period][..], &EVENTS, option].concat()
    };
    let check = json(folder, &freeze("2026-03-02", &["--check"]));
    assert_eq!((&check["counted"], &check["left_out"], &check["lost"]), (&2.into(), &0.into(), &0.into()));
    assert!(check["problems"].as_array().unwrap().is_empty() && check["frozen"].is_null());
    let check = json(folder, &freeze("2062-03-02", &["--check"]));
    assert!(check["problems"][0].as_str().unwrap().contains("is after all 2 rows"), "{check}");
    refused(folder, &freeze("2062-03-02", &[]), "2062-03-02 was not frozen, and nothing was changed");
    assert_eq!(json(folder, &["release", "status", "shops"])["frozen"], 0);
    json(folder, &freeze("2026-03-02", &[]));
    std::fs::write(folder.join("events.csv"), "day,user,shop\n2026-03-03,ada,a\n2026-03-05,ada,a\n").unwrap();
    refused(folder, &freeze("2026-03-05", &[]), "1 row between 2026-03-02 and 2026-03-05");
    let frozen = &json(folder, &freeze("2026-03-05", &["--yes"]))["frozen"][0];
    assert_eq!((&frozen["lost"], &frozen["skipped"]), (&1.into(), &2.into()));
    let published = json(folder, &["release", "publish", "shops"]);
    assert_eq!(
        published["intervals"],
        "of the rows counted: at most 2 per user and period, 3 periods per user"
    );
}

/// The names of a list are checked before any of its periods is frozen; what was frozen before a later error
/// is printed.
#[test]
fn a_list_of_periods_is_frozen_as_far_as_it_is_right() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    init(folder, "shops");
    let days = [1, 2, 4].map(|day| format!("2026-03-0{day},u{day},a\n")).concat();
    std::fs::write(folder.join("events.csv"), format!("day,user,shop\n{days}")).unwrap();
    let freeze = |periods: &[&'static str]| [&["release", "freeze", "shops"][..], periods, &EVENTS].concat();
    let frozen = || json(folder, &["release", "status", "shops"])["frozen"].as_u64();
    for (periods, named) in [
        (
            &["2026-03-01", "2026-03-02", "2026-03-40"][..],
            "\"2026-03-40\" but must be a month, a date or a time",
        ),
        (&["2026-03-02", "2026-03-01"], "no period was frozen, and nothing was changed"),
        (&["2026-03-01", "2026-03-01"], "2026-03-01 is in the list too"),
        (&["2026-03-01", "2026-03"], "2026-03-01 is in the list too"),
    ] {
        refused(folder, &freeze(periods), named);
        assert_eq!(frozen(), Some(0), "{periods:?}");
    }
    let list = freeze(&["2026-03-01", "2026-03-02", "2026-03-03"]);
    let output = antinoise(folder, &[&list[..], &["--json"]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    for named in
        ["2026-03-03 was not frozen: ", "(these periods were frozen and stay frozen: 2026-03-01, 2026-03-02)"]
    {
        assert!(stderr.contains(named), "{stderr}");
    }
    let printed: Value = serde_json::from_slice(&output.stdout).expect("one object");
    let counted = printed["frozen"].as_array().unwrap().iter().map(|frozen| frozen["counted"].as_u64());
    assert_eq!(counted.collect::<Vec<_>>(), [Some(1), Some(1)]);
    assert_eq!(frozen(), Some(2));
}

/// Counts after periods that were skipped are refused like a mistyped year, and can be checked.
#[test]
fn counts_of_a_mistyped_period_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    init(folder, "shops");
    std::fs::write(folder.join("c.csv"), "key,count\na,5\nusers-at-bound,0\nusers-over-rows,1\n").unwrap();
    let counts = |period: &'static str| ["release", "freeze", "shops", period, "--counts", "c.csv"];
    let check = json(folder, &[&counts("2026-03-01")[..], &["--check"]].concat());
    assert!(check["counted"] == 5 && check["problems"].as_array().unwrap().is_empty(), "{check}");
    assert_eq!(json(folder, &["release", "status", "shops"])["frozen"], 0);
    json(folder, &counts("2026-03-01"));
    refused(folder, &counts("2036-03-02"), "3653 periods between 2026-03-01 and 2036-03-02 would be skipped");
    let check = json(folder, &[&counts("2036-03-02")[..], &["--check"]].concat());
    assert_eq!(check["problems"].as_array().unwrap().len(), 1, "{check}");
    let output = antinoise(folder, &[&counts("2026-03-03")[..], &["--yes"]].concat());
    let printed = String::from_utf8_lossy(&output.stdout);
    for line in ["2026-03-03: counts taken as they are", "1 period before 2026-03-03 was not frozen"] {
        assert!(printed.contains(line), "{printed}");
    }
}

/// A check says of every row of the file what would happen, and one row is not written as several.
#[test]
fn a_check_names_all_rows() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    init(folder, "shops");
    let days = "2026-03-03,ada,a\n03/04/2026,ada,a\n2026-03-01,ada,a\n2026-03-04,ada,a\n2026-03-05,ada,a\n";
    std::fs::write(folder.join("events.csv"), format!("day,user,shop\n{days}")).unwrap();
    let freeze = [&["release", "freeze", "shops", "2026-03-03"][..], &EVENTS].concat();
    let output = antinoise(folder, &[&freeze[..], &["--check"]].concat());
    let printed = String::from_utf8_lossy(&output.stdout);
    for part in [
        "would count 1 row, leave out 0 and lose 0; 2 of earlier periods and 2 of later ones would not be counted; nothing",
        "problem: times of 1 row differ in form from 2026-03-03, such as \"03/04/2026\"",
    ] {
        assert!(printed.contains(part), "{printed}");
    }
    let check = json(folder, &[&freeze[..], &["--check"]].concat());
    assert_eq!((&check["late"], &check["later"]), (&2.into(), &2.into()));
    let output = antinoise(folder, &[&freeze[..], &["--yes"]].concat());
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("2026-03-03: 1 row counted, 2 of earlier periods")
    );
    json(folder, &["release", "publish", "shops"]);
    let report = antinoise(folder, &["release", "report", "shops", "--out", "page.html"]);
    assert!(String::from_utf8_lossy(&report.stdout).contains("page.html: 1 period\n"));
    let page = std::fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(page.contains("1 of 6 periods is published"), "{page}");
}

/// Names that are nearly the same are reported on both outputs, and the help says which names are one user.
#[test]
fn similar_users_are_warned_of() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    init(folder, "shops");
    std::fs::write(folder.join("events.csv"), "day,user,shop\n0,ada,a\n0,Ada ,a\n0,7,a\n0,7.0,b\n0,7e0,b\n")
        .unwrap();
    let freeze = [&["release", "freeze", "shops", "0", "--json"][..], &EVENTS].concat();
    let output = antinoise(folder, &freeze);
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let warning = printed["frozen"][0]["warning"].as_str().unwrap();
    assert!(
        warning.starts_with("1 user has a name that differs") && warning.contains("\"Ada\" and \"ada\""),
        "{warning}"
    );
    assert!(String::from_utf8_lossy(&output.stderr).contains(&format!("warning: {warning}")));
    assert_eq!(
        (&printed["frozen"][0]["counted"], &printed["frozen"][0]["beyond_max_rows"]),
        (&4.into(), &1.into())
    );
    std::fs::write(folder.join("events.csv"), "day,user,shop\n1,7.5,a\n").unwrap();
    refused(
        folder,
        &[&["release", "freeze", "shops", "1"][..], &EVENTS].concat(),
        "user of an event (line 2) is \"7.5\"",
    );
    std::fs::write(folder.join("events.csv"), "day,user,shop\n1,grace,a\n").unwrap();
    assert!(
        json(folder, &[&["release", "freeze", "shops", "1"][..], &EVENTS].concat())["frozen"][0]["warning"]
            .is_null()
    );
    refused(
        folder,
        &[
            "release",
            "init",
            "sums",
            "--keys",
            "a",
            "--periods",
            "6",
            "--epsilon",
            "2",
            "--delta",
            "1e-6",
            "--unit",
            "event",
            "--query",
            "sum:-1e308,1e308",
        ],
        "from -1e100 to 1e100",
    );
}
