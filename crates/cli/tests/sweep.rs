//! `antinoise train --epsilon A,B` and `--epochs A,B`: a folder for each value, resumed as one, and a page
//! over all.
#![cfg(feature = "train")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const TRAINING: &str =
    "train --model logistic --mechanism blt:2 --epochs 40 --repeats 2 --learning-rate 0.1 --seed 3 --json";

fn antinoise(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_antinoise"));
    command.args(arguments.split_whitespace());
    command
}

fn train(epsilons: &str, out: &Path) -> Command {
    let mut command = antinoise(TRAINING);
    command.args(["--epsilon", epsilons, "--out"]).arg(out);
    command
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What does not depend on the clock or the folder.
fn accuracies(found: &Value) -> Vec<Value> {
    let compared = found["epsilons"].as_array().unwrap();
    compared
        .iter()
        .flat_map(|at| at["runs"].as_array().unwrap())
        .map(|run| run["test_accuracies"].clone())
        .collect()
}

#[test]
fn several_epsilons_are_compared_and_resumed_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, killed) = (folder.path().join("whole"), folder.path().join("killed"));
    let found = json(&train("8,0.5", &whole).output().unwrap());
    let epsilons: Vec<f64> =
        found["epsilons"].as_array().unwrap().iter().map(|at| at["epsilon"].as_f64().unwrap()).collect();
    assert_eq!(epsilons, [0.5, 8.0], "in increasing order");
    // Training without noise is the same at every epsilon, so the first has it.
    let runs = |i: usize| found["epsilons"][i]["runs"].as_array().unwrap().len();
    assert_eq!((runs(0), runs(1)), (2, 1));
    let page = fs::read_to_string(found["report"].as_str().unwrap()).unwrap();
    for part in [
        "Accuracy against privacy",
        "epsilon-0.5/report.html",
        "epsilon-8/report.html",
        "Publishing models of several epsilons",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for (part, other) in [("epsilon-0.5", "8"), ("epsilon-8", "0.5")] {
        let page = fs::read_to_string(whole.join(part).join("report.html")).unwrap().replace('\n', " ");
        let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
        // What one page states is not what both sets of models tell together.
        let uncovered = format!("the models at epsilon {other}, and a choice between epsilons");
        assert!(
            page.contains("Not covered, though from the same data:") && page.contains(&uncovered),
            "{page}"
        );
    }

    let mut child = train("8,0.5", &killed).stdout(std::process::Stdio::null()).spawn().unwrap();
    while !killed.join("sweep.toml").exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let resumed = json(&antinoise("train --json --resume").arg(&killed).output().unwrap());
    assert_eq!(accuracies(&resumed), accuracies(&found));

    // As if it had been killed before its folders were listed.
    fs::remove_file(killed.join("sweep.toml")).unwrap();
    fs::remove_file(killed.join("report.html")).unwrap();
    let unlisted = train("8,0.5", &killed).output().unwrap();
    let told = String::from_utf8_lossy(&unlisted.stderr);
    assert!(
        unlisted.status.code() == Some(2) && told.contains("killed before it trained anything"),
        "{told}"
    );

    let again = train("1,2", &whole).output().unwrap();
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("--resume"));
}

#[test]
fn nothing_is_written_for_epsilons_that_cannot_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    for epsilons in ["1,1", "1,0", "2,-1", "1,", "1,nan"] {
        let refused = train(epsilons, &out).output().unwrap();
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{epsilons}: {stderr}");
        assert!(stderr.contains("epsilon") && refused.stdout.is_empty(), "{epsilons}: {stderr}");
        assert!(!out.exists(), "{epsilons}");
    }
    // Lines of metrics are of one epsilon; a refused resumption changes nothing of what was trained.
    let metrics = folder.path().join("lines.jsonl");
    let refused = |mut command: Command| {
        let refused = command.arg("--metrics").arg(&metrics).output().unwrap();
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(2) && stderr.contains("--metrics is"), "{stderr}");
    };
    refused(train("1,2", &out));
    assert!(!out.exists() && !metrics.exists());
    json(&train("1,2", &out).output().unwrap());
    let study = out.join("epsilon-1").join("run.toml");
    let before = fs::read(&study).unwrap();
    let mut resumed = antinoise("train --json --published-models 2 --resume");
    resumed.arg(&out);
    refused(resumed);
    assert_eq!(fs::read(&study).unwrap(), before);
}

#[test]
fn several_numbers_of_epochs_are_compared_and_the_best_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    let training = "train --model logistic --mechanism blt:2 --repeats 2 --seed 3 --epochs 4,1,2";
    let printed = antinoise(training).arg("--out").arg(&whole).output().unwrap();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let text = String::from_utf8(printed.stdout).unwrap();
    let found = json(&antinoise("train --json --resume").arg(&whole).output().unwrap());
    let rows: Vec<(u64, f64, f64)> = found["epochs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|at| {
            // Training without noise depends on the number of epochs, so each has it.
            let [private, reference] = &at["runs"].as_array().unwrap()[..] else { panic!("{at}") };
            assert!(private["epsilon"].is_f64() && reference["epsilon"].is_null());
            let number = |key: &str| private[key].as_f64().unwrap();
            (at["epochs"].as_u64().unwrap(), number("test_accuracy"), number("learning_rate"))
        })
        .collect();
    assert!(rows.iter().map(|row| row.0).eq([1, 2, 4]), "in increasing order: {rows:?}");
    let best = rows.iter().max_by(|x, y| x.1.total_cmp(&y.1)).unwrap();
    let named = format!("Most accurate: blt:2+bins with {} epochs at learning rate {}", best.0, best.2);
    assert!(text.contains(&named) && text.contains("chosen on public data cost"), "{named}: {text}");
    assert_eq!(text.contains("largest number of epochs that was tried"), best.0 == 4, "{text}");
    let page = fs::read_to_string(whole.join("report.html")).unwrap();
    for part in ["Accuracy against the length of training", "epochs-1/report.html", ">2 epochs</a>"] {
        assert!(page.contains(part), "{part}");
    }
    let statement = fs::read_to_string(whole.join("epochs-2/model/statement.txt")).unwrap();
    let statement = statement.split_whitespace().collect::<Vec<_>>().join(" ");
    let uncovered = "the models of 1 epoch, 4 epochs, and a choice between epochs";
    assert!(statement.contains(uncovered), "{statement}");
    // The model of a length is that of a study with this length alone.
    let alone = folder.path().join("alone");
    let single = training.replace("4,1,2", "2") + " --json";
    let single = json(&antinoise(&single).arg("--out").arg(&alone).output().unwrap());
    assert_eq!(single["runs"][0]["test_accuracies"], found["epochs"][1]["runs"][0]["test_accuracies"]);
}

#[test]
fn lengths_that_cannot_be_used_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    for (lengths, must_say) in [
        ("--epochs 2,2", "epochs is 2 but must be given once"),
        ("--epochs 2,0", "epochs"),
        ("--epochs 1,", "epochs"),
        ("--epochs 1,2 --steps 3", "--steps"),
        ("--steps 3,4,3", "steps is 3 but must be given once"),
        ("--epochs 1,2 --epsilon 1,2", "epsilon is several but must be a single one"),
        ("--epochs 1,2 --metrics lines.jsonl", "--metrics is"),
    ] {
        let training = format!("train --model logistic --mechanism blt:2 --repeats 1 {lengths}");
        let refused = antinoise(&training).arg("--out").arg(&out).output().unwrap();
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && stderr.contains(must_say), "{lengths}: {stderr}");
        assert!(!out.exists(), "{lengths}");
    }
    let table = folder.path().join("rows.csv");
    fs::write(&table, "x,y\n".to_owned() + &"1,a\n2,b\n".repeat(50)).unwrap();
    let of_one = "train --label y=a,b --range x=0:3 --batch-size 10 --epochs 1,2 --data";
    let mut refused = antinoise(of_one);
    let refused = refused.arg(format!("csv:{}", table.display())).arg("--out").arg(&out).output().unwrap();
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(stderr.contains("epochs is 1,2") && stderr.contains("--compare"), "{stderr}");
}

fn copied(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let place = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copied(&entry.path(), &place);
        } else {
            fs::copy(entry.path(), place).unwrap();
        }
    }
}

/// What is said of a sweep: its warnings, its unit, and epsilons of several models.
#[test]
fn the_results_of_several_lengths_have_the_warnings_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    let training = "train --model logistic --mechanism identity --mechanism blt:2 --repeats 2 --seed 3 \
                    --learning-rate 0.1 --epochs 1,2 --published-models 2 --out";
    let printed = antinoise(training).arg(&whole).output().unwrap();
    let text = String::from_utf8(printed.stdout).unwrap();
    for part in [
        "The noise came from a seed",
        "\"no noise\" is not private: only for readers",
        "Epsilon is that of one example; for a person",
        "Epsilon is that of up to 2 models of one mechanism and one number of epochs together",
    ] {
        assert!(
            text.matches(part).count() == if part.starts_with("Epsilon is that of one") { 2 } else { 1 },
            "{part}: {text}"
        );
    }
    let page = fs::read_to_string(whole.join("report.html")).unwrap();
    assert!(page.contains("not private</td>") && page.contains("of one example"), "{page}");
    let found = json(&antinoise("train --json --resume").arg(&whole).output().unwrap());
    let epsilons = found["epochs"].as_array().unwrap().iter().flat_map(|at| at["runs"].as_array().unwrap());
    let mut epsilons: Vec<f64> = epsilons.filter_map(|run| run["epsilon"].as_f64()).collect();
    epsilons.sort_by(f64::total_cmp);
    let (least, most) = (epsilons[0], epsilons[epsilons.len() - 1]);
    let between = page.split("&epsilon; from ").nth(1).unwrap();
    let ends: Vec<f64> =
        between.split(',').next().unwrap().split(" to ").map(|x| x.parse().unwrap()).collect();
    assert!(
        least < most && (ends[0] - least).abs() < 0.01 && (ends[1] - most).abs() < 0.01,
        "{ends:?} {epsilons:?}"
    );
}

#[test]
fn a_folder_is_resumed_only_as_what_it_was_begun_as() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let training = "train --model logistic --mechanism blt:2 --repeats 1 --seed 3 --learning-rate 0.1";
    let sweep = |lengths: &str, out: &Path| {
        antinoise(&format!("{training} --epochs {lengths} --out")).arg(out).output().unwrap()
    };
    let refused = |output: Output, words: &str| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(words), "{words}: {said}");
    };
    let resume =
        |out: &Path, more: &str| antinoise(&format!("train {more} --resume")).arg(out).output().unwrap();
    let whole = path("whole");
    assert!(sweep("1,2", &whole).status.success());

    // The study of another length in the place of one.
    let copy = path("copy");
    copied(&whole, &copy);
    fs::remove_dir_all(copy.join("epochs-2")).unwrap();
    copied(&copy.join("epochs-1"), &copy.join("epochs-2"));
    refused(resume(&copy, ""), "the folder of 2 epochs of this comparison");
    for points in
        ["[{ epochs = 1 }]", "[{ epochs = 2 }, { epochs = 1 }]", "[{ epochs = 1 }, { epochs = 3 }]", "[]"]
    {
        fs::write(whole.join("sweep.toml"), format!("points = {points}\n")).unwrap();
        assert_eq!(resume(&whole, "").status.code(), Some(2), "{points}");
    }
    fs::copy(copy.join("sweep.toml"), whole.join("sweep.toml")).unwrap();

    // Nothing is changed where one of the studies is not there.
    let study = |out: &Path| fs::read(out.join("epochs-1/run.toml")).unwrap();
    let before = study(&whole);
    let aside = path("aside");
    fs::rename(whole.join("epochs-2/run.toml"), &aside).unwrap();
    refused(resume(&whole, "--published-models all"), "the folder of a run");
    assert_eq!(study(&whole), before);
    fs::rename(&aside, whole.join("epochs-2/run.toml")).unwrap();
    assert!(resume(&whole, "--published-models all").status.success());
    assert!(study(&whole) != before);

    // A run of one length, killed before its report, is no place for a sweep.
    let single = path("single");
    assert!(sweep("1", &single).status.success());
    fs::remove_file(single.join("report.html")).unwrap();
    refused(sweep("1,2", &single), "--resume");
    assert!(!single.join("sweep.toml").exists());
}
