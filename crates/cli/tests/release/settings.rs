//! The settings of a release: what must be given, what is advised and what is refused.

use super::{init, json, refused};

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
