//! Marginals of columns of classes.

use super::{antinoise, json, refused};

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
