//! Training on tables, and the lines that a run tells on its way.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn antinoise(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_antinoise"));
    command.args(arguments).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Rows whose class follows from both columns, but for every tenth.
fn write_table(path: &Path, rows: usize) {
    let row = |i: usize| {
        let (x, word) = (i * 7919 % 1000, ["a", "b", "c"][i / 7 % 3]);
        let class = (x > 500) ^ i.is_multiple_of(10);
        format!("{},{word},{},ignored\n", x as f64 / 10.0, if class { "yes" } else { "no" })
    };
    let rows: String = (0..rows).map(row).collect();
    fs::write(path, format!("x,word,late,other\n{rows}")).unwrap();
}

const TABLE: [&str; 16] = [
    "train",
    "--data",
    "csv:table.csv",
    "--label",
    "late=no,yes",
    "--range",
    "x=0:100",
    "--category",
    "word=a,b,*",
    "--mechanism",
    "blt:2",
    "--repeats",
    "1",
    "--learning-rate",
    "2",
    "--json",
];

fn table(more: &[&str], folder: &Path) -> Output {
    antinoise(&[&TABLE, more].concat(), folder).output().unwrap()
}

#[test]
fn a_model_learns_from_a_table_by_options_and_by_a_schema() {
    let folder = tempfile::tempdir().unwrap();
    write_table(&folder.path().join("table.csv"), 5000);
    write_table(&folder.path().join("other.csv"), 700);
    let accuracy = |output: Output| {
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["runs"][0]["test_accuracy"].as_f64().unwrap()
    };
    let learned = ["--epochs", "5", "--batch-size", "100", "--seed", "1", "--setting", "cyclic"];
    let first = accuracy(table(&[&learned[..], &["--out", "first"]].concat(), folder.path()));
    // Nine tenths can be known; with a different name of the class of the last ones the model would be no
    // better than a coin.
    assert!(first > 0.82 && first <= 0.92, "{first}");
    accuracy(table(
        &[&learned[..], &["--out", "mlp", "--model", "mlp", "--test", "other.csv"]].concat(),
        folder.path(),
    ));
    let schema = r#"label = "late"
classes = ["no", "yes"]
columns = [
    { name = "x", values = { range = [0, 100] } },
    { name = "word", values = { categories = ["a", "b", "*"] } },
]
"#;
    fs::write(folder.path().join("schema.toml"), schema).unwrap();
    let by_schema = [
        "train",
        "--data",
        "csv:table.csv",
        "--schema",
        "schema.toml",
        "--mechanism",
        "blt:2",
        "--repeats",
        "1",
    ];
    let more = ["--learning-rate", "2", "--json", "--out", "second"];
    let output = antinoise(&[&by_schema[..], &more, &learned].concat(), folder.path()).output().unwrap();
    assert_eq!(accuracy(output), first);
    let resumed = antinoise(&["train", "--json", "--resume", "first"], folder.path()).output().unwrap();
    assert_eq!(accuracy(resumed), first);
    let refused = table(&["--model", "cnn", "--out", "never"], folder.path());
    assert!(
        refused.status.code() == Some(2) && stderr(&refused).contains("model is cnn"),
        "{}",
        stderr(&refused)
    );
}

/// Each text contains words that decide its class; no list of them is given.
/// Batches are an eighth of the 240 rows that train, and epochs the largest number that is taken by default.
#[test]
fn a_few_rows_are_trained_on_by_default() {
    let folder = tempfile::tempdir().unwrap();
    write_table(&folder.path().join("table.csv"), 300);
    let output = table(&["--setting", "cyclic", "--out", "few"], folder.path());
    assert!(output.status.success(), "{}", stderr(&output));
    let plan: toml::Value =
        toml::from_str(&fs::read_to_string(folder.path().join("few/model/plan.toml")).unwrap()).unwrap();
    let number = |name: &str| plan[name].as_integer().unwrap();
    assert_eq!((number("examples"), number("batch_size"), number("steps")), (240, 30, 128));
}

#[test]
fn a_model_learns_from_texts() {
    let folder = tempfile::tempdir().unwrap();
    let row = |i: usize| {
        let said = [["no pain", "slept well"], ["chest pain", "short of breath"]][i % 2][i / 2 % 2];
        format!("\"Patient {}, day {}: {said}.\",{}\n", i * 31 % 97, i % 9, ["home", "ward"][i % 2])
    };
    let rows: String = (0..4000).map(row).collect();
    fs::write(folder.path().join("notes.csv"), format!("note,where\n{rows}")).unwrap();
    let train = |text: &str, out: &str| {
        let options = "train --data csv:notes.csv --label where=home,ward --mechanism blt:2 --repeats 1 --learning-rate 4 --epochs 5 --json --text";
        let words: Vec<&str> = options.split(' ').chain([text, "--out", out]).collect();
        antinoise(&words, folder.path()).output().unwrap()
    };
    let learned = train("note=256", "run");
    assert!(learned.status.success(), "{}", stderr(&learned));
    let row = &serde_json::from_slice::<Value>(&learned.stdout).unwrap()["runs"][0];
    assert!(row["test_accuracy"].as_f64().unwrap() > 0.95, "{row}");
    for (text, words) in [
        ("note", "COLUMN=FEATURES"),
        ("note=", "COLUMN=FEATURES"),
        ("note=0", "\"note\""),
        ("note=1e3", "COLUMN=FEATURES"),
    ] {
        let refused = train(text, "never");
        assert_eq!(refused.status.code(), Some(2), "{text}");
        assert!(stderr(&refused).contains(words), "{text}: {}", stderr(&refused));
    }
}

#[test]
fn a_bad_cell_is_named_by_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    for (row, words) in [
        ("1,a,yes", "3 cells in line 3"),
        ("high,a,yes,", "\"high\" in line 3, column \"x\""),
        (",a,yes,", "\"\" in line 3, column \"x\""),
        ("NaN,a,yes,", "\"NaN\" in line 3, column \"x\""),
        ("1,a,maybe,", "\"maybe\" in line 3, column \"late\""),
        ("1,NA,no,", "\"NA\" in line 3, column \"word\""),
    ] {
        fs::write(folder.path().join("table.csv"), format!("x,word,late,other\n5,b,no,\n{row}\n1,a,no,\n"))
            .unwrap();
        let refused = table(&["--out", "run"], folder.path());
        assert_eq!(refused.status.code(), Some(2), "{row}");
        assert!(stderr(&refused).contains(words), "{row}: {}", stderr(&refused));
        assert!(!folder.path().join("run").exists());
    }
}

fn lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A pipe that nobody reads, a device, a folder: refused at once, and nothing is waited for.
#[cfg(unix)]
#[test]
fn metrics_are_not_written_into_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    write_table(&folder.path().join("table.csv"), 5000);
    assert!(Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap().success());
    for path in ["pipe", "/dev/null", "."] {
        let mut child =
            antinoise(&[&TABLE[..], &["--metrics", path]].concat(), folder.path()).spawn().unwrap();
        let begun = std::time::Instant::now();
        while child.try_wait().unwrap().is_none() {
            if begun.elapsed().as_secs() > 60 {
                child.kill().unwrap();
                panic!("{path} is waited for");
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let output = child.wait_with_output().unwrap();
        let said = stderr(&output);
        assert!(output.status.code() == Some(2) && said.contains("must be a regular file"), "{path}: {said}");
    }
}

/// Each step is reported once, however often its run was interrupted; records of repeated steps are deleted.
#[test]
fn metrics_go_on_through_resumes_without_doubled_lines() {
    let folder = tempfile::tempdir().unwrap();
    write_table(&folder.path().join("table.csv"), 5000);
    let path = folder.path().join("lines.jsonl");
    let long = [
        "--steps",
        "800",
        "--batch-size",
        "100",
        "--seed",
        "1",
        "--setting",
        "cyclic",
        "--metrics",
        "lines.jsonl",
    ];
    let mut child =
        antinoise(&[&TABLE[..], &long, &["--out", "run"]].concat(), folder.path()).spawn().unwrap();
    while fs::read_to_string(&path).map_or(0, |text| text.lines().count()) < 250
        && child.try_wait().unwrap().is_none()
    {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // A line that the kill cut.
    let cut = fs::read_to_string(&path).unwrap() + "{\"run\":\"blt-2-lr2";
    fs::write(&path, cut).unwrap();
    let resume = ["train", "--json", "--resume", "run", "--metrics", "lines.jsonl"];
    let resumed = antinoise(&resume, folder.path()).output().unwrap();
    assert!(resumed.status.success(), "{}", stderr(&resumed));
    let found = lines(&path);
    let steps: Vec<u64> = found.iter().map(|line| line["step"].as_u64().unwrap()).collect();
    assert_eq!(steps, (1..=800).collect::<Vec<_>>());
    let seconds: Vec<f64> = found.iter().map(|line| line["seconds"].as_f64().unwrap()).collect();
    assert!(seconds.is_sorted());
    let names: HashSet<&str> = found[799].as_object().unwrap().keys().map(String::as_str).collect();
    let all = [
        "run",
        "step",
        "loss",
        "clip_by",
        "clipped_share",
        "test_accuracy",
        "seconds",
        "noise_share",
        "epsilon",
    ];
    assert_eq!(names, HashSet::from(all));
    assert!(found[799]["test_accuracy"].is_f64() && found[0]["test_accuracy"].is_null());
    // Finished: it tells nothing again. A new run wants a file of its own.
    assert!(antinoise(&resume, folder.path()).output().unwrap().status.success());
    assert_eq!(lines(&path).len(), 800);
    let refused = table(&[&long[..], &["--out", "other"]].concat(), folder.path());
    assert!(
        refused.status.code() == Some(2) && stderr(&refused).contains("metrics is lines.jsonl"),
        "{}",
        stderr(&refused)
    );
    assert!(!folder.path().join("other").exists());
}

/// The same rows in an Arrow file: the same model, and the same predictions.
#[test]
fn an_arrow_file_trains_the_model_of_the_csv_file() {
    let folder = tempfile::tempdir().unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../release/tests/data");
    let of = |kind: &str, name: &str| format!("{kind}:{}", data.join(name).display());
    let train = |data: &str, out: &str| {
        let options = "--label late=false,true --range minutes=0:25 --category shop=north,south,* --seed 1 \
                       --batch-size 5 --epochs 2 --mechanism identity --setting cyclic --learning-rate 1";
        let fixed = ["train", "--data", data, "--out", out, "--user", "user"];
        let all: Vec<&str> = fixed.into_iter().chain(options.split_whitespace()).collect();
        antinoise(&all, folder.path()).output().unwrap()
    };
    let by_arrow = train(&of("arrow", "events.arrow"), "arrow");
    if !cfg!(feature = "parquet") {
        assert_eq!(by_arrow.status.code(), Some(2));
        assert!(stderr(&by_arrow).contains("built without the feature parquet"), "{}", stderr(&by_arrow));
        return;
    }
    assert!(by_arrow.status.success(), "{}", stderr(&by_arrow));
    let by_csv = train(&of("csv", "events.csv"), "csv");
    assert!(by_csv.status.success(), "{}", stderr(&by_csv));
    let model = |run: &str| fs::read(folder.path().join(run).join("model/model.safetensors")).unwrap();
    assert!(model("arrow") == model("csv"));
    for command in ["predict", "evaluate"] {
        let said = |data: String| {
            let mut output = antinoise(&[command, "csv/model", "--data", &data, "--json"], folder.path());
            String::from_utf8(output.stderr(Stdio::inherit()).output().unwrap().stdout).unwrap()
        };
        let wanted = said(of("csv", "events.csv"));
        assert!(wanted.len() > 100, "{wanted}");
        assert_eq!(said(of("arrow", "events.arrow")), wanted);
        assert_eq!(said(of("arrow", "events.arrows")), wanted);
    }
}

/// The same rows in arrays of NumPy: the same model, and the same predictions. An array of two dimensions is
/// its columns.
#[test]
fn arrays_train_the_model_of_the_csv_file() {
    let folder = tempfile::tempdir().unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../release/tests/data");
    let of = |kind: &str| format!("{kind}:{}", data.join(format!("events.{kind}")).display());
    let train = |data: &str, columns: &str, out: &str| {
        let options = "--label late=false,true --category shop=north,south,* --seed 1 --batch-size 50 --epochs 2 \
                       --mechanism identity --setting cyclic --learning-rate 1";
        let fixed = ["train", "--data", data, "--out", out];
        let all: Vec<&str> =
            fixed.into_iter().chain(options.split_whitespace()).chain(columns.split_whitespace()).collect();
        let output = antinoise(&all, folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        fs::read(folder.path().join(out).join("model/model.safetensors")).unwrap()
    };
    let wanted = train(&of("csv"), "--range minutes=0:140 --range user=0:140", "csv");
    assert!(train(&of("npz"), "--range minutes=0:140 --range user=0:140", "npz") == wanted);
    assert!(train(&of("npz"), "--range both=0:140", "both") == wanted);
    let read = |file: &str| fs::read_to_string(folder.path().join("both/model").join(file)).unwrap();
    assert!(read("model.toml").contains("name = \"both[1]\""));
    assert!(
        read("README.md").contains("| both[0] to both[1] | 2 (x - 0) / 140 - 1"),
        "{}",
        read("README.md")
    );
    for command in ["predict", "evaluate"] {
        let said = |model: &str, data: String| {
            let mut output = antinoise(&[command, model, "--data", &data, "--json"], folder.path());
            String::from_utf8(output.stderr(Stdio::inherit()).output().unwrap().stdout).unwrap()
        };
        let wanted = said("csv/model", of("csv"));
        assert!(wanted.len() > 100, "{wanted}");
        assert_eq!(said("csv/model", of("npz")), wanted);
        assert_eq!(said("both/model", of("npz")), wanted);
    }
}
