//! `antinoise train --audit`: the bound from canaries is reported next to the stated epsilon, once, and again
//! on resuming.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn antinoise(arguments: &str, out: &Path) -> Result<Value, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_antinoise"));
    let output = command.args(arguments.split_whitespace()).arg(out).arg("--json").output().unwrap();
    if output.status.success() {
        return Ok(serde_json::from_slice(&output.stdout).unwrap());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

const TRAINING: &str = "train --model logistic --setting poisson --mechanism blt:2 --mechanism identity --repeats 1 \
                        --learning-rate 0.1 --epochs 4 --epsilon 8 --audit 400 --out";

#[test]
fn what_an_audit_shows_is_found_once_and_told_again() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let found = antinoise(TRAINING, &out).unwrap();
    let audits: Vec<Value> =
        found["runs"].as_array().unwrap().iter().map(|run| run["audit"].clone()).collect();
    // The last run is without noise.
    let (unprotected, private) = audits.split_last().unwrap();
    assert!(unprotected.is_null() && private.len() == 2);
    for audit in private {
        assert_eq!((&audit["canaries"], &audit["alpha"]), (&400.into(), &0.05.into()));
        let [shown, stated] = ["epsilon_lower", "epsilon_stated"].map(|name| audit[name].as_f64().unwrap());
        // Keys are the system's, so that no two runs are alike, but none fails by chance: even if all of 400
        // guesses are right, no epsilon above 4.42 is shown, at which that has probability 0.05 / 6.
        assert!(stated > 4.42 && (0.0..4.42).contains(&shown), "{shown} of {stated}");
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.matches("or more (95%)").count() == 2);
    let again = antinoise("train --resume", &out).unwrap();
    for (run, audit) in again["runs"].as_array().unwrap().iter().zip(&audits) {
        assert_eq!(run["audit"], *audit);
    }
}

#[test]
fn an_audit_of_another_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (out, audits) = (folder.path().join("run"), "audits");
    let whole = folder.path().join("whole");
    antinoise(TRAINING, &whole).unwrap();
    fs::create_dir(&out).unwrap();
    fs::rename(whole.join(audits), out.join(audits)).unwrap();
    assert!(antinoise(TRAINING, &out).unwrap_err().contains("without audits"));
    fs::rename(out.join(audits), whole.join(audits)).unwrap();
    let file = fs::read_dir(whole.join(audits)).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("canaries = 400", "canaries = 300")).unwrap();
    assert!(antinoise("train --resume", &whole).unwrap_err().contains("audit in the folder"));
}
