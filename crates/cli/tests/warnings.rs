//! A delta of 1/N or more is warned of on stderr, and stdout holds what it always holds.

use std::process::Command;

use serde_json::Value;

/// The warnings of a command with `--json`, whose stdout is one object.
fn warnings(arguments: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_antinoise"))
        .args(arguments.split_whitespace())
        .arg("--json")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{arguments}: {said}");
    serde_json::from_slice::<Value>(&output.stdout).expect("one object");
    said.lines().filter(|line| line.starts_with("warning: ")).map(str::to_owned).collect()
}

#[test]
fn a_delta_of_one_over_n_or_more_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let plan = |delta: &str, out: &str| {
        format!(
            "plan --examples 1000 --batch-size 50 --epochs 2 --epsilon 4 --delta {delta} --setting cyclic --out {out}"
        )
    };
    let bands = |delta: &str| {
        format!("bands --examples 1000 --batch-size 50 --epochs 2 --epsilon 4 --bands 1 --delta {delta}")
    };
    let (small, large) = (at("small.toml"), at("large.toml"));
    #[cfg(feature = "train")]
    let train = |delta: &str, out: &str| {
        format!(
            "train --model logistic --mechanism identity --repeats 1 --learning-rate 0.1 --epochs 1 --delta {delta} --out {}",
            at(out)
        )
    };
    for (quiet, loud) in [
        (plan("9e-4", &small), plan("6e-3", &large)),
        (bands("9e-4"), bands("6e-3")),
        #[cfg(feature = "train")]
        (train("1e-5", "small"), train("0.01", "large")),
        (format!("account --plan {small}"), format!("account --plan {large}")),
        (format!("account --plan {large} --delta 9e-4"), format!("account --plan {small} --delta 1e-3")),
    ] {
        assert_eq!(warnings(&quiet), Vec::<String>::new(), "{quiet}");
        let said = warnings(&loud);
        assert!(said.len() == 1 && said[0].contains("delta x N = "), "{loud}: {said:?}");
    }
}

/// The statement in a plan's text has the warning; and JSON of any command is one line.
#[test]
fn the_text_of_a_plan_warns_once_and_a_statement_in_json_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_antinoise"));
        let output = command.args(arguments.split_whitespace()).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let plan = "plan --examples 1000 --batch-size 50 --epochs 2 --epsilon 4 --delta 1/150 --setting cyclic --quick --out plan.toml";
    let (stdout, stderr) = run(plan);
    assert_eq!((stdout + &stderr).matches("delta x N = ").count(), 1);
    let (stdout, _) = run("statement plan.toml --format json");
    assert_eq!(stdout.lines().count(), 1);
    assert!(serde_json::from_str::<Value>(&stdout).unwrap()["delta"].as_f64().unwrap() > 0.0066);
    let (stdout, _) = run("statement plan.toml");
    assert!(stdout.contains(", 6.67e-3)-differential privacy"), "{stdout}");
}
