//! One model to give away: its folder, and what `predict` and `evaluate` say of rows.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn antinoise(arguments: &str, folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_antinoise"));
    command.args(arguments.split_whitespace()).current_dir(folder).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&stdout(output)).unwrap()
}

fn refused(output: &Output, words: &str) {
    let message = stderr(output);
    assert!(output.status.code() == Some(2) && message.contains(words), "{words:?} not in {message}");
}

/// Rows whose class follows from x; with `delimiter` between cells.
fn table(rows: usize, delimiter: char) -> String {
    let row = |i: usize| {
        let (x, word) = (i * 7919 % 1000, ["a", "b", "c"][i / 7 % 3]);
        let class = if x > 400 { "yes" } else { "no" };
        format!("{}{delimiter}{word}{delimiter}{class}\n", x as f64 / 10.0)
    };
    format!("x{delimiter}word{delimiter}late\n{}", (0..rows).map(row).collect::<String>())
}

const COLUMNS: &str = "--label late=no,yes --range x=0:100 --category word=a,b,*";
const FILES: [&str; 6] =
    ["README.md", "model.safetensors", "model.toml", "plan.toml", "statement.json", "statement.txt"];

/// A folder with a table of training rows, one of test rows, and a trained model in `run/model`.
fn trained() -> (tempfile::TempDir, Value) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("rows.csv"), table(3000, ',')).unwrap();
    fs::write(folder.path().join("other.csv"), table(500, ',')).unwrap();
    let train = format!(
        "train --data csv:rows.csv {COLUMNS} --test other.csv --setting cyclic --mechanism blt:2 --epochs 4 --batch-size 100 --json --out run"
    );
    let found = json(&antinoise(&train, folder.path()));
    (folder, found)
}

#[test]
fn training_on_ones_own_table_leaves_one_model_to_give_away() {
    let (folder, found) = trained();
    let runs = found["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &runs[0]["models_trained"]), (1, &1.into()));
    assert_eq!(found["model"], "run/model");
    // 299 of 500 rows are above 40.
    let share = found["largest_class_share"].as_f64().unwrap();
    assert!((0.55..0.65).contains(&share), "{share}");
    let model = folder.path().join("run/model");
    let mut names: Vec<String> = fs::read_dir(&model)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, FILES);
    let read = |name: &str| fs::read_to_string(model.join(name)).unwrap();
    let statement: Value = serde_json::from_str(&read("statement.json")).unwrap();
    assert_eq!(statement["epsilon"], runs[0]["epsilon"]);
    assert!(read("statement.txt").contains("one private model was trained on these data"));
    let card = read("README.md");
    for words in [
        "logistic on rows.csv",
        "no, yes",
        "columns x, word",
        "| training examples | 3000 |",
        "always predicting the largest class",
        "The data of every single example are protected",
        "## What is not covered",
        "nn.Linear(4, 2)",
        "load_file(\"model.safetensors\")",
        "2 (x - 0) / 100 - 1",
    ] {
        assert!(card.contains(words), "{words}\n{card}");
    }
    let description = read("model.toml");
    for words in ["kind = \"logistic\"", "classes = [\"no\", \"yes\"]", "range = [0.0, 100.0]"] {
        assert!(description.contains(words), "{words}\n{description}");
    }
    let verified = json(&antinoise("verify run/model/plan.toml --json", folder.path()));
    assert!(verified["holds"].as_bool().unwrap());
    // A digest of the rows would confirm a guess of one of them: only plan and model have one.
    let of_plan = verified["digest"].as_str().unwrap();
    let report = fs::read_to_string(folder.path().join("run/report.html")).unwrap();
    for text in FILES.iter().skip(2).map(|name| read(name)).chain([read("README.md"), report]) {
        let words = text.split(|c: char| !c.is_ascii_hexdigit()).filter(|word| word.len() == 64);
        words.for_each(|word| assert!(word == of_plan || description.contains(word), "{word} in {text}"));
    }
    let text = stdout(&antinoise("train --resume run", folder.path()));
    assert!(
        text.contains("Model to give away: run/model") && text.contains("run/model/statement.txt"),
        "{text}"
    );
}

#[test]
fn predictions_and_scores_are_those_of_the_trained_model() {
    let (folder, found) = trained();
    let path = |name: &str| folder.path().join(name);
    let run = |arguments: &str| antinoise(arguments, folder.path());
    let scores = json(&run("evaluate run/model --data csv:other.csv --json"));
    assert_eq!(scores["accuracy"], found["runs"][0]["test_accuracy"]);
    assert_eq!(
        (&scores["examples"], &scores["largest_class_share"]),
        (&500.into(), &found["largest_class_share"])
    );
    let counts = |i: usize, j: usize| scores["confusion"][i][j].as_u64().unwrap();
    assert_eq!(counts(0, 0) + counts(0, 1) + counts(1, 0) + counts(1, 1), 500);
    let right = (counts(0, 0) + counts(1, 1)) as f64 / 500.0;
    assert!((right - scores["accuracy"].as_f64().unwrap()).abs() < 1e-12);
    assert!((0.0..0.5).contains(&scores["expected_calibration_error"].as_f64().unwrap()));
    assert!(stdout(&run("evaluate run/model --data csv:other.csv")).contains("true class, predicted:"));

    // New rows without labels, in other orders and formats, are the same predictions.
    fs::write(path("new.csv"), "word;x\na;12.5\nzebra;99\n").unwrap();
    fs::write(path("new.jsonl"), "{\"x\": 12.5, \"word\": \"a\"}\n{\"word\": \"zebra\", \"x\": 99}\n")
        .unwrap();
    let lines = stdout(&run("predict run/model --data csv:new.csv --delimiter ;"));
    assert_eq!(stdout(&run("predict run/model --data jsonl:new.jsonl")), lines);
    let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&rows[0]["class"], &rows[1]["class"]), (&"no".into(), &"yes".into()));
    let probabilities: Vec<f64> = serde_json::from_value(rows[1]["probabilities"].clone()).unwrap();
    assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-12 && probabilities[1] > 0.5);
    let all = json(&run("predict run/model --data jsonl:new.jsonl --json"));
    assert_eq!((&all["predictions"][1], &all["classes"][1]), (&rows[1], &"yes".into()));

    let written = json(&run("predict run/model --data jsonl:new.jsonl --out late.csv --json"));
    assert_eq!((&written["examples"], written.get("predictions")), (&2.into(), None));
    let csv = fs::read_to_string(path("late.csv")).unwrap();
    assert!(csv.starts_with("class,probability of no,probability of yes\nno,"), "{csv}");
    stdout(&run("predict run/model --data jsonl:new.jsonl --out late.jsonl"));
    assert_eq!(fs::read_to_string(path("late.jsonl")).unwrap(), lines);
    refused(&run("predict run/model --data jsonl:new.jsonl --out late.jsonl"), "--force");
    for (kept, words) in
        [("new.jsonl", "other than data"), ("run/model/model.safetensors", "other than the model's own")]
    {
        let before = fs::read(path(kept)).unwrap();
        refused(&run(&format!("predict run/model --data jsonl:new.jsonl --out {kept} --force")), words);
        assert_eq!(fs::read(path(kept)).unwrap(), before);
    }
}

#[test]
fn rows_and_folders_that_do_not_fit_are_named() {
    let (folder, _) = trained();
    let run = |arguments: &str| antinoise(arguments, folder.path());
    for (text, words) in [
        ("x,word\nhigh,a\n", "\"high\" in line 2, column \"x\""),
        ("x,word\n1,a\n,b\n", "\"\" in line 3, column \"x\""),
        ("x\n1\n", "with a column \"word\""),
        ("x;word\n1;a\n", "its first line has the delimiter ';'"),
        ("x,word\n", "without rows"),
    ] {
        fs::write(folder.path().join("bad.csv"), text).unwrap();
        refused(&run("predict run/model --data csv:bad.csv"), words);
    }
    refused(&run("evaluate run/model --data csv:bad.csv"), "column \"late\"");
    refused(&run("predict run/model --data csv:absent.csv"), "absent.csv is absent");
    refused(&run("predict run/model --data digits"), "the model is one of a table");
    refused(&run("predict run/model --data rows.csv"), "--data is");
    refused(&run("predict run/model --data jsonl:bad.csv --delimiter ;"), "--delimiter");
    refused(&run("predict run/model --data csv:rows.csv --delimiter ab"), "one character");
    refused(&run("predict run --data csv:rows.csv"), "but must be run/model");
    refused(&run("predict absent --data csv:rows.csv"), "model.toml");
    let path = folder.path().join("run/model/model.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    refused(&run("predict run/model --data csv:rows.csv"), "altered");
    let path = folder.path().join("run/model/model.toml");
    for (from, to, words) in [
        ("outputs = 2", "outputs = 3", "outputs"),
        ("version = 1", "version = 2", "version of model.toml is 2"),
        ("kind = ", "sort = ", "model.toml"),
    ] {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from} in {text}");
        fs::write(&path, text.replace(from, to)).unwrap();
        refused(&run("evaluate run/model --data csv:other.csv"), words);
        fs::write(&path, text).unwrap();
    }
}

/// The default learning rate is said, is the same for all rows, and follows the noise.
#[test]
fn the_default_learning_rate_depends_on_no_row() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("one.csv"), table(2000, ',')).unwrap();
    fs::write(folder.path().join("other.csv"), table(4000, ',').replace("no\n", "yes\n")).unwrap();
    fs::write(folder.path().join("tests.csv"), table(100, ',')).unwrap();
    let other = fs::read_to_string(folder.path().join("other.csv")).unwrap();
    let as_long: Vec<&str> = other.lines().take(1).chain(other.lines().skip(2001)).collect();
    fs::write(folder.path().join("other.csv"), as_long.join("\n") + "\n").unwrap();
    let train = |data: &str, options: &str| {
        let base = format!(
            "train --data csv:{data}.csv {COLUMNS} --test tests.csv --setting cyclic --mechanism blt:2"
        );
        antinoise(
            &format!("{base} --epochs 2 --batch-size 100 {options} --out run-{}", options.len()),
            folder.path(),
        )
    };
    let first = json(&train("one", "--json"));
    let rate = first["default_learning_rate"].as_f64().unwrap();
    assert_eq!(first["runs"][0]["learning_rate"], rate);
    fs::remove_dir_all(folder.path().join("run-6")).unwrap();
    assert_eq!(json(&train("other", "--json"))["default_learning_rate"], rate);
    let private = json(&train("one", "--epsilon 0.5 --json"));
    assert!(private["default_learning_rate"].as_f64().unwrap() < rate, "{private}");
    let given = json(&train("one", "--learning-rate 0.25 --json"));
    assert!(given["default_learning_rate"].is_null(), "{given}");
    let said = stdout(&antinoise("train --resume run-6", folder.path()));
    assert!(
        said.contains(&format!("Learning rate {rate} is the default")) && said.contains("costs no privacy"),
        "{said}"
    );
    // A comparison tries its half and its double, and gives away the model of the default.
    let compared = json(&train("one", "--compare --repeats 1 --published-models all --json"));
    let rates: Vec<f64> = compared["runs"][0]["by_learning_rate"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| pair[0].as_f64().unwrap())
        .collect();
    assert_eq!(rates, [rate / 2.0, rate, 2.0 * rate]);
}

#[test]
fn several_models_are_trained_only_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("rows.csv"), table(600, ',')).unwrap();
    let train = format!("train --data csv:rows.csv {COLUMNS} --epochs 1 --batch-size 60 --out run");
    for (option, name) in [
        ("--learning-rate 0.1,0.2", "--learning-rate is 0.1,0.2"),
        ("--epsilon 1,2", "--epsilon is 1,2"),
        ("--repeats 2", "--repeats is 2"),
        ("--mechanism blt:2 --mechanism identity", "--mechanism is blt:2, identity"),
        ("--published-models all", "--published-models is given"),
    ] {
        let output = antinoise(&format!("{train} {option}"), folder.path());
        refused(&output, name);
        refused(&output, "--compare");
        assert!(!folder.path().join("run").exists());
    }
    let compared = format!("{train} --setting cyclic --compare --learning-rate 0.25,0.5 --repeats 2 --json");
    let found = json(&antinoise(&compared, folder.path()));
    assert!(found["runs"].as_array().unwrap().len() >= 2, "{found}");
    assert!(found["runs"][0]["epsilon"].is_f64());
    let statement = fs::read_to_string(folder.path().join("run/model/statement.txt")).unwrap();
    let statement = statement.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["fixed before training", "chosen without looking at any result", "at learning rate 0.5"] {
        assert!(statement.contains(words), "{words}\n{statement}");
    }
}

/// The model of a comparison is one of those that were trained: that of the learning rate in the middle, or,
/// where the statement covers all, the most accurate.
#[test]
fn the_model_of_a_comparison_is_the_one_that_its_statement_covers() {
    let folder = tempfile::tempdir().unwrap();
    let train = "train --model logistic --setting cyclic --mechanism blt:2 --epochs 2 --repeats 1 --seed 1 \
                 --learning-rate 0.001,0.05,0.1 --json";
    let accuracy = |out: &str| {
        let scores = json(&antinoise(&format!("evaluate {out}/model --data digits --json"), folder.path()));
        assert_eq!((&scores["examples"], &scores["classes"][3]), (&357.into(), &"3".into()));
        scores["accuracy"].as_f64().unwrap()
    };
    let at = |found: &Value, index: usize| found["runs"][0]["by_learning_rate"][index][1].as_f64().unwrap();
    let one = json(&antinoise(&format!("{train} --out one"), folder.path()));
    assert_eq!(accuracy("one"), at(&one, 1));
    let all = json(&antinoise(&format!("{train} --published-models all --out all"), folder.path()));
    let best = (0..3).map(|index| at(&all, index)).fold(0.0, f64::max);
    assert_eq!(accuracy("all"), best);
    let statement: Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("all/model/statement.json")).unwrap())
            .unwrap();
    assert_eq!(statement["epsilon"], all["runs"][0]["epsilon"]);
    assert!(statement["epsilon"].as_f64().unwrap() > one["runs"][0]["epsilon"].as_f64().unwrap());
    // The plan's epsilon is that of one model.
    let card = |out: &str| fs::read_to_string(folder.path().join(out).join("model/README.md")).unwrap();
    assert!(
        card("all").contains("recomputes the figures of one model") && card("one").contains("recomputes its")
    );
    // The model chosen among all may be in other hands: no later statement covers one model only.
    let refused = antinoise("train --resume all --published-models 1", folder.path());
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("is 1 but must be all or more: the model in"), "{message}");
    assert_eq!(accuracy("all"), best);
}

/// A learning rate at which parameters become infinite ends no comparison, and leaves no model.
#[test]
fn a_training_that_diverges_has_no_model_and_leaves_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let train = "train --model logistic --setting cyclic --mechanism blt:2 --epochs 3 --repeats 1 --clip-norm 1000 \
                 --momentum 0.99 --seed 1";
    let output = antinoise(&format!("{train} --learning-rate 0.01,0.02,1e38 --out run"), folder.path());
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("diverged"), "{output:?}");
    assert_eq!(fs::read_dir(folder.path().join("run/models")).unwrap().count(), 2);
    assert!(stdout(&antinoise("train --resume run", folder.path())).contains("learning rate 0.02"));
    let output = antinoise(&format!("{train} --learning-rate 0.01,1e38 --out none"), folder.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("smaller learning rate (--learning-rate)"),
        "{output:?}"
    );
    assert!(!folder.path().join("none/model").exists());
}

#[test]
fn a_second_run_without_a_name_gets_a_folder_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("rows.csv"), table(600, ',')).unwrap();
    let train = format!(
        "train --data csv:rows.csv {COLUMNS} --setting cyclic --mechanism identity --epochs 1 --batch-size 60 --json"
    );
    let first = json(&antinoise(&train, folder.path()));
    let output = antinoise(&train, folder.path());
    assert!(stderr(&output).contains("antinoise-run is taken"), "{}", stderr(&output));
    let second = json(&output);
    assert_eq!(
        (&first["model"], &second["model"]),
        (&"antinoise-run/model".into(), &"antinoise-run-2/model".into())
    );
    // Of a run that is refused, nothing is said of a folder.
    let output = antinoise(&train.replace("--batch-size 60", "--batch-size 6000"), folder.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(!stderr(&output).contains("is taken"), "{}", stderr(&output));
    assert!(!folder.path().join("antinoise-run-3").exists());
    // A name that is given is taken at its word, before anything is planned.
    refused(&antinoise(&format!("{train} --out antinoise-run"), folder.path()), "already holds a run");
    std::fs::write(folder.path().join("notes"), "").unwrap();
    refused(&antinoise(&format!("{train} --out notes"), folder.path()), "it is a file");
}

/// Of a file that is sorted by class, the last rows are of one class; drawn rows are not.
#[test]
fn unusual_rows_are_reported_and_test_rows_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let row = |i: usize| format!("{},a,{}\n", i % 100, ["no", "yes"][i / 300]);
    fs::write(
        folder.path().join("sorted.csv"),
        "x,word,late\n".to_string() + &(0..600).map(row).collect::<String>(),
    )
    .unwrap();
    let train = format!(
        "train --data csv:sorted.csv {COLUMNS} --setting cyclic --mechanism identity --epochs 1 --batch-size 60 --json"
    );
    let drawn = antinoise(&format!("{train} --out drawn"), folder.path());
    for words in ["sorted by class", "column \"word\" has the same value", "do not publish this line"] {
        assert!(stderr(&drawn).contains(words), "{words}: {}", stderr(&drawn));
    }
    let share = |output: &Output| json(output)["largest_class_share"].as_f64().unwrap();
    assert!(share(&drawn) < 0.7, "{}", share(&drawn));
    let last = antinoise(&format!("{train} --test-rows last --out last"), folder.path());
    assert_eq!(share(&last), 1.0);
    refused(
        &antinoise(&format!("{train} --test-rows last --test-seed 1 --out never"), folder.path()),
        "--test-seed",
    );
    let other = antinoise(&format!("{train} --test-seed 1 --out other"), folder.path());
    assert!(share(&other) < 0.7);
    refused(&antinoise("train --test-seed 1 --out never", folder.path()), "left out unless --data is");
}
