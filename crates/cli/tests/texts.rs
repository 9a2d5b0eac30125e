//! `antinoise train --characters`: what is printed, written and refused, and what the other commands make of
//! it.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const TRAIN: [&str; 17] = [
    "train",
    "--user",
    "speaker",
    "--characters",
    "line",
    "--mechanism",
    "blt:2",
    "--batch-size",
    "4",
    "--steps",
    "8",
    "--epsilon",
    "8",
    "--delta",
    "1e-3",
    "--hidden",
    "6",
];
const ROUNDS: [&str; 4] = ["--setting", "federated", "--min-sep", "2"];
const RATE: [&str; 2] = ["--learning-rate", "0.5"];

fn antinoise(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_antinoise")).args(arguments).current_dir(folder).output().unwrap()
}

fn printed(folder: &Path, arguments: &[&str]) -> Value {
    let output = antinoise(folder, &[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn data() -> String {
    format!("csv:{}", Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/speeches.csv").display())
}

#[test]
fn characters_are_trained_on_and_evaluated() {
    let (folder, data) = (tempfile::tempdir().unwrap(), data());
    let folder = folder.path();
    let of = ["--data", &data, "--test-seed", "3", "--out", "run"];
    let trained = printed(folder, &[&TRAIN[..], &ROUNDS, &RATE, &of].concat());
    let run = &trained["runs"][0];
    assert_eq!((&run["epsilon"], &run["unit"]), (&8.0.into(), &"user".into()), "{run}");

    let found = printed(folder, &["evaluate", "run/model", "--data", &data]);
    assert_eq!((&found["users"], &found["characters"]), (&24.into(), &4160.into()), "{found}");
    let (accuracy, loss) = (found["accuracy"].as_f64().unwrap(), found["loss"].as_f64().unwrap());
    assert!((0.0..1.0).contains(&accuracy) && loss > 0.0);
    let again = antinoise(folder, &["train", "--resume", "run"]);
    assert!(again.status.success());
    let text = String::from_utf8(again.stdout).unwrap();
    assert!(text.contains("lstm on speeches.csv") && text.contains("the most frequent character"), "{text}");
    assert!(antinoise(folder, &["verify", "run/model/plan.toml"]).status.success());

    for (arguments, words) in [
        (&["predict", "run/model", "--data", &data][..], "that of a model of classes"),
        (&["evaluate", "run/model", "--data", "digits"], "the model is one of texts in a table"),
        (
            &["train", "--resume", "run", "--user", "speaker", "--characters", "line"],
            "left out with --resume",
        ),
    ] {
        let output = antinoise(folder, arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(words), "{arguments:?}: {said}");
    }
}

#[test]
fn options_that_characters_do_not_have_are_refused() {
    let (folder, data) = (tempfile::tempdir().unwrap(), data());
    let of = ["--data", &data[..], "--out", "run"];
    let cases: [(&[&str], &[&str], &str); 10] = [
        (&ROUNDS, &[], "--learning-rate is absent"),
        (&[], &RATE, "--setting is cyclic or poisson but must be federated"),
        (&[&ROUNDS[..], &RATE].concat(), &["--label", "line=a,b"], "--label is given"),
        (&[&ROUNDS[..], &RATE].concat(), &["--text", "line=64"], "--text is given"),
        (&[&ROUNDS[..], &RATE].concat(), &["--test-rows", "last"], "--test-rows is given"),
        (&[&ROUNDS[..], &RATE].concat(), &["--audit", "4"], "--audit is given"),
        (&[&ROUNDS[..], &RATE].concat(), &["--without-noise"], "--without-noise is given"),
        (&[&ROUNDS[..], &RATE].concat(), &["--model", "mlp"], "--model is given"),
        (&[&ROUNDS[..], &RATE].concat(), &["--sequence-length", "0"], "--sequence-length is 0"),
        (&[&ROUNDS[..], &RATE].concat(), &["--max-characters", "0"], "--max-characters is 0"),
    ];
    for (one, two, words) in cases {
        let output = antinoise(folder.path(), &[&TRAIN[..], one, two, &of].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(words), "{words}: {said}");
        assert!(!folder.path().join("run").exists());
    }
    // Without --user, and for data that are no table.
    for (arguments, words) in [
        (&["train", "--data", &data, "--characters", "line"][..], "--user is absent"),
        (&["train", "--user", "folder", "--characters", "line", "--data", "digits"], "--characters is given"),
        (&["train", "--data", &data, "--user", "speaker", "--hidden", "4"], "--hidden is given"),
    ] {
        let output = antinoise(folder.path(), arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(words), "{arguments:?}: {said}");
    }
}
