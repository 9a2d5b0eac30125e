//! `antinoise release`: its contract, and kills at any moment between freezing and publishing.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Kills, spread over six periods.
const KILLS: u64 = 204;

fn antinoise(folder: &Path, arguments: &[&str]) -> Output {
    let binary = env!("CARGO_BIN_EXE_antinoise");
    Command::new(binary).args(arguments).current_dir(folder).output().expect("the binary runs")
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = antinoise(folder, &[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("stdout is one JSON object")
}

fn refused(folder: &Path, arguments: &[&str], named: &str) {
    let output = antinoise(folder, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert!(stderr.contains(named), "{named:?} is not in {stderr}");
}

const EVENTS: [&str; 9] =
    ["--events", "events.csv", "--time", "day", "--user", "user", "--key", "shop", "--unknown=leave"];
const VALUE: [&str; 2] = ["--value", "value"];

fn init(folder: &Path, dir: &str) {
    init_with(folder, dir, &[]);
}

/// Everything that a query remembers or computes from the noisy cells.
const ALL_QUERIES: [&str; 8] = [
    "--query",
    "counts",
    "--query",
    "window:2",
    "--query",
    "cdf:10,20,30",
    "--query",
    "quantiles:0.5@10,20,30",
];

fn init_with(folder: &Path, dir: &str, queries: &[&str]) {
    let rows = |i: usize| {
        let (user, shop, value) = (i * 7 % 23, ["a", "b", "c", "?"][i % 4], i % 50);
        format!("{},u{user},{shop},{value},{}\n", i % 6, i * 13 % 31)
    };
    let rows: String = (0..600).map(rows).collect();
    std::fs::write(folder.join("events.csv"), format!("day,user,shop,value,weight\n{rows}")).unwrap();
    let options =
        ["--periods", "6", "--epsilon", "2", "--delta", "1e-6", "--unit", "user", "--max-periods", "3"];
    let init = ["release", "init", dir, "--keys", "a,b,c", "--max-rows", "2"];
    json(folder, &[&init[..], &options, queries].concat());
}

fn freeze(folder: &Path, dir: &str, period: &str) -> Value {
    json(folder, &[&["release", "freeze", dir, period][..], &EVENTS, &VALUE].concat())
}

#[test]
fn what_is_published_is_in_json_in_sql_and_on_a_page() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    init(folder, "shops");
    let mut figures = Vec::new();
    for period in ["0", "1", "2"] {
        let frozen = freeze(folder, "shops", period);
        assert_eq!(frozen["frozen"][0]["period"], period.parse::<i64>().unwrap());
        let published = json(folder, &["release", "publish", "shops"]);
        figures.extend(published["published"].as_array().unwrap().clone());
    }
    // Three keys, and two queries of users.
    assert_eq!(figures.len(), 15);
    assert_eq!(figures.iter().filter(|row| row["key"] == "").count(), 6);
    for row in &figures {
        assert!(row["value"].is_i64() && row["lower"].as_i64() <= row["value"].as_i64(), "{row}");
    }
    let sql = "SELECT period, key, value, lower, upper, query, bucket FROM published";
    assert_eq!(json(folder, &["release", "query", "shops", sql])["rows"].as_array().unwrap(), &figures);
    let direct = rusqlite::Connection::open(folder.join("shops/release.db")).unwrap();
    let count = |sql: &str| -> i64 { direct.query_row(sql, [], |row| row.get(0)).unwrap() };
    assert_eq!(count("SELECT COUNT(*) FROM published"), 15);
    assert_eq!(count("SELECT COUNT(*) FROM periods WHERE frozen IS NOT NULL"), 0);
    let status = json(folder, &["release", "status", "shops"]);
    assert_eq!((status["frozen"].as_u64(), status["published"].as_u64()), (Some(3), Some(3)));
    assert!(status["epsilon"].as_f64().unwrap() <= 2.0);
    json(folder, &["release", "report", "shops", "--out", "page.html", "--plot", "curves.svg"]);
    for own in antinoise_release::FILES.map(|name| format!("shops/{name}")) {
        let before = std::fs::read(folder.join(&own)).unwrap();
        let refused = antinoise(folder, &["release", "report", "shops", "--out", &own, "--force"]);
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(error.contains("other than the release's own"), "{error}");
        assert_eq!(std::fs::read(folder.join(&own)).unwrap(), before);
    }
    let page = std::fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(
        page.contains("<svg") && page.contains("differential privacy of one user") && !page.contains("src=")
    );
    assert!(std::fs::read_to_string(folder.join("curves.svg")).unwrap().starts_with("<svg"));
    #[cfg(unix)]
    for file in ["secret", "release.db"] {
        use std::os::unix::fs::PermissionsExt;
        let found = std::fs::metadata(folder.join("shops").join(file)).unwrap();
        assert_eq!(found.permissions().mode() & 0o777, 0o600, "{file}");
    }
}

#[test]
fn figures_of_values_are_named_by_quantile_and_edge() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    init(folder, "shops");
    let base =
        "release init values --keys a,b,c --periods 6 --epsilon 2 --delta 1e-6 --unit user --max-periods 3";
    let queries = ["mean:0,50", "cdf:10,20,30", "quantiles:0.5,0.9@10,20,30", "range:10,30@10,20,30"];
    let queries: Vec<&str> = queries.iter().flat_map(|query| ["--query", *query]).collect();
    let status = json(folder, &[&base.split(' ').collect::<Vec<_>>()[..], &queries].concat());
    assert_eq!(status["queries"][0]["deviation_of"], "the mean times the number of rows");
    assert!(status["queries"][3]["deviation_of"].is_null());
    json(folder, &[&["release", "freeze", "values", "0", "--value", "value"][..], &EVENTS].concat());
    let figures = json(folder, &["release", "publish", "values"])["published"].as_array().unwrap().clone();
    let of_a = figures.iter().filter(|row| row["key"] == "a");
    let names: Vec<&str> = of_a.map(|row| row["bucket"].as_str().unwrap()).collect();
    let shares = ["share below 10", "share below 20", "share below 30"];
    let wanted = [&["", "below 10", "below 20", "below 30"][..], &shares, &["0.5", "0.9", ""]].concat();
    assert_eq!(names, wanted);
    for row in &figures {
        let is_whole = row["query"].as_str().unwrap().starts_with("range")
            || row["key"] == ""
            || row["bucket"].as_str().unwrap().starts_with("below");
        assert_eq!(row["value"].is_i64(), is_whole, "{row}");
        let [lower, value, upper] = ["lower", "value", "upper"].map(|name| row[name].as_f64().unwrap());
        assert!(lower <= value && value <= upper, "{row}");
    }
    json(folder, &["release", "report", "values", "--out", "page.html", "--plot", "curves.svg"]);
    let figure = std::fs::read_to_string(folder.join("curves.svg")).unwrap();
    let page = std::fs::read_to_string(folder.join("page.html")).unwrap();
    for part in [
        "intervals, of the rows counted: at most 1 per user and period, 3 periods per user.",
        "intervals, of all users who were counted in 3 periods since the first: their later rows are in no figure.",
        "all keys",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for title in [
        "users at their bound, since the first period",
        "mean of clipped values",
        "share of events with a value below",
        "value of the quantile",
    ] {
        assert!(figure.contains(title), "{title}");
    }
    let again = "release init other --keys a --periods 6 --epsilon 2 --delta 1e-6 --unit event --query";
    for query in ["mean:3", "cdf:2,1", "quantiles:1@0,1", "quantiles:0.5@1", "range:0,2@0,1"] {
        refused(folder, &[&again.split(' ').collect::<Vec<_>>()[..], &[query]].concat(), "--query");
    }
    refused(folder, &[&["release", "freeze", "values", "1"][..], &EVENTS].concat(), "--value is absent");
}

/// The bound of users is never guessed, not even where users are the default unit. Marginals need no column
/// of keys; their tables are named and add up, in JSON, in the status and on the page.
#[test]
fn marginals_are_read_by_their_columns_and_add_up() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    let query = "marginals:city=Rome|Oslo|other;age@18,65;ways=1,2";
    let mut init: Vec<&str> =
        "release init tables --keys all --periods 3 --epsilon 4 --delta 1e-6 --unit user --max-periods 2"
            .split(' ')
            .collect();
    init.extend(["--query", query]);
    let begun = json(folder, &init);
    let tables: Vec<&str> = begun["queries"][0]["tables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|table| table["columns"].as_str().unwrap())
        .collect();
    assert_eq!(tables, ["city", "age", "city,age"]);
    let rows = "time,user,city,age\n1,ada,Rome,36\n1,grace,Oslo,17\n1,alan,other,80\n";
    std::fs::write(folder.join("day.csv"), rows).unwrap();
    let freeze = "release freeze tables 1 --events day.csv --time time --user user";
    let frozen = json(folder, &freeze.split(' ').collect::<Vec<_>>());
    assert_eq!(frozen["frozen"][0]["counted"], 3);
    let published = json(folder, &["release", "publish", "tables"]);
    let value = |bucket: &str| -> f64 {
        let rows = published["published"].as_array().unwrap();
        rows.iter().find(|row| row["bucket"] == bucket).unwrap()["value"].as_f64().unwrap()
    };
    let ages = ["age below 18", "age 18 to 65", "age 65 or above"];
    let sum: f64 = ages.iter().map(|age| value(&format!("city=Oslo;{age}"))).sum();
    assert!((sum - value("city=Oslo")).abs() < 1e-9, "{sum}");
    let sql = "SELECT bucket FROM published WHERE query = 'marginals:city,age'";
    assert_eq!(
        json(folder, &["release", "query", "tables", sql])["rows"].as_array().unwrap().len(),
        3 + 3 + 9
    );
    json(folder, &["release", "report", "tables", "--out", "page.html", "--plot", "curves.svg"]);
    let page = std::fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(page.contains("marginals:city,age") && page.contains("city=Rome;age 18 to 65"));
    let printed = String::from_utf8(antinoise(folder, &["release", "status", "tables"]).stdout).unwrap();
    assert!(printed.contains("city,age: "), "{printed}");
    std::fs::write(folder.join("bad.csv"), "time,user,city,age\n2,ada,Paris,36\n").unwrap();
    let bad = "release freeze tables 2 --events bad.csv --time time --user user";
    refused(folder, &bad.split(' ').collect::<Vec<_>>(), "city of an event (line 2)");
}

#[test]
fn rows_outside_the_classes_of_marginals_are_named_as_left_out() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    let init = "release init shops --keys a --periods 6 --epsilon 2 --delta 1e-6 --unit event --query marginals:c=x|y;ways=1 --query counts";
    let status = json(folder, &init.split(' ').collect::<Vec<_>>());
    for query in status["queries"].as_array().unwrap() {
        assert_eq!(query["of_all"], false);
        assert!(
            query["intervals"].as_str().unwrap().ends_with("in no class of the marginals are in no figure")
        );
    }
    let plain = "release init plain --keys a --periods 6 --epsilon 2 --delta 1e-6 --unit event";
    json(folder, &plain.split(' ').collect::<Vec<_>>());
    std::fs::write(folder.join("events.csv"), "time,shop\n1,a\n1,b\n").unwrap();
    let without_key = "release freeze plain 1 --events events.csv --time time";
    refused(
        folder,
        &without_key.split(' ').collect::<Vec<_>>(),
        "must be given, unless the release has marginals",
    );
    for (query, named) in [
        ("marginals:all=x|y;ways=1", "column of the marginals"),
        ("marginals:a,b=x|y;ways=1", "column of the marginals"),
        ("marginals:c=x|X;ways=1", "categories of c"),
        ("marginals:c=x | y;ways=1", "categories of c"),
    ] {
        let init =
            ["release", "init", "bad", "--keys", "a", "--periods", "6", "--epsilon", "2", "--delta", "1e-6"];
        refused(folder, &[&init[..], &["--unit", "event", "--query", query]].concat(), named);
    }
}

#[test]
fn the_periods_of_a_user_must_be_given() {
    let root = tempfile::tempdir().unwrap();
    let init = "release init shops --keys a --periods 6 --epsilon 2 --delta 1e-6";
    let init: Vec<&str> = init.split(' ').collect();
    refused(root.path(), &init, "--max-periods is absent but must be given where users are protected");
    let status = json(root.path(), &[&init[..], &["--unit", "event"]].concat());
    assert_eq!(status["intervals"], "of all rows that had arrived when their period was frozen");
    assert_eq!(status["queries"].as_array().unwrap().len(), 1);
    assert_eq!(status["queries"][0]["of_all"], true);
}

/// A public guess is answered by bounds, of which one has the smallest error; nothing is made.
#[test]
fn bounds_are_advised_from_a_guess() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    let base =
        "release init shops --keys a,b --periods 20 --epsilon 2 --delta 1e-6 --users 500 --periods-per-user";
    let advised =
        |options: &[&str]| json(folder, &[&base.split(' ').collect::<Vec<_>>()[..], options].concat());
    let advice = advised(&["3,8"]);
    let bounds = advice["bounds"].as_array().unwrap();
    let number = |at: usize, name: &str| bounds[at][name].as_f64().unwrap();
    for at in 1..bounds.len() {
        assert!(number(at - 1, "left_out") > number(at, "left_out"));
        assert!(number(at - 1, "noise") < number(at, "noise"));
        let error = number(at, "bias").hypot(number(at, "noise"));
        assert!((number(at, "error") - error).abs() < 1e-9 * error);
    }
    let least = bounds.iter().min_by(|x, y| x["error"].as_f64().partial_cmp(&y["error"].as_f64()).unwrap());
    assert_eq!(least.unwrap()["max_periods"], advice["advised_max_periods"]);
    assert_eq!(advised(&["3,8", "--rows-per-user", "2,4", "--max-rows", "3"])["bounds"][0]["max_rows"], 3);
    assert!(!folder.join("shops").exists());
    let refused_with = |options: &[&str], named: &str| {
        refused(folder, &[&base.split(' ').collect::<Vec<_>>()[..], options].concat(), named);
    };
    refused_with(&["8,3"], "--periods-per-user is 8,3 but must be MEDIAN,HEAVY");
    refused_with(&["8"], "--periods-per-user is 1 numbers but must be two");
    refused_with(&["3,8", "--max-periods", "4"], "--max-periods");
    refused_with(&["3,8", "--unit", "event"], "events have no bounds");
}

/// How much the bounds leave out is published, unless it is not wanted.
#[test]
fn users_at_their_bounds_are_published() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    init(folder, "shops");
    freeze(folder, "shops", "0");
    let published = json(folder, &["release", "publish", "shops"]);
    let about = published["intervals_of_users"]["users-at-bound"].as_str().unwrap();
    assert!(about.starts_with("of all users who were counted in 3 periods"), "{about}");
    let queries = |options: &[&str]| -> Vec<String> {
        let base = "release init other --keys a --periods 6 --epsilon 2 --delta 1e-6 --max-periods";
        let status = json(folder, &[&base.split(' ').collect::<Vec<_>>()[..], options].concat());
        std::fs::remove_dir_all(folder.join("other")).unwrap();
        let queries = status["queries"].as_array().unwrap().iter();
        queries.map(|query| query["query"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(queries(&["3"]), ["counts", "users-over-rows", "users-at-bound"]);
    assert_eq!(queries(&["6"]), ["counts", "users-over-rows"]);
    assert_eq!(queries(&["3", "--no-left-out"]), ["counts"]);
    let given = ["3", "--query", "users-at-bound", "--query", "counts", "--weights", "1,2"];
    assert_eq!(queries(&given), ["users-at-bound", "counts", "users-over-rows"]);
}

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
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let warning = told["frozen"][0]["warning"].as_str().unwrap();
    assert!(
        warning.starts_with("1 user has a name that differs") && warning.contains("\"Ada \" and \"ada\""),
        "{warning}"
    );
    assert!(String::from_utf8_lossy(&output.stderr).contains(&format!("warning: {warning}")));
    assert_eq!(
        (&told["frozen"][0]["counted"], &told["frozen"][0]["beyond_max_rows"]),
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

#[test]
fn bad_input_is_refused_by_name() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    init(folder, "shops");
    let again =
        ["release", "init", "shops", "--keys", "a", "--periods", "6", "--epsilon", "2", "--delta", "1e-6"];
    refused(folder, &[&again[..], &["--unit", "event"]].concat(), "holds a release");
    refused(folder, &[&again[..], &["--unit", "user"]].concat(), "--max-periods");
    refused(folder, &[&again[..], &["--unit", "event", "--query", "sum:3"]].concat(), "--query");
    refused(folder, &[&again[..], &["--unit", "event", "--weights", "1,2"]].concat(), "--weights is 2");
    refused(folder, &["release", "publish", "nowhere"], "absent");
    let freeze =
        ["release", "freeze", "shops", "1", "--events", "events.csv", "--time", "day", "--key", "shop"];
    refused(folder, &freeze, "--user is absent");
    refused(
        folder,
        &[&freeze[..], &["--user", "user"]].concat(),
        "one of the release's keys, unless rows of unknown keys are left out (--unknown leave)",
    );
    refused(folder, &[&freeze[..], &["--user", "name"]].concat(), "column \"name\" is absent");
    refused(folder, &["release", "query", "shops", "DELETE FROM published"], "sql is");
    assert_eq!(json(folder, &["release", "status", "shops"])["frozen"], 0);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Runs a command and kills it after so long; whether it had not ended before.
#[cfg(unix)]
fn killed(folder: &Path, arguments: &[&str], after: Duration) -> bool {
    let mut child = Command::new(env!("CARGO_BIN_EXE_antinoise"))
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(after);
    let is_alive = child.try_wait().unwrap().is_none();
    let _ = child.kill();
    child.wait().unwrap();
    is_alive
}

/// `kill -9` at moments spread over freezing and publishing: whatever was done, the same figures are
/// published bit for bit, every user is within the bounds, and no period is published twice.
#[cfg(unix)]
#[test]
fn a_killed_release_publishes_the_same_bits() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    init_with(folder, "whole", &ALL_QUERIES);
    // A copy from before anything was frozen, with the same key: what it publishes may not differ. It is
    // adopted.
    copy(&folder.join("whole"), &folder.join("killed"));
    json(folder, &["release", "adopt", "killed"]);
    let mut took = Duration::MAX;
    for period in ["0", "1", "2", "3", "4", "5"] {
        let begun = Instant::now();
        freeze(folder, "whole", period);
        json(folder, &["release", "publish", "whole"]);
        took = took.min(begun.elapsed() / 2);
    }
    let all = |dir: &str| json(folder, &["release", "query", dir, "SELECT * FROM published"])["rows"].clone();
    let wanted = all("whole");
    let (mut random, mut kills, mut periods) = (1u64, 0, ["0", "1", "2", "3", "4", "5"].iter());
    for period in &mut periods {
        for _ in 0..KILLS / 6 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Moments from the first to a fifth beyond what a command takes here.
            let after = took.mul_f64(1.2 * (random >> 33) as f64 / 2f64.powi(31));
            let status = json(folder, &["release", "status", "killed"]);
            let done = status["frozen"].as_u64().unwrap() > period.parse::<u64>().unwrap();
            let arguments = match done {
                true => vec!["release", "publish", "killed"],
                false => [&["release", "freeze", "killed", period][..], &EVENTS, &VALUE].concat(),
            };
            kills += u64::from(killed(folder, &arguments, after));
        }
        if json(folder, &["release", "status", "killed"])["frozen"].as_u64().unwrap()
            <= period.parse().unwrap()
        {
            freeze(folder, "killed", period);
        }
        json(folder, &["release", "publish", "killed"]);
    }
    assert!(kills >= KILLS / 6, "{kills} of {KILLS} were killed before they ended");
    assert_eq!(all("killed"), wanted);
    let database = rusqlite::Connection::open(folder.join("killed/release.db")).unwrap();
    let number = |sql: &str| -> i64 { database.query_row(sql, [], |row| row.get(0)).unwrap() };
    // Of each period and key: a count, a window, three numbers and three shares of a cdf, and a quantile; of
    // each period: the users at their bounds.
    assert_eq!(number("SELECT COUNT(*) FROM published"), 6 * (3 * (1 + 1 + 6 + 1) + 2));
    let mut periods = std::collections::HashMap::<String, usize>::new();
    let release = antinoise_release::Release::open(&folder.join("killed")).unwrap();
    release
        .counted(|user, _, rows| {
            *periods.entry(user.into()).or_default() += 1;
            assert!(rows <= 2, "{user}");
        })
        .unwrap();
    assert!(periods.len() == 23 && periods.values().all(|periods| *periods <= 3));
}

/// Runs a command whose files may not grow beyond `blocks` blocks of 512 bytes: what writes beyond is
/// refused, as on a disk that is full.
#[cfg(unix)]
fn limited(folder: &Path, blocks: usize, arguments: &[&str]) -> Output {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let binary = env!("CARGO_BIN_EXE_antinoise");
    let arguments = [&["-c", &script, binary], arguments].concat();
    Command::new("sh").args(arguments).current_dir(folder).output().expect("there is a shell")
}

/// No room at any point of freezing and publishing: it is reported, nothing is lost, and once there is room
/// the same bits are published as by a release that never met it.
#[cfg(unix)]
#[test]
fn a_full_disk_loses_nothing() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    init_with(folder, "whole", &ALL_QUERIES);
    copy(&folder.join("whole"), &folder.join("full"));
    json(folder, &["release", "adopt", "full"]);
    let periods = ["0", "1", "2", "3", "4", "5"];
    for period in periods {
        freeze(folder, "whole", period);
        json(folder, &["release", "publish", "whole"]);
    }
    let all = |dir: &str| json(folder, &["release", "query", dir, "SELECT * FROM published"])["rows"].clone();
    let (mut failed, mut halfway) = ([0, 0], 0);
    for (done, period) in periods.into_iter().enumerate() {
        for blocks in (0..).step_by(3) {
            let status = json(folder, &["release", "status", "full"]);
            let [frozen, published] =
                ["frozen", "published"].map(|name| status[name].as_u64().unwrap() as usize);
            assert!(frozen - published <= 1 && published >= done);
            if published > done {
                break;
            }
            let is_publication = frozen > done;
            let output = match is_publication {
                true => limited(folder, blocks, &["release", "publish", "full"]),
                false => {
                    let freeze = ["release", "freeze", "full", period];
                    limited(folder, blocks, &[&freeze[..], &EVENTS, &VALUE].concat())
                }
            };
            if !output.status.success() {
                let stderr = String::from_utf8_lossy(&output.stderr);
                assert!(stderr.contains("full/"), "the file is named: {stderr}");
                failed[usize::from(is_publication)] += 1;
                let now = json(folder, &["release", "status", "full"])["published"].as_u64().unwrap();
                halfway += usize::from(now as usize > published);
            }
        }
    }
    assert!(failed.iter().all(|failed| *failed >= 12), "{failed:?}, {halfway} halfway");
    assert_eq!(all("full"), all("whole"));
    let counted = |dir: &str| {
        let mut counted = Vec::new();
        let release = antinoise_release::Release::open(&folder.join(dir)).unwrap();
        release.counted(|user, period, rows| counted.push((user.to_string(), period, rows))).unwrap();
        counted
    };
    assert_eq!(counted("full"), counted("whole"));
}

/// After the last period, the secret is gone, wherever the publication was stopped; what was published is
/// still read.
#[test]
fn the_secret_is_wiped_after_the_last_period() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    init(folder, "shops");
    let mut last_secret = Vec::new();
    for period in ["0", "1", "2", "3", "4", "5"] {
        freeze(folder, "shops", period);
        last_secret = std::fs::read(folder.join("shops/secret")).unwrap();
        let published = json(folder, &["release", "publish", "shops"]);
        assert_eq!(published["complete"], period == "5");
    }
    let secret = folder.join("shops/secret");
    assert!(!secret.exists());
    // As a process leaves it that was killed before it wiped.
    std::fs::write(&secret, &last_secret).unwrap();
    let half_written = folder.join("shops/.secret.tmp-17-0");
    std::fs::write(&half_written, last_secret).unwrap();
    let again = json(folder, &["release", "publish", "shops"]);
    assert!(
        again["complete"] == true && again["published"].as_array().unwrap().is_empty() && !secret.exists()
    );
    assert!(!half_written.exists(), "it holds the key");
    let status = json(folder, &["release", "status", "shops"]);
    assert_eq!((status["published"].as_u64(), status["complete"].as_bool()), (Some(6), Some(true)));
    let rows = json(folder, &["release", "query", "shops", "SELECT * FROM published"])["rows"].clone();
    assert_eq!(rows.as_array().unwrap().len(), 30);
    json(folder, &["release", "report", "shops", "--out", "page.html"]);
    let freeze = [&["release", "freeze", "shops", "6"][..], &EVENTS].concat();
    refused(folder, &freeze, "one of the 6 periods of the plan");
}

/// A release without an end says in which segment it is.
#[test]
fn a_release_without_an_end_tells_its_links() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    let init = [
        "release",
        "init",
        "ever",
        "--keys",
        "a,b,c",
        "--epsilon",
        "2",
        "--delta",
        "1e-6",
        "--max-periods",
        "3",
    ];
    refused(folder, &[&init[..], &["--periods", "never"]].concat(), "or open");
    let status = json(folder, &[&init[..], &["--periods", "open"]].concat());
    assert!(status["periods"].is_null());
    assert_eq!(
        (status["segment"]["number"].as_u64(), status["segment"]["last_period"].as_u64()),
        (Some(1), Some(128))
    );
    assert_eq!(status["epsilon"].as_f64(), Some(2.0));
    assert!(status["statement"].as_str().unwrap().contains("without an end"));
    let after = status["queries"][0]["after"].as_array().unwrap();
    assert!(after.windows(2).all(|pair| {
        pair[0]["standard_deviation"].as_f64().unwrap() < pair[1]["standard_deviation"].as_f64().unwrap()
    }));
    std::fs::write(folder.join("events.csv"), "day,user,shop\n1,ada,a\n").unwrap();
    freeze(folder, "ever", "1");
    let published = json(folder, &["release", "publish", "ever"]);
    assert_eq!(
        (published["published"].as_array().unwrap().len(), &published["complete"]),
        (5, &Value::Bool(false))
    );
    json(folder, &["release", "report", "ever", "--out", "page.html"]);
}
