//! Folders of training runs: killed, stopped, finished, in use, and never begun.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

const RUN: &str = "blt-2-lr0.1-0";
const TRAINING: &str =
    "train --model logistic --setting cyclic --mechanism blt:2 --repeats 1 --learning-rate 0.1 --json";

fn antinoise(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_antinoise"));
    command.args(arguments.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A run of many steps, whose noise is made from a seed.
fn train(out: &Path) -> Command {
    let mut command = antinoise(TRAINING);
    command.args(["--seed", "7", "--epochs", "120", "--out"]).arg(out);
    command
}

fn resume(out: &Path) -> Output {
    antinoise("train --json --resume").arg(out).output().unwrap()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn model(out: &Path) -> Vec<u8> {
    fs::read(out.join("models").join(format!("{RUN}.safetensors"))).unwrap()
}

fn checkpoints(out: &Path) -> PathBuf {
    out.join("checkpoints").join(RUN)
}

/// A child that has committed a checkpoint, if it is not faster than us.
fn with_a_checkpoint(out: &Path) -> Child {
    let mut child = train(out).spawn().unwrap();
    while !checkpoints(out).join("checkpoint.toml").exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

/// The folders of a run that was finished and of the same run, killed after a checkpoint.
fn whole_and_killed(folder: &Path) -> (PathBuf, PathBuf) {
    let (whole, killed) = (folder.join("whole"), folder.join("killed"));
    json(&train(&whole).output().unwrap());
    let mut child = with_a_checkpoint(&killed);
    child.kill().unwrap();
    child.wait().unwrap();
    (whole, killed)
}

/// Every file and folder below `folder`.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(below(&path));
        }
        all.push(path);
    }
    all
}

#[test]
fn a_killed_run_resumes_to_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, killed) = whole_and_killed(folder.path());
    let report = json(&resume(&killed));
    let row = &report["runs"][0];
    assert_eq!(row["steps"], 120 * 15);
    for key in "mechanism test_accuracy epsilon delta steps seconds seconds_in_noise models_trained release"
        .split(' ')
    {
        assert!(row.get(key).is_some(), "{key} in {row}");
    }
    assert_eq!(row["models_trained"], 1);
    assert_eq!(model(&whole), model(&killed));
    assert!(killed.join("report.html").is_file());
}

/// A plan with the matrix of a file is all that a training needs: the file may go.
#[test]
fn a_training_with_the_matrix_of_a_file_resumes_to_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let entry = |i: usize, j: usize| 1.0 / (1.0 + i.abs_diff(j) as f64) + f64::from(i == j); // not triangular
    let row = |i: usize| format!("{:?}", (0..300).map(|j| entry(i, j)).collect::<Vec<_>>());
    fs::write(at("c.toml"), format!("C = [{}]", (0..300).map(row).collect::<Vec<_>>().join(", "))).unwrap();
    let plan =
        "plan --examples 1440 --batch-size 96 --epochs 20 --epsilon 4 --delta 1e-5 --setting cyclic --json";
    let plan = format!("{plan} --strategy file:{} --out {}", at("c.toml"), at("plan.toml"));
    assert_eq!(json(&antinoise(&plan).output().unwrap())["candidates"][1]["is_given"], true);
    fs::remove_file(at("c.toml")).unwrap();
    let train = |out: &str| {
        let training = "train --model logistic --repeats 1 --learning-rate 0.1 --seed 7 --json --plan";
        antinoise(&format!("{training} {} --out {}", at("plan.toml"), at(out)))
    };
    let found = json(&train("whole").output().unwrap());
    assert_eq!((&found["runs"][0]["mechanism"], &found["runs"][0]["steps"]), (&"dense".into(), &300.into()));
    let killed = folder.path().join("killed");
    let mut child = train("killed").spawn().unwrap();
    let saved = killed.join("checkpoints/dense-lr0.1-0/checkpoint.toml");
    while !saved.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    json(&resume(&killed));
    let model =
        |out: &str| fs::read(folder.path().join(out).join("models/dense-lr0.1-0.safetensors")).unwrap();
    assert!(model("whole") == model("killed"), "the resumed model has other bits");
}

/// A run that was killed before it had committed anything starts anew.
#[test]
fn a_run_killed_before_its_first_checkpoint_starts_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, killed) = whole_and_killed(folder.path());
    fs::remove_dir_all(checkpoints(&killed)).unwrap();
    fs::create_dir(checkpoints(&killed)).unwrap();
    fs::write(checkpoints(&killed).join("noise-0.safetensors"), b"the first save, not whole").unwrap();
    json(&resume(&killed));
    assert_eq!(model(&whole), model(&killed));
}

#[cfg(unix)]
#[test]
fn a_signal_stops_with_a_checkpoint_and_its_exit_status() {
    for (signal, status) in [("INT", 130), ("TERM", 143)] {
        let folder = tempfile::tempdir().unwrap();
        let (whole, stopped) = (folder.path().join("whole"), folder.path().join("stopped"));
        json(&train(&whole).output().unwrap());
        let child = with_a_checkpoint(&stopped);
        let kill =
            Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        let output = child.wait_with_output().unwrap();
        if output.status.code() != Some(0) {
            assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
            let message = stderr(&output);
            assert!(
                message.contains("--resume") && message.contains(&stopped.display().to_string()),
                "{message}"
            );
        }
        json(&resume(&stopped));
        assert_eq!(model(&whole), model(&stopped));
    }
}

#[test]
fn a_folder_in_use_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let mut child = with_a_checkpoint(&out);
    if child.try_wait().unwrap().is_none() {
        for output in [train(&out).output().unwrap(), resume(&out)] {
            // It may have ended meanwhile.
            if child.try_wait().unwrap().is_none() {
                assert_eq!(output.status.code(), Some(2));
                let message = stderr(&output);
                assert!(
                    message.contains("in use") && message.contains(&out.display().to_string()),
                    "{message}"
                );
            }
        }
    }
    json(&child.wait_with_output().unwrap());
}

#[test]
fn a_finished_run_tells_the_same_again_without_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let mut command = antinoise(TRAINING);
    command.args(["--epochs", "2", "--out"]).arg(&out);
    let first = json(&command.output().unwrap());
    for path in below(&out.join("checkpoints")) {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(!name.contains("noise") && !name.contains("tmp"), "{name}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{name}");
        }
    }
    let (parameters, report) = (model(&out), fs::read_to_string(out.join("report.html")).unwrap());
    fs::remove_file(out.join("models").join(format!("{RUN}.safetensors"))).unwrap();
    assert_eq!(json(&resume(&out)), first);
    assert_eq!(model(&out), parameters);
    assert_eq!(fs::read_to_string(out.join("report.html")).unwrap(), report);
    let key = "one for each model, drawn from the operating system, overwritten and deleted";
    for words in ["SHA-256", key, "(UTC)", env!("CARGO_PKG_VERSION")] {
        assert!(report.contains(words), "{words}");
    }
}

/// Layers are clipped apart where that is asked for: the row, the lines of metrics and the report say so, and
/// a resumed run does the same.
#[test]
fn layers_are_clipped_apart_where_that_is_asked_for_and_all_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let trained = |name: &str, options: &str| {
        let mut command = antinoise(&TRAINING.replace("logistic", "mlp"));
        command.args(["--seed", "7", "--epochs", "2", "--clip-norm", "0.5", "--out"]).arg(path(name));
        command.args(options.split_whitespace()).arg("--metrics").arg(path(&format!("{name}.jsonl")));
        json(&command.output().unwrap())["runs"][0].clone()
    };
    let (whole, default) = (trained("whole", "--clip-by whole"), trained("default", ""));
    let layer = trained("layer", "--clip-by layer");
    assert_eq!((&whole["clip_by"], &whole["clip_norms"]), (&"whole".into(), &serde_json::json!([0.5])));
    assert_eq!((&default["clip_by"], model(&path("default"))), (&"whole".into(), model(&path("whole"))));
    assert_eq!((&layer["clip_by"], &layer["epsilon"]), (&"layer".into(), &whole["epsilon"]));
    assert_ne!(model(&path("layer")), model(&path("whole")));
    let norms: Vec<f64> = serde_json::from_value(layer["clip_norms"].clone()).unwrap();
    let squares: f64 = norms.iter().map(|norm| norm * norm).sum();
    assert!(norms.len() == 2 && squares <= 0.25 && squares > 0.25 - 1e-15, "{norms:?}");
    for (name, by) in [("whole", "whole"), ("layer", "layer")] {
        let lines = fs::read_to_string(path(&format!("{name}.jsonl"))).unwrap();
        let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.len() == 30 && lines.iter().all(|line| line["clip_by"] == by));
    }
    let report = |name: &str| fs::read_to_string(path(name).join("report.html")).unwrap();
    assert!(report("layer").contains("by layer: the gradient of each of 2 layers to at most 0.35356"));
    assert!(!report("whole").contains("by layer: the gradient"));
    assert_eq!(json(&resume(&path("layer")))["runs"][0]["clip_by"], "layer");
    // A folder that says another thing than its checkpoints is altered.
    let text = fs::read_to_string(path("layer").join("run.toml")).unwrap();
    fs::write(path("layer").join("run.toml"), text.replace("clip_by = \"layer\"\n", "")).unwrap();
    assert_eq!(resume(&path("layer")).status.code(), Some(2));
}

/// How many models were published is read from `run.toml`: altered by hand, it would make a stated epsilon
/// untrue.
#[test]
fn a_run_whose_description_was_altered_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let mut command = antinoise(TRAINING);
    json(&command.args(["--epochs", "2", "--learning-rate", "0.2", "--out"]).arg(&out).output().unwrap());
    let path = out.join("run.toml");
    let text = fs::read_to_string(&path).unwrap();
    let report = fs::read(out.join("report.html")).unwrap();
    // Each line taken out by itself, a number changed, another line added.
    let mut altered: Vec<String> =
        text.lines().map(|line| text.replacen(&format!("{line}\n"), "", 1)).collect();
    altered.extend([text.replacen("0.2", "0.3", 1), format!("{text}\n"), text.replace('\n', "\r\n")]);
    altered.retain(|altered| *altered != text);
    assert!(altered.len() >= text.lines().count(), "{} alterations of\n{text}", altered.len());
    for altered in altered {
        fs::write(&path, &altered).unwrap();
        let refused = resume(&out);
        assert_eq!(refused.status.code(), Some(2), "{altered}");
        assert!(stderr(&refused).contains("run.toml"), "{}", stderr(&refused));
    }
    assert_eq!(fs::read(out.join("report.html")).unwrap(), report);
    fs::write(&path, text).unwrap();
    json(&resume(&out));
}

/// A resumed run keeps its options: an option that is ignored would mislead its user.
#[test]
fn options_beside_resume_are_refused() {
    let options = [
        "--data digits",
        "--label late=no,yes",
        "--range a=0:1",
        "--category a=b,c",
        "--missing zero",
        "--schema file",
        "--test file",
        "--test-share 0.1",
        "--model mlp",
        "--epsilon 1",
        "--delta 1e-6",
        "--epochs 3",
        "--steps 3",
        "--batch-size 9",
        "--setting cyclic",
        "--mechanism blt:2",
        "--objective max",
        "--release plain",
        "--workload prefix",
        "--adjacency replace-one",
        "--clip-norm 2",
        "--clip-by layer",
        "--learning-rate 0.3",
        "--momentum 0.5",
        "--optimizer adam",
        "--schedule cosine",
        "--warm-up 5",
        "--weight-decay 0.1",
        "--zero-beyond 1",
        "--repeats 4",
        "--seed 1",
        "--out elsewhere",
        "--without-noise",
    ];
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let mut command = antinoise(TRAINING);
    json(&command.args(["--epochs", "2", "--out"]).arg(&out).output().unwrap());
    for option in options {
        let refused = antinoise(&format!("train {option} --resume")).arg(&out).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{option}");
        let name = option.split(' ').next().unwrap();
        assert!(stderr(&refused).contains(name), "{option}: {}", stderr(&refused));
    }
}

/// A folder says how its models learn, and with --objective max the strategy is designed for it.
#[test]
fn an_optimizers_schedule_is_designed_for_and_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let learns = "--optimizer nesterov --schedule cosine:0.1 --warm-up 4 --weight-decay 0.01 --zero-beyond 5";
    let mut command = antinoise(&format!("{TRAINING} --epochs 4 --seed 3 {learns} --objective max"));
    let first = json(&command.arg("--out").arg(&out).output().unwrap());
    assert!(first["runs"][0]["test_accuracy"].as_f64().unwrap() > 0.3, "{first}");
    let study = fs::read_to_string(out.join("run.toml")).unwrap();
    for words in ["nesterov", "warm_up = 4", "weight_decay = 0.01", "zero_beyond = 5.0", "matrix"] {
        assert!(study.contains(words), "{words}");
    }
    let before = model(&out);
    assert_eq!(json(&resume(&out)), first);
    assert_eq!(model(&out), before);
    let plain = folder.path().join("plain");
    let mut command = antinoise(&format!("{TRAINING} --epochs 4 --seed 3 --momentum 0.8 --out"));
    json(&command.arg(&plain).output().unwrap());
    assert_ne!(model(&plain), before);
    let study = fs::read_to_string(plain.join("run.toml")).unwrap();
    assert!(study.contains("kind = \"last-iterate\"\nmomentum = 0.8"), "{study}");
}

/// An option that the optimizer would ignore, or a learning rate given twice.
#[test]
fn options_that_nothing_heeds_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("refused");
    for (options, words) in [
        (
            "--optimizer adam --momentum 0.5",
            "momentum is 0.5 but must be left out except with sgd and nesterov",
        ),
        (
            "--optimizer ftrl --radius 1 --momentum 0.5",
            "momentum is 0.5 but must be left out except with sgd and nesterov",
        ),
        ("--learning-rate 0.1,0.2,0.1", "learning-rate is 0.1 but must be given once"),
    ] {
        let mut command = antinoise(&format!("{TRAINING} --epochs 2 --seed 3 {options} --out"));
        let refused = command.arg(&out).output().unwrap();
        assert!(refused.status.code() == Some(2) && stderr(&refused).contains(words), "{}", stderr(&refused));
        assert!(!out.exists());
    }
}

/// Trained anew, the model would be a second model of the same data under the statement of one.
#[test]
fn a_model_without_its_checkpoint_is_not_trained_anew() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let mut command = antinoise(TRAINING);
    json(&command.args(["--epochs", "2", "--out"]).arg(&out).output().unwrap());
    let before = model(&out);
    fs::remove_dir_all(checkpoints(&out)).unwrap();
    let refused = resume(&out);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("second model"), "{}", stderr(&refused));
    assert_eq!(model(&out), before);
}

/// With other models next to the new ones, the number that the statement states would be untrue; other files
/// would be lost.
#[test]
fn a_folder_with_what_a_run_would_write_is_refused_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    for taken in ["models/other.safetensors", "checkpoints/other/checkpoint.toml", "report.html"] {
        let out = folder.path().join(taken.replace('/', "-"));
        let file = out.join(taken);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "mine").unwrap();
        let before = below(&out);
        let refused = train(&out).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{taken}");
        assert!(stderr(&refused).contains(taken.split('/').next().unwrap()), "{}", stderr(&refused));
        assert_eq!((fs::read(&file).unwrap(), below(&out)), (b"mine".to_vec(), before), "{taken}");
    }
    let out = folder.path().join("notes");
    fs::create_dir_all(&out).unwrap();
    for name in ["notes.md", ".notes.md.tmp-999999-0"] {
        fs::write(out.join(name), "mine").unwrap();
    }
    let mut command = antinoise(TRAINING);
    json(&command.args(["--epochs", "2", "--out"]).arg(&out).output().unwrap());
    for name in ["notes.md", ".notes.md.tmp-999999-0"] {
        assert_eq!(fs::read(out.join(name)).unwrap(), b"mine");
    }
}

#[test]
fn a_folder_with_a_run_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    json(&train(&out).output().unwrap());
    let before = model(&out);
    assert_eq!(train(&out).output().unwrap().status.code(), Some(2));
    assert_eq!(model(&out), before);
}

#[test]
fn what_does_not_fit_is_refused_before_a_folder_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, out) = (folder.path().join("plan.toml"), folder.path().join("run"));
    let made = antinoise(
        "plan --examples 1439 --batch-size 96 --epochs 2 --epsilon 4 --delta 1e-5 --setting cyclic --out",
    )
    .arg(&plan)
    .status()
    .unwrap();
    assert!(made.success());
    let output = antinoise("train --plan").arg(&plan).arg("--out").arg(&out).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("examples of the plan is 1439"), "{}", stderr(&output));
    assert!(!out.exists());
    let twice = antinoise(&format!("{TRAINING} --learning-rate 0.1,0.1 --out")).arg(&out).output().unwrap();
    assert_eq!(twice.status.code(), Some(2));
    assert!(!out.exists());
    for rate in ["1e300", "1e-300"] {
        let refused =
            antinoise(&format!("{TRAINING} --out")).arg(&out).args(["--learning-rate", rate]).output();
        let message = stderr(&refused.unwrap());
        assert!(message.contains("--learning-rate") && message.contains("single precision"), "{message}");
        assert!(!out.exists());
    }
}

/// The epsilon of several models is that of all of them together, and the report says how many were trained.
#[test]
fn several_published_models_cost_more_than_one() {
    let folder = tempfile::tempdir().unwrap();
    let row = |more: &str, name: &str| {
        let mut command =
            antinoise("train --model logistic --mechanism blt:2 --repeats 2 --learning-rate 0.1,0.2 --json");
        let out = folder.path().join(name);
        let report = json(
            &command
                .args(["--epochs", "2"])
                .args(more.split_whitespace())
                .arg("--out")
                .arg(&out)
                .output()
                .unwrap(),
        );
        (report["runs"][0].clone(), fs::read_to_string(out.join("report.html")).unwrap())
    };
    let epsilon = |row: &Value| row["epsilon"].as_f64().unwrap();
    let (one, report) = row("", "one");
    assert_eq!((&one["models_trained"], &one["models_published"]), (&4.into(), &1.into()));
    assert!(report.contains("4 private models") && report.contains("does not cover"));
    let (two, _) = row("--published-models 2", "two");
    let (all, report) = row("--published-models all", "all");
    assert_eq!(all["models_published"], 4);
    assert!(!report.contains("not cover choosing"));
    assert!(report.contains("Epsilon is that of 4 models from the same data together"));
    assert!(report.contains("models trained on the same data beyond these 4"));
    // By simulation one model alone is amplified, and several are not.
    let (alone, report) = row("--setting poisson", "bins");
    assert!(report.contains("a statistical bound") && !report.contains("from the same data together"));
    let (together, report) = row("--setting poisson --published-models all", "all in bins");
    assert!(report.contains("Epsilon is that of 4 models") && !report.contains("a statistical bound"));
    assert!(epsilon(&together) > 2.0 * epsilon(&alone), "{alone} {together}");
    assert!(epsilon(&one) < epsilon(&two) && epsilon(&two) < epsilon(&all), "{one} {two} {all}");
    let too_many = antinoise(TRAINING).args(["--published-models", "2", "--out", "never"]).output().unwrap();
    assert_eq!(too_many.status.code(), Some(2));
    assert!(stderr(&too_many).contains("--published-models"), "{}", stderr(&too_many));
}

/// A statement that covers every choice must not depend on one: results decided how many learning rates were
/// tried.
#[test]
fn all_models_are_not_published_after_results_chose_their_number() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let done = antinoise("train --model logistic --mechanism identity --epochs 1 --repeats 1")
        .arg("--out")
        .arg(&out)
        .output();
    assert!(done.unwrap().status.success());
    let resumed = |published: &str| {
        antinoise("train").arg("--resume").arg(&out).args(["--published-models", published]).output().unwrap()
    };
    let refused = resumed("all");
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("published-models"), "{}", stderr(&refused));
    assert!(resumed("2").status.success(), "a number is no choice");
}

/// Rows that cost differently are not said to have the same privacy.
#[test]
fn the_words_of_a_comparison_say_what_each_row_costs() {
    let folder = tempfile::tempdir().unwrap();
    let words = |more: &str, name: &str| {
        let mut command = antinoise("train --model logistic --epochs 2 --repeats 2 --learning-rate 0.5,0.25");
        let out = folder.path().join(name);
        let done = command.args(more.split_whitespace()).arg("--out").arg(&out).output().unwrap();
        assert!(done.status.success(), "{}", stderr(&done));
        let page = fs::read_to_string(out.join("report.html")).unwrap();
        assert!(page.contains("best of its learning rates"));
        String::from_utf8(done.stdout).unwrap()
    };
    let one = words("", "one");
    assert!(one.contains("At the same privacy") && one.contains("best of its learning rates"), "{one}");
    let several = words("--published-models 4", "several");
    assert!(!several.contains("At the same privacy") && several.contains("At epsilon"), "{several}");
}

/// What a file says of training without privacy is held against what it can be.
#[test]
fn measurements_without_privacy_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let train = "train --model logistic --mechanism identity --epochs 1 --repeats 1 --learning-rate 0.5 --without-noise";
    assert!(antinoise(train).arg("--out").arg(&out).output().unwrap().status.success());
    let file = fs::read_dir(out.join("without-privacy")).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(&file).unwrap();
    let resume = || antinoise("train").arg("--resume").arg(&out).output().unwrap();
    assert!(resume().status.success());
    let first = text.find("accuracies").unwrap();
    let end = first + text[first..].find("]]").unwrap() + 2;
    for accuracies in ["accuracies = []", "accuracies = [[1, 7.5]]", "accuracies = [[15, nan]]"] {
        fs::write(&file, format!("{}{accuracies}{}", &text[..first], &text[end..])).unwrap();
        let refused = resume();
        assert_eq!(refused.status.code(), Some(2), "{accuracies}: {}", stderr(&refused));
        assert!(stderr(&refused).contains("accuracies must be"), "{}", stderr(&refused));
    }
    fs::remove_file(&file).unwrap();
    fs::remove_dir_all(out.join("models")).unwrap();
    assert!(resume().status.success(), "removed models are written again");
}
