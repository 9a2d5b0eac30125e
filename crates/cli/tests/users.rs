//! `antinoise train --user`: persons as the unit, in what is printed, written and refused.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const TABLE: [&str; 11] = [
    "train",
    "--data",
    "csv:table.csv",
    "--label",
    "late=no,yes",
    "--range",
    "x=0:100",
    "--mechanism",
    "identity",
    "--setting",
    "cyclic",
];

fn antinoise(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_antinoise"));
    command.args(arguments).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(more: &[&str], folder: &Path) -> Output {
    antinoise(&[&TABLE, more].concat(), folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn refused(more: &[&str], folder: &Path) -> String {
    let output = run(more, folder);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{more:?}: {said}");
    said
}

/// 400 persons, of whom number i has 1 + i mod 7 rows: 1597 in all.
const PERSONS: usize = 400;
const ROWS: usize = 1597;

fn write_table(path: &Path) {
    let of = |person: usize| 1 + person % 7;
    let row = |(person, i): (usize, usize)| {
        let x = (person * 7919 + i * 104_729) % 100;
        format!("{x},person {person},{}\n", if x > 50 { "yes" } else { "no" })
    };
    let rows: Vec<String> =
        (0..PERSONS).flat_map(|person| (0..of(person)).map(move |i| (person, i))).map(row).collect();
    assert_eq!(rows.len(), ROWS);
    fs::write(path, format!("x,who,late\n{}", rows.concat())).unwrap();
}

#[test]
fn persons_are_the_unit_and_nothing_that_is_published_says_how_many_rows_they_have() {
    let folder = tempfile::tempdir().unwrap();
    write_table(&folder.path().join("table.csv"));
    let output = run(&["--user", "who", "--out", "run", "--json"], folder.path());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = &found["runs"][0];
    assert_eq!(
        (row["unit"].as_str(), row["epsilon_by_examples"].as_array().unwrap().len()),
        (Some("user"), 0)
    );
    assert!(row["test_accuracy"].as_f64().unwrap() > 0.6);
    let model = folder.path().join("run/model");
    let read = |name: &str| fs::read_to_string(model.join(name)).unwrap();
    let plan = read("plan.toml");
    for line in ["examples = 318", "batch_size = 40", "max_examples_per_user = 100", "unit = \"user\""] {
        assert!(plan.contains(line), "{line}: {plan}");
    }
    let statement = read("statement.txt").split_whitespace().collect::<Vec<_>>().join(" ");
    for words in
        ["data of every single user", "a user with all of their examples", "318 users", "column \"who\""]
    {
        assert!(statement.contains(words), "{words}: {statement}");
    }
    assert!(read("README.md").contains("| training users | 318 |"));
    // 1597 rows, of which some are tested on.
    let test_rows: usize = read("README.md")
        .lines()
        .find_map(|line| line.strip_prefix("| test examples | ")?.strip_suffix(" |")?.parse().ok())
        .unwrap();
    let published =
        ["plan.toml", "statement.txt", "statement.json", "README.md", "model.toml"].map(read).concat();
    for count in [ROWS, ROWS - test_rows] {
        assert!(
            !published.contains(&format!(" {count} ")) && !text(&output.stdout).contains(&count.to_string())
        );
    }
    let again = text(&antinoise(&["train", "--resume", "run"], folder.path()).output().unwrap().stdout);
    assert!(again.contains("Epsilon is that of a user with all of their examples."), "{again}");

    let alone = run(&["--batch-size", "100", "--out", "rows"], folder.path());
    let said = text(&alone.stdout);
    assert!(said.contains("with 2 examples") && said.contains("--user COLUMN protects persons"), "{said}");
    let statement = fs::read_to_string(folder.path().join("rows/model/statement.txt")).unwrap();
    let statement = statement.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(statement.contains("the unit is a single example") && statement.contains("with 20 examples"));
}

/// Killed at some step or other, or just finished: the same model; and none with other persons.
#[test]
fn a_killed_run_with_persons_resumes_to_the_same_model_and_not_with_other_persons() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("table.csv");
    write_table(&table);
    let words = ["--user", "who", "--max-examples-per-user", "3", "--seed", "5", "--epochs", "200", "--out"];
    let whole = run(&[&words[..], &["whole"]].concat(), folder.path());
    assert!(whole.status.success(), "{}", text(&whole.stderr));
    let mut child = antinoise(&[&TABLE, &words[..], &["killed"]].concat(), folder.path()).spawn().unwrap();
    let checkpoints = folder.path().join("killed/checkpoints");
    while !checkpoints.exists() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let resume = || antinoise(&["train", "--resume", "killed"], folder.path()).output().unwrap();
    let resumed = resume();
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    let model = |run: &str| fs::read(folder.path().join(run).join("model/model.safetensors")).unwrap();
    assert!(model("whole") == model("killed"));
    let rows = fs::read_to_string(&table).unwrap();
    fs::write(
        &table,
        rows.replacen("person 399\n", "person 398\n", 1).replacen("person 399,", "person 398,", 1),
    )
    .unwrap();
    let other = resume();
    let said = text(&other.stderr);
    assert!(other.status.code() == Some(2) && said.contains("is of another"), "{said}");
}

#[test]
fn options_and_plans_that_do_not_go_with_persons_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_table(&folder.path().join("table.csv"));
    let refused = |more: &[&str]| refused(more, folder.path());
    assert!(refused(&["--max-examples-per-user", "3"]).contains("--user <COLUMN>"));
    assert!(refused(&["--user", "who", "--max-examples-per-user", "0"]).contains("max-examples-per-user"));
    assert!(refused(&["--user", "nobody"]).contains("with a column \"nobody\""));
    assert!(refused(&["--user", "late"]).contains("neither the label nor a feature"));
    let audited = refused(&["--user", "who", "--audit", "3"]);
    assert!(audited.contains("--audit is 3 but must be left out where users are protected (--user"));
    assert!(refused(&["--user", "who", "--test", "table.csv"]).contains("with rows of the user"));
    let digits = antinoise(&["train", "--user", "who"], folder.path()).output().unwrap();
    assert!(text(&digits.stderr).contains("--user is given but must be left out unless --data is"));
    let plan = |examples: &str, more: &[&str], out: &str| {
        let words = ["plan", "--examples", examples, "--batch-size", "40", "--epochs", "2", "--epsilon", "2"];
        let rest = ["--delta", "1e-5", "--setting", "cyclic", "--strategy", "identity", "--out", out];
        let output = antinoise(&[&words, &rest[..], more].concat(), folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    plan("318", &["--max-examples-per-user", "4"], "users.toml");
    plan("319", &["--max-examples-per-user", "4"], "fewer.toml");
    let said = plan("318", &[], "examples.toml");
    assert!(said.contains("--max-examples-per-user M plans for persons"), "{said}");
    // The mechanism and the setting are the plan's.
    let train = |words: &[&str]| {
        let arguments: Vec<&str> = TABLE[..7].iter().chain(words).copied().collect();
        let output = antinoise(&arguments, folder.path()).output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    for (words, said) in [
        (&["--plan", "users.toml"][..], "unit of the plan is user but must be example"),
        (&["--plan", "examples.toml", "--user", "who"], "unit of the plan is example but must be user"),
        (&["--plan", "fewer.toml", "--user", "who"], "319 but must be 318, the training users"),
    ] {
        let found = train(words);
        assert!(found.0 == Some(2) && found.1.contains(said), "{words:?}: {found:?}");
    }
    assert_eq!(train(&["--plan", "users.toml", "--user", "who"]).0, Some(0));
    fs::write(folder.path().join("key"), [7; 32]).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(folder.path().join("key"), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let batches = antinoise(&["batches", "--plan", "users.toml", "--key-file", "key"], folder.path());
    let batches = { batches }.output().unwrap();
    assert!(batches.status.code() == Some(2) && text(&batches.stderr).contains("batches are of users"));
}

/// A PNG image of 4 x 4 pixels of one grey.
fn grey(value: u8) -> Vec<u8> {
    let mut image = Vec::new();
    let mut encoder = png::Encoder::new(&mut image, 4, 4);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.write_header().unwrap().write_image_data(&[value; 16]).unwrap();
    image
}

/// Images of 60 persons, one to four of each: in folders of persons, in folders of classes with a file of
/// users, and in the format of MNIST with a file of users.
fn write_images(folder: &Path) -> usize {
    let (mut names, mut pixels, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    for (class, label) in [("dark", 0u8), ("light", 1)] {
        for person in 100..160 {
            for image in 0..(1 + person % 2) {
                let value = 40 + 100 * label + (person % 37) as u8 + image as u8;
                let nested = folder.join(format!("persons/train/{class}/p{person}"));
                let flat = folder.join(format!("images/train/{class}"));
                for (at, name) in [(nested, format!("{image}.png")), (flat, format!("{person}-{image}.png"))]
                {
                    fs::create_dir_all(&at).unwrap();
                    fs::write(at.join(name), grey(value)).unwrap();
                }
                names.push(format!("p{person}"));
                pixels.extend([value; 16]);
                labels.push(label);
            }
        }
        for (at, value) in [("persons", 60), ("images", 60)] {
            let inner = if at == "persons" { "another" } else { "" };
            let test = folder.join(at).join("test").join(class).join(inner);
            fs::create_dir_all(&test).unwrap();
            fs::write(test.join("1.png"), grey(value + 100 * label)).unwrap();
        }
    }
    fs::write(folder.join("users.txt"), names.join("\n") + "\n").unwrap();
    let idx = folder.join("idx");
    fs::create_dir_all(&idx).unwrap();
    let write = |part: &str, pixels: &[u8], labels: &[u8]| {
        let count = (labels.len() as u32).to_be_bytes();
        let images = [&[0, 0, 8, 3][..], &count, &[0, 0, 0, 4, 0, 0, 0, 4], pixels].concat();
        fs::write(idx.join(format!("{part}-images-idx3-ubyte")), images).unwrap();
        fs::write(
            idx.join(format!("{part}-labels-idx1-ubyte")),
            [&[0, 0, 8, 1], &count[..], labels].concat(),
        )
        .unwrap();
    };
    write("train", &pixels, &labels);
    write("t10k", &[[60; 16], [160; 16]].concat(), &[0, 1]);
    names.len()
}

#[test]
fn persons_of_images_are_named_by_folders_or_by_a_file() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(write_images(folder.path()), 180);
    let fixed = "--model logistic --mechanism identity --setting cyclic --batch-size 15 --epochs 3 --seed 4";
    let train = |data: &str, persons: &str, out: &str| {
        let words = format!("train --data {data} {persons} {fixed} --out {out}");
        antinoise(&words.split_whitespace().collect::<Vec<_>>(), folder.path()).output().unwrap()
    };
    let sources = [
        ("images:persons", "--user folder", "folders", "images in folders of one name. "),
        ("images:images", "--users users.txt", "lines", "examples with one name in the file of users. "),
        ("idx:idx", "--users users.txt", "idx", "examples with one name in the file of users. "),
    ];
    let mut models = Vec::new();
    for (data, persons, out, words) in sources {
        let output = train(data, persons, out);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains("Epsilon is that of a user with all of their examples."));
        let read = |name: &str| fs::read(folder.path().join(out).join("model").join(name)).unwrap();
        models.push(read("model.safetensors"));
        assert!(text(&read("plan.toml")).contains("examples = 60\n"));
        assert!(text(&read("README.md")).contains("| training users | 60 |"));
        let statement = text(&read("statement.txt")).split_whitespace().collect::<Vec<_>>().join(" ");
        let words = format!("the training {}", words.split(". ").next().unwrap());
        assert!(statement.contains(&words) && statement.contains("data of every single user"), "{statement}");
        assert_eq!(statement.contains("was not checked"), out != "folders");
    }
    assert!(models[0] == models[1] && models[1] == models[2]);

    for (data, persons, words) in [
        ("images:images", "--user who", "--user is given but must be left out unless --data is"),
        ("idx:idx", "--user folder", "--user is given but must be left out unless --data is"),
        (
            "images:images",
            "--user folder",
            "must be moved elsewhere: its folder must hold only folders, one for each person",
        ),
        ("images:persons", "--users users.txt", "is in the way"),
        ("idx:idx", "--users users.txt --user folder", "cannot be used with"),
        ("idx:idx", "--max-examples-per-user 3", "--user <COLUMN>"),
        ("idx:idx", "--users absent.txt", "absent.txt is absent but must be a text file"),
        ("idx:idx", "--users users.txt --audit 3", "left out where users are protected (--user, --users)"),
        ("idx:idx", "--users users.txt --setting stream", "setting"),
        ("csv:table.csv --label late=no,yes --range x=0:9", "--users users.txt", "--user COLUMN"),
    ] {
        let data = data.replace("table.csv", "users.txt");
        let output = train(&data, persons, "refused");
        let said = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(output.status.code() == Some(2) && said.contains(words), "{words}: {said}");
    }
    // A run is not resumed if an example has become another person's.
    let path = folder.path().join("users.txt");
    let names = fs::read_to_string(&path).unwrap();
    fs::remove_dir_all(folder.path().join("lines/model")).unwrap();
    for (names, code) in [(names.replacen("p100\n", "p101\n", 1), 2), (names.replacen("p100\n", "", 1), 2)] {
        fs::write(&path, names).unwrap();
        let output = antinoise(&["train", "--resume", "lines"], folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    }
}
