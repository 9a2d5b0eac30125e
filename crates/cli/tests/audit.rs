//! `antinoise audit`: its object, its exit status, what it refuses.

use std::process::{Command, Output};

use serde_json::Value;

fn antinoise(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_antinoise"));
    command.args(arguments.split(' ')).output().unwrap()
}

fn object(output: &Output) -> Value {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(text.trim().lines().count(), 1, "exactly one object: {text}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_plan_is_audited() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    let plan = path.to_str().unwrap();
    let made = antinoise(&format!(
        "plan --examples 1200 --batch-size 100 --epochs 3 --epsilon 4 --delta 1e-5 --setting cyclic --out {plan}"
    ));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let audited = antinoise(&format!("audit --plan {plan} --json"));
    assert_eq!(audited.status.code(), Some(0), "{audited:?}");
    let report = object(&audited);
    for key in ["accepted", "alpha", "mu_stated", "mu_lower", "tests", "seconds"] {
        assert!(report.get(key).is_some(), "{key} in {report}");
    }
    assert_eq!(report["accepted"], true);
    let tests = report["tests"].as_array().unwrap();
    assert!(tests.len() > 10 && tests.iter().all(|test| test["rejected"] == false));
    assert!(tests.iter().all(|test| test["statistic"].as_f64() <= test["threshold"].as_f64()));
    let both = antinoise(&format!("audit --plan {plan} --strategy blt --steps 4"));
    assert_eq!(both.status.code(), Some(2));
}

/// A correct mechanism is rejected often enough at a false alarm of nearly 1.
#[test]
fn a_rejection_is_printed_and_has_status_1() {
    let rejected = (0..40).find_map(|_| {
        let output = antinoise("audit --strategy identity --steps 4 --alpha 0.9999 --json");
        (output.status.code() != Some(0)).then_some(output)
    });
    let rejected = rejected.expect("one of forty audits rejects");
    assert_eq!(rejected.status.code(), Some(1));
    let report = object(&rejected);
    assert_eq!(report["accepted"], false);
    let names: Vec<&str> = report["tests"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|test| test["rejected"] == true)
        .map(|test| test["name"].as_str().unwrap())
        .collect();
    let message = String::from_utf8(rejected.stderr).unwrap();
    assert!(message.starts_with("error: the mechanism is not what it claims to be: "), "{message}");
    assert!(!names.is_empty() && names.iter().all(|name| message.contains(name)), "{message}");
}

#[test]
fn bad_input_is_named() {
    for (arguments, parameter) in [
        ("audit --strategy blt --steps 8 --alpha 0", "alpha"),
        ("audit --strategy blt --steps 8 --alpha 1.5", "alpha"),
        ("audit --strategy blt --steps 8 --noise-multiplier -1", "--noise-multiplier"),
        ("audit --strategy blt --steps 8 --participation cyclic:9,2", "min_sep"),
        ("audit --plan nowhere.toml", "nowhere.toml"),
        ("audit --steps 8", "--strategy"),
        ("audit --strategy blt", "--steps"),
    ] {
        let output = antinoise(arguments);
        let message = String::from_utf8_lossy(&output.stderr).to_string();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {message}");
        assert!(message.contains(parameter), "{arguments}: {message}");
    }
}

/// The bound of one training is a number below the statement, or the status says that it is not.
#[test]
fn one_training_is_audited() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.toml");
    let plan = plan.to_str().unwrap();
    let made = "plan --examples 1440 --batch-size 144 --epochs 2 --epsilon 2 --delta 1e-5 --setting cyclic --quick --out";
    let run = |arguments: &str, more: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_antinoise")).args(arguments.split(' ')).args(more).output().unwrap()
    };
    assert!(run(made, &[plan]).status.success());
    for canary in ["gradient", "input"] {
        let found = run(
            "audit-training --model logistic --canaries 300 --alpha 1e-6 --json --canary",
            &[canary, "--plan", plan],
        );
        let report: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
        assert!(found.status.success() && report["holds"] == true, "{report}");
        assert!(report["epsilon_lower"].as_f64().unwrap() <= report["epsilon_stated"].as_f64().unwrap());
        assert!(report["correct"].as_u64() <= report["guesses"].as_u64() && report["canary"] == canary);
    }
    // A logistic model of digits has 650 parameters, of which each gradient needs one.
    let refused = run("audit-training --model logistic --canaries 651", &["--plan", plan]);
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && stderr.contains("canaries is 651"), "{stderr}");
}
