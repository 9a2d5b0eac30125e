//! What a release publishes, in JSON, in SQL and on its page.

use serde_json::Value;

use super::{ALL_QUERIES, EVENTS, antinoise, freeze, init, init_with, json, refused};

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

/// The last of many periods is printed, and where the others are.
#[test]
fn of_many_periods_the_last_is_printed() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    init_with(folder, "shops", &ALL_QUERIES);
    for period in ["0", "1", "2", "3", "4"] {
        freeze(folder, "shops", period);
    }
    let printed = antinoise(folder, &["release", "publish", "shops"]);
    let text = String::from_utf8(printed.stdout).unwrap();
    let (rows, rest) = text.split_once(" rows of earlier periods are in the table published").unwrap();
    let (rows, left) = rows.rsplit_once('\n').unwrap();
    assert!(
        rows.lines().skip(2).all(|row| row.starts_with("4 ")) && rest.contains("95% intervals"),
        "{text}"
    );
    let all = json(folder, &["release", "query", "shops", "SELECT * FROM published"])["rows"].clone();
    let count = rows.lines().count() - 2 + left.parse::<usize>().unwrap();
    assert_eq!(all.as_array().unwrap().len(), count, "{text}");
    freeze(folder, "shops", "5");
    let printed = antinoise(folder, &["release", "publish", "shops"]);
    assert!(!String::from_utf8(printed.stdout).unwrap().contains("rows of earlier periods"));
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
