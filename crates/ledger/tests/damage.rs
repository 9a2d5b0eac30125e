//! Damaged files and full disks cause an error, and no change whose call returned is lost.

mod common;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use antinoise_input::BadInput;
use antinoise_input::damage::damages;
use antinoise_ledger::{Error, Ledger};
use common::{plan_of, private, stored};
use proptest::prelude::*;
use rusqlite::Connection;

/// The result of opening and reading everything; a panic is a failure.
fn looked_at(path: &Path, plan: &antinoise_plan::VerifiedPlan) -> Result<(), Error> {
    let look = || {
        let mut ledger = Ledger::open(path, plan, "golden")?;
        ledger.observed()?;
        ledger.last_noisy_sum()?;
        let charged = ledger.charge(&["somebody new"])?;
        ledger.record_noisy_sum(charged, "", &[])
    };
    catch_unwind(AssertUnwindSafe(look)).expect("no panic")
}

/// The file is cut at every length, a page at a time and around the header.
#[test]
fn a_file_that_was_cut_is_refused() {
    let (folder, path, plan) = stored();
    let whole = std::fs::read(&path).unwrap();
    let cut = folder.path().join("cut.db");
    // SQLite treats a file of a single byte like an empty file.
    let lengths = [2, 15, 16, 50, 99, 100, 511].into_iter().chain((1024..whole.len()).step_by(512));
    for length in lengths {
        std::fs::write(&cut, &whole[..length]).unwrap();
        private(&cut);
        let refused = looked_at(&cut, &plan).expect_err(&format!("cut to {length} bytes"));
        assert!(refused.is_bad_input(), "{length}: {refused:?}");
    }
    std::fs::write(&cut, b"").unwrap();
    assert!(
        Ledger::open_begun(&cut, &plan).unwrap_err().to_string().contains("is empty but must be a ledger")
    );
    assert!(Ledger::open_begun(&folder.path().join("absent"), &plan).unwrap_err().is_bad_input());
    assert!(Ledger::open(folder.path(), &plan, "0").unwrap_err().to_string().contains("but must be"));
}

/// Overwritten bytes cause an error or were never read; no panic. A ledger that still opens keeps the plan's
/// limits.
#[test]
fn a_file_that_was_overwritten_never_panics() {
    let (folder, path, plan) = stored();
    let whole = std::fs::read(&path).unwrap();
    let bad = folder.path().join("bad.db");
    let config = ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let spots = prop::collection::vec((0..whole.len(), any::<u8>()), 1..20);
    let drawn = runner.run(&(spots, any::<bool>()), |(spots, in_use)| {
        let mut bytes = whole.clone();
        // Half of them at places that are in use.
        let used: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] != 0).collect();
        spots.iter().for_each(|&(at, byte)| bytes[if in_use { used[at % used.len()] } else { at }] = byte);
        std::fs::write(&bad, &bytes).unwrap();
        private(&bad);
        let _ = std::fs::remove_file(folder.path().join("bad.db-journal"));
        looked_at(&bad, &plan).ok();
        Ok(())
    });
    drawn.unwrap();
    // The tables, the users and the numbers, one after the other.
    for what in [
        "DELETE FROM noisy_sums WHERE step = 1",
        "UPDATE noisy_sums SET step = 99 WHERE step = 4",
        "INSERT INTO participations VALUES ('ada', 5)",
        "INSERT INTO participations VALUES ('ada', 7)",
        "INSERT INTO participations VALUES ('new', 6)",
        "INSERT INTO participations VALUES ('new', -1)",
        "INSERT INTO participations VALUES ('new', 'text')",
        "INSERT INTO participations VALUES (x'ff', 5)",
        "INSERT INTO participations VALUES (CAST(x'ff' AS TEXT), 5)",
        "CREATE TRIGGER t AFTER INSERT ON participations BEGIN DELETE FROM participations; END",
        "DROP TABLE noisy_sums",
        "ALTER TABLE participations ADD COLUMN more",
    ] {
        std::fs::write(&bad, &whole).unwrap();
        private(&bad);
        Connection::open(&bad).unwrap().execute(what, []).unwrap();
        let error = looked_at(&bad, &plan).expect_err(what);
        assert!(error.is_bad_input(), "{what}: {error:?}");
    }
}

/// The content of each table is covered by digests, and altered parts are named.
#[test]
fn a_ledger_that_was_altered_is_refused_by_name() {
    let (folder, path, plan) = stored();
    let (whole, bad) = (std::fs::read(&path).unwrap(), folder.path().join("bad.db"));
    for (what, named) in [
        ("DELETE FROM participations WHERE user = 'ada' AND step = 4", "the participants of step 4"),
        ("DELETE FROM participations WHERE step = 3", "the participants of step 3"),
        ("UPDATE participations SET user = 'bob' WHERE user = 'barbara'", "the participants of step 5"),
        ("INSERT INTO participations VALUES ('new', 2)", "the participants of step 2"),
        ("DELETE FROM noisy_sums WHERE step = 4", "1 rounds are missing: it had recorded step 4"),
        (
            "DELETE FROM noisy_sums; DELETE FROM participations",
            "5 rounds are missing: it had recorded step 4",
        ),
        ("UPDATE noisy_sums SET base = 'x' WHERE step = 2", "the noisy sum of step 2"),
        ("UPDATE noisy_sums SET noisy_sum = x'00' WHERE step = 4", "the noisy sum of step 4"),
        ("UPDATE noisy_sums SET noisy_sum = x'00' WHERE step = 3", "the noisy sum of step 3"),
        ("UPDATE run SET value = 'other' WHERE name = 'layout'", "the recorded values"),
        ("DELETE FROM run WHERE name = 'layout'", "the recorded values"),
        ("DELETE FROM chain WHERE number = 3", "link 3 of its chain"),
        ("DELETE FROM chain WHERE number = (SELECT MAX(number) FROM chain)", "the participants of step 5"),
        ("UPDATE chain SET content = '0' WHERE number = 4", "link 4 of its chain"),
        ("UPDATE chain SET step = step + 1 WHERE number = 4", "link 4 of its chain"),
        ("UPDATE chain SET token = '' WHERE number = 4", "link 4 of its chain"),
    ] {
        std::fs::write(&bad, &whole).unwrap();
        private(&bad);
        Connection::open(&bad).unwrap().execute_batch(what).unwrap();
        let error = Ledger::open(&bad, &plan, "golden").expect_err(what).to_string();
        assert!(error.contains(&format!("is damaged ({named}")), "{what}: {error}");
    }
}

/// Damage is detected, or nothing that is read depends on it; raw messages of SQLite never appear.
#[test]
fn a_damaged_file_is_refused_in_words_or_nothing_changes() {
    let (folder, path, plan) = stored();
    let (whole, bad) = (std::fs::read(&path).unwrap(), folder.path().join("bad.db"));
    let figures = |path: &Path| -> Result<_, Error> {
        let ledger = Ledger::open(path, &plan, "golden")?;
        let bound = ledger.bound("layout")?;
        Ok((
            ledger.observed()?,
            ledger.participations()?,
            ledger.last_noisy_sum()?,
            ledger.charged_before()?.map(|charged| charged.1),
            bound,
        ))
    };
    let wanted = figures(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), whole);
    let other = folder.path().join("other.db");
    let mut another = Ledger::open(&other, &plan, "another").unwrap();
    for step in 0..4 {
        let charged = another.charge(&[format!("user {step}")]).unwrap();
        another.record_noisy_sum(charged, "base", &[7; 900]).unwrap();
    }
    drop(another);
    let (mut refused, mut tried) = (BTreeMap::new(), BTreeMap::new());
    for (kind, damaged) in damages(&whole, &[std::fs::read(&other).unwrap()]) {
        std::fs::write(&bad, damaged).unwrap();
        private(&bad);
        *tried.entry(kind).or_insert(0) += 1;
        match figures(&bad) {
            Ok(found) => assert_eq!(found, wanted, "{kind} {tried:?}"),
            Err(error) => {
                *refused.entry(kind).or_insert(0) += 1;
                let said = error.to_string();
                assert!(error.is_bad_input(), "{kind} {tried:?}: {error:?}");
                let raw = ["SQL", "sql", "UNIQUE", "malformed", "no such", "NULL"];
                assert!(!raw.iter().any(|word| said.contains(word)), "{kind} {tried:?}: {said}");
            }
        }
    }
    assert!(
        refused["cut"] == 50 && refused["flip in use"] > 120 && refused["swap"] > 4,
        "{refused:?} of {tried:?}"
    );
}

/// Every change is in the one file when its call returns: copies of it, even after a kill, contain all
/// rounds. A file with a write-ahead log of any program is refused without that log.
#[test]
fn a_copy_of_the_file_alone_knows_every_round() {
    let plan = plan_of(8, 3, 2, 4);
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("ledger.db"), folder.path().join("copy.db"));
    let mut ledger = Ledger::open(&path, &plan, "0").unwrap();
    for step in 0..6usize {
        let charged = ledger.charge(&[format!("user {}", step % 3)]).unwrap();
        ledger.record_noisy_sum(charged, "", b"sum").unwrap();
        std::fs::copy(&path, &copy).unwrap();
        let observed = Ledger::open_begun(&copy, &plan).unwrap().observed().unwrap();
        assert_eq!((observed.steps, observed.participations), (step + 1, step + 1));
    }
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    // The journal of the process that holds the file open only undoes unfinished changes, and contains no
    // round.
    assert!(names.iter().all(|name| !name.to_string_lossy().ends_with("-wal")), "{names:?}");
    drop(ledger);
    Connection::open(&path).unwrap().pragma_update(None, "journal_mode", "WAL").unwrap();
    let refused = Ledger::open_begun(&path, &plan).unwrap_err();
    assert!(
        refused.is_bad_input()
            && refused.to_string().contains("is in journal mode WAL but must be in journal mode DELETE"),
        "{refused}"
    );
}

/// A byte of the header marks the file as read-only: SQLite's own message, "attempt to write a readonly
/// database", names no cause.
#[test]
fn a_header_that_forbids_writing_is_refused_in_words() {
    let (_folder, path, plan) = stored();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[18] = 3;
    std::fs::write(&path, bytes).unwrap();
    let refused = looked_at(&path, &plan).unwrap_err();
    assert!(refused.is_bad_input(), "{refused:?}");
    assert!(refused.to_string().contains("is read-only but must be a writable file"), "{refused}");
}

/// SQLite runs out of pages: the change is undone, the ledger reports that it is unsure, and a ledger that is
/// opened again has all changes whose calls returned, and continues.
#[test]
fn a_full_disk_loses_nothing() {
    let plan = plan_of(400, 1, 400, 40);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let cohort = |step: usize| -> Vec<String> { (0..40).map(|user| format!("user {step} {user}")).collect() };
    // A child process with a limit on the length of files: the operating system reports the same error as for
    // a full disk.
    let output = std::process::Command::new("bash")
        .args([
            "-c",
            "ulimit -f 128; trap '' XFSZ; exec \"$0\" --exact fills --ignored --nocapture --test-threads=1",
        ])
        .arg(std::env::current_exe().unwrap())
        .env(FILLED, &path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let printed = |what: &str| -> usize {
        let line = said.lines().find_map(|line| line.strip_prefix(what)).expect(&said);
        line.trim().parse().unwrap()
    };
    let (charged, recorded) = (printed("charged "), printed("recorded "));
    assert!(charged > 5, "{said}");
    let mut ledger = Ledger::open(&path, &plan, "0").unwrap();
    // The failed change may be present or not; nothing else may be missing.
    let found = ledger.participations().unwrap().len();
    assert!(found == 40 * charged || found == 40 * (charged + 1), "{found} of {charged}");
    assert!(ledger.step() == recorded || ledger.step() == recorded + 1);
    let all = ledger.participations().unwrap();
    for step in 0..charged {
        assert!(cohort(step).iter().all(|user| all.contains(&(user.clone(), step))));
    }
    let others: Vec<String> = (0..40).map(|user| format!("later {user}")).collect();
    let proof = ledger.charge(&others).unwrap();
    ledger.record_noisy_sum(proof, "", &[]).unwrap();
}

/// The file of the child process of the previous test.
const FILLED: &str = "ANTINOISE_FILLED";

#[test]
#[ignore = "a process whose files may not grow"]
fn fills() {
    let Some(path) = std::env::var_os(FILLED) else { return };
    let plan = plan_of(400, 1, 400, 40);
    let mut ledger = Ledger::open(Path::new(&path), &plan, "0").unwrap();
    let (mut charged, mut recorded) = (0, 0);
    let error = loop {
        let users: Vec<String> = (0..40).map(|user| format!("user {} {user}", ledger.step())).collect();
        let proof = match ledger.charge(&users) {
            Ok(proof) => proof,
            Err(error) => break error,
        };
        charged += 1;
        match ledger.record_noisy_sum(proof, "", &[]) {
            Ok(()) => recorded += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Database { .. }) && !error.is_bad_input(), "{error:?}");
    assert!(matches!(ledger.charge(&["new"]), Err(Error::Unsure { .. })));
    assert!(matches!(ledger.bind("a", "b"), Err(Error::Unsure { .. })));
    println!("\ncharged {charged}\nrecorded {recorded}");
}

/// Proofs of one step do not record another.
#[test]
fn a_noisy_sum_needs_the_proof_of_its_own_step() {
    let plan = plan_of(8, 3, 2, 4);
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(&folder.path().join("ledger.db"), &plan, "0").unwrap();
    let first = ledger.charge(&["a"]).unwrap();
    let second = ledger.charge(&["b"]).unwrap();
    assert_eq!((first.step(), second.step()), (0, 0));
    ledger.record_noisy_sum(first, "", &[]).unwrap();
    let refused = ledger.record_noisy_sum(second, "", &[]).unwrap_err().to_string();
    assert_eq!(refused, "step of a noisy sum is 0 but must be 1, which comes next");
    for _ in 1..8 {
        let proof = ledger.charge::<&str>(&[]).unwrap();
        ledger.record_noisy_sum(proof, "", &[]).unwrap();
    }
    let refused = ledger.charge(&["new"]).unwrap_err().to_string();
    assert_eq!(refused, "step is 8 but must be below 8, the steps of the plan: all of them are finished");
    assert_eq!(ledger.eligible(["new"]), Vec::<&str>::new());
}
