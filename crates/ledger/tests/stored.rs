//! A ledger of five finished steps in `data`, which shows that the format stays; and refusals of other files.

mod common;

use antinoise_input::BadInput;
use antinoise_ledger::{Ledger, NoisySum};
use antinoise_plan::Plan;
use common::{data, private, stored};
use rusqlite::Connection;

const EVERYBODY: [&str; 7] = ["ada", "barbara", "edsger", "grace", "kathleen", "\u{e9}mile", "new"];

/// The contents of a ledger, in the form of `ledger.json`.
fn contents(ledger: &Ledger) -> String {
    let all: Vec<String> =
        ledger.participations().unwrap().iter().map(|(user, step)| format!("[\"{user}\", {step}]")).collect();
    let NoisySum { step, base, noisy_sum } = ledger.last_noisy_sum().unwrap().unwrap();
    let eligible: Vec<String> = ledger.eligible(EVERYBODY).iter().map(|user| format!("\"{user}\"")).collect();
    format!(
        "{{\"participations\": [{}], \"step\": {}, \"last\": [{step}, \"{base}\", {:?}], \"eligible\": [{}]}}\n",
        all.join(", "),
        ledger.step(),
        noisy_sum.unwrap(),
        eligible.join(", ")
    )
}

#[test]
fn a_stored_ledger_is_read_and_continued() {
    let (_folder, path, plan) = stored();
    let mut ledger = Ledger::open(&path, &plan, "golden").unwrap();
    assert_eq!(contents(&ledger), std::fs::read_to_string(data("ledger.json")).unwrap());
    assert_eq!(ledger.bound("layout").unwrap().as_deref(), Some("w (7,)"));
    let refused = ledger.charge(&["new", "ada"]).unwrap_err().to_string();
    assert_eq!(
        refused,
        "participants of step 5 is [\"ada\"] but must be different users who took part fewer than 2 times, last at \
         least 3 steps ago"
    );
    let charged = ledger.charge(&["new", "edsger"]).unwrap();
    let NoisySum { step, base, noisy_sum } = ledger.last_noisy_sum().unwrap().unwrap();
    ledger.record_noisy_sum(charged, "model 5", b"sum").unwrap();
    drop(ledger);
    let ledger = Ledger::open_begun(&path, &plan).unwrap();
    // Also for a sum that is no longer stored.
    assert!(ledger.has_noisy_sum(step, &base, &noisy_sum.unwrap()).unwrap());
    let recorded =
        [(5, "model 5", "sum"), (5, "model 5", "other"), (5, "model 4", "sum"), (6, "model 5", "sum")];
    let recorded =
        recorded.map(|(step, base, sum)| ledger.has_noisy_sum(step, base, sum.as_bytes()).unwrap());
    assert_eq!(recorded, [true, false, false, false]);
    assert_eq!((ledger.step(), ledger.users()), (6, 7));
    // The sum before the last is deleted.
    let database = Connection::open(&path);
    drop(ledger);
    let kept = "SELECT COUNT(*) FROM noisy_sums WHERE noisy_sum IS NOT NULL";
    let kept: i64 = database.unwrap().query_row(kept, [], |row| row.get(0)).unwrap();
    assert_eq!(kept, 1);
}

/// Barbara was charged in step 5, which has no noisy sum.
#[test]
fn only_finished_steps_are_observed() {
    let (_folder, path, plan) = stored();
    let observed = Ledger::open_begun(&path, &plan).unwrap().observed().unwrap();
    assert_eq!((observed.steps, observed.users, observed.participations), (5, 5, 7));
    assert_eq!(observed.patterns, [vec![0, 3], vec![0, 4], vec![1], vec![3]]);
}

/// The SQL of the tables is the same letter by letter, and so are application id and version.
#[test]
fn a_new_file_has_the_stored_format() {
    let (folder, path, plan) = stored();
    let new = folder.path().join("new.db");
    Ledger::open(&new, &plan, "golden").unwrap();
    let told = |path: &std::path::Path| {
        let database = Connection::open(path).unwrap();
        let number =
            |name: &str| database.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
        let numbers = ["application_id", "user_version"].map(number);
        let mut tables = database.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").unwrap();
        let tables: Vec<(String, String)> =
            tables.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
        let mut run = database.prepare("SELECT name, value FROM run WHERE name != 'layout'").unwrap();
        let run: Vec<(String, String)> =
            run.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
        (numbers, tables, run)
    };
    assert_eq!(told(&new), told(&path));
    assert_eq!(told(&new).1.len(), 4);
}

#[test]
fn other_files_plans_and_runs_are_refused() {
    let (folder, path, plan) = stored();
    let refusal = |path: &std::path::Path, run: &str| Ledger::open(path, &plan, run).unwrap_err().to_string();
    assert!(refusal(&path, "other").starts_with("run is other but must be the ledger's, golden: "));
    let other = common::plan(5);
    let refused = Ledger::open(&path, &other, "golden").unwrap_err();
    assert!(refused.is_bad_input() && refused.to_string().starts_with("plan is "), "{refused}");
    assert!(Ledger::open_begun(&path, &other).unwrap_err().to_string().contains("is of another run"));
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("text"), "not a database, and long enough for one to be looked for ".repeat(40))
        .unwrap();
    Connection::open(at("database")).unwrap().execute("CREATE TABLE t (x)", []).unwrap();
    for (name, message) in [
        ("text", "is another file but must be a ledger"),
        ("database", "is another database, or one that was never initialised but must be a ledger"),
    ] {
        private(&at(name));
        let found = refusal(&at(name), "golden");
        assert!(found.contains(message), "{found}");
    }
    let held = Ledger::open(&path, &plan, "golden").unwrap();
    let found = refusal(&path, "golden");
    assert!(
        found.contains("is in use by another process but must be free: one process at a time"),
        "{found}"
    );
    drop(held);
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 1).unwrap();
    let found = refusal(&path, "golden");
    assert!(found.contains("is of version 1 but must be of version 2"), "{found}");
    #[cfg(unix)]
    {
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        let found = refusal(&path, "golden");
        assert!(found.contains(" is 0644 but must be 0600, its owner's alone"), "{found}");
    }
    let cyclic = antinoise_plan::Request::new(
        40,
        4,
        antinoise_plan::Length::Epochs(2),
        antinoise_plan::Setting::Cyclic,
    );
    let cyclic = antinoise_plan::choose(&cyclic).unwrap().plan;
    let refused = Ledger::open(&at("cyclic"), &cyclic, "0").unwrap_err().to_string();
    assert!(refused.starts_with(
        "participation of the plan is cyclic:10,2 of units example but must be min-sep:B,K of users"
    ));
    assert!(!at("cyclic").exists(), "nothing is begun where the plan is refused");
}

#[test]
fn the_golden_plan_is_that_of_the_ledger() {
    let plan = Plan::load(&data("plan.toml")).unwrap();
    assert_eq!(plan.participation_limits().unwrap(), (3, 2));
}
