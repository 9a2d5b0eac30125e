//! Every flag of every command with values that cannot be used: exit status 2, nothing on stdout, and a
//! message that names the flag.

use std::process::{Command, Output};

fn antinoise(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_antinoise")).args(arguments).output().expect("the binary runs")
}

/// A command that works, and what each of its flags must refuse.
struct Case {
    command: &'static str,
    flags: &'static [(&'static str, &'static [&'static str])],
}

const COUNT: &[&str] = &["x", "0", "-1", "nan", "1.5", "1e300", "99999999999999999999", ""];
const OPTIONAL_COUNT: &[&str] = &["x", "-1", "nan", "1.5", "1e300", ""];
const POSITIVE: &[&str] = &["x", "0", "-1", "nan", "inf", ""];
const PROBABILITY: &[&str] = &["x", "0", "-1", "nan", "1", "2", "inf", ""];
const NAME: &[&str] = &["x", "", "0"];
const FOLDER: &[&str] = &["/nonexistent/folder/file"];
const WORKLOAD: &[&str] = &[
    "x",
    "",
    "momentum",
    "momentum:1",
    "momentum:nan",
    "momentum:-1",
    "nesterov:2",
    "decay:1",
    "window:0",
    "window:-1",
    "cooldown:3",
    "cooldown:9999999999,0.5",
    "cooldown:1,-1",
    "schedule:/nonexistent",
    "schedule:/nonexistent,0.9",
    "last-iterate:0.9,0.05,/nonexistent",
    "learned:/nonexistent",
    "file:/nonexistent",
];
const PARTICIPATION: &[&str] = &[
    "x",
    "",
    "cyclic",
    "cyclic:0,1",
    "cyclic:4,0",
    "cyclic:4,9",
    "cyclic:-1,2",
    "min-sep:33,1",
    "min-sep:8,5",
    "file:/nonexistent",
];
const STRATEGY: &[&str] =
    &["x", "", "blt:0", "blt:x", "blt:999", "banded-toeplitz:0", "banded-toeplitz:33", "file:/nonexistent"];

const CASES: &[Case] = &[
    Case {
        command: "loss --steps 32 --strategy blt",
        flags: &[
            ("--steps", COUNT),
            ("--strategy", STRATEGY),
            ("--order", &["0", "x", "-1", "nan", "17", "1e300"]),
            ("--bands", &["4"]),
            ("--workload", WORKLOAD),
            ("--objective", NAME),
            ("--participation", PARTICIPATION),
            ("--adjacency", NAME),
            ("--restarts", &["0", "33", "x", "-1", "nan"]),
            ("--out", FOLDER),
        ],
    },
    Case {
        command: "loss --steps 32 --strategy banded-toeplitz",
        flags: &[("--bands", &["0", "33", "x", "-1", "nan", "1e300"]), ("--order", &["2"])],
    },
    Case {
        command: "account --noise-multiplier 1 --delta 1e-5",
        flags: &[
            ("--noise-multiplier", POSITIVE),
            ("--delta", PROBABILITY),
            ("--mu", &["1"]),
            ("--epsilon", &["1"]),
            ("--adjacency", NAME),
        ],
    },
    Case {
        command: "account --mu 1 --epsilon 1",
        flags: &[("--mu", POSITIVE), ("--epsilon", &["x", "-1", "nan", "inf"])],
    },
    Case {
        command: "account --plan /nonexistent/plan.toml --observed /nonexistent/ledger.db",
        flags: &[("--plan", &["/nonexistent/other-plan.toml"])],
    },
    Case {
        command: "calibrate --epsilon 1 --delta 1e-5",
        flags: &[("--epsilon", POSITIVE), ("--delta", PROBABILITY), ("--adjacency", NAME)],
    },
    Case {
        command: "plan --examples 1000 --batch-size 50 --epochs 2 --epsilon 1 --delta 1e-5 --setting cyclic",
        flags: &[
            ("--examples", COUNT),
            ("--batch-size", &["x", "0", "-1", "nan", "1001", "1e300"]),
            ("--epochs", COUNT),
            ("--steps", &["10"]),
            ("--epsilon", POSITIVE),
            ("--delta", PROBABILITY),
            ("--setting", NAME),
            ("--min-sep", &["5"]),
            ("--max-participations", &["5"]),
            ("--dim", OPTIONAL_COUNT),
            ("--memory", OPTIONAL_COUNT),
            ("--workload", &["x", "momentum:1"]),
            ("--adjacency", NAME),
            ("--objective", NAME),
            ("--clip-norm", POSITIVE),
            ("--clip-norm", &["1e-300", "1e308", "1e-46", "1e39"]),
            ("--release", NAME),
            ("--strategy", &["x", "blt:0", "banded-toeplitz:41"]),
            ("--noise-time", &["1"]),
            ("--tolerance", &["x", "-1", "1", "nan", "inf", ""]),
            ("--sweep", NAME),
            ("--plot", FOLDER),
            ("--out", FOLDER),
        ],
    },
    Case {
        command: "plan --examples 1000 --batch-size 50 --epochs 2 --epsilon 1 --delta 1e-5 --setting cyclic --dim 1000",
        flags: &[("--memory", &["x", "-1", "nan", "1.5"]), ("--noise-time", POSITIVE)],
    },
    Case {
        command: "advise --examples 1000 --epsilon 1 --time 100 --examples-per-second 100",
        flags: &[
            ("--examples", COUNT),
            ("--epsilon", POSITIVE),
            ("--dim", OPTIONAL_COUNT),
            ("--memory", OPTIONAL_COUNT),
            ("--time", POSITIVE),
            ("--examples-per-second", POSITIVE),
        ],
    },
    Case {
        command: "plan --examples 1000 --batch-size 50 --steps 40 --epsilon 1 --delta 1e-5 --setting federated \
                  --min-sep 10",
        flags: &[("--min-sep", &["0", "41", "x"]), ("--max-participations", &["0", "5", "x"])],
    },
    Case {
        command: "plan --examples 1000 --batch-size 50 --epochs 2 --epsilon 1 --delta 1e-5 --setting poisson",
        flags: &[("--strategy", &["banded-toeplitz:21"])],
    },
    Case {
        command: "plan --examples 1000 --batch-size 50 --steps 20 --epsilon 1 --delta 1e-5 --setting stream",
        flags: &[
            ("--steps", &["0", "21", "x"]),
            ("--min-sep", &["5"]),
            ("--strategy", &["banded-toeplitz:21"]),
        ],
    },
    Case {
        command: "bands --examples 1000 --batch-size 50 --epochs 2 --epsilon 1 --delta 1e-5",
        flags: &[
            ("--examples", COUNT),
            ("--batch-size", &["x", "0", "-1", "nan", "1001", "50,", "10,20"]),
            ("--epochs", COUNT),
            ("--epsilon", &["x", "0", "-1", "nan", "inf", "1,", "1,0"]),
            ("--delta", PROBABILITY),
            ("--bands", &["x", "0", "21", "4,41", "-1", ""]),
            ("--against", &["x", "blt:x", "blt,"]),
            ("--workload", &["x", "momentum:1"]),
            ("--objective", NAME),
            ("--plot", FOLDER),
        ],
    },
    Case {
        command: "account --noise-multiplier 1 --delta 1e-5 --sampling-rate 0.1 --steps 10",
        flags: &[
            ("--sampling-rate", &["x", "0", "-1", "nan", "1.1", "inf"]),
            ("--steps", COUNT),
            ("--bands", &["0", "11", "x", "-1"]),
            ("--group-size", &["0", "x", "-1", "nan"]),
        ],
    },
    Case {
        command: "account --noise-multiplier 1 --delta 1e-3 --balls-in-bins 2 --steps 4 --strategy identity",
        flags: &[
            ("--balls-in-bins", &["0", "5", "x", "-1"]),
            ("--steps", COUNT),
            ("--strategy", &["x", "blt:x", "tree", "fourier"]),
            ("--adjacency", &["replace-one"]),
            ("--noise-multiplier", POSITIVE),
            ("--delta", PROBABILITY),
        ],
    },
    Case {
        command: "calibrate --epsilon 1 --delta 1e-5 --noise-multiplier 2 --steps 10",
        flags: &[
            ("--bands", &["2"]),
            ("--noise-multiplier", POSITIVE),
            ("--steps", COUNT),
            ("--adjacency", &["replace-one"]),
        ],
    },
    Case {
        command: "calibrate --epsilon 1 --delta 1e-5 --sampling-rate 0.1 --steps 10",
        flags: &[("--sampling-rate", &["x", "0", "-1", "nan", "1.1", "inf"]), ("--steps", COUNT)],
    },
    Case {
        command: "compare --strategies identity --steps 8",
        flags: &[
            ("--strategies", &["x", "", "identity,y", "identity+x", "blt:x"]),
            ("--steps", &["x", "0", "8,-1", "nan", ""]),
            ("--objective", NAME),
            ("--participation", &["x", "cyclic:9,1"]),
            ("--workload", &["x", "cooldown:8,1"]),
            ("--format", NAME),
            ("--plot", FOLDER),
        ],
    },
    Case {
        command: "noise --strategy identity --steps 8 --dim 10 --key-file /nonexistent/key --out /tmp/antinoise-never-written.npy",
        flags: &[
            ("--strategy", &["x", "blt:0"]),
            ("--steps", COUNT),
            ("--dim", &["x", "0", "-1", "nan"]),
            ("--from", &["8", "x", "-1"]),
            ("--count", &["0", "9", "x"]),
            ("--shard", &["1/1", "x", "-1/2", "1/0"]),
            ("--noise-std", POSITIVE),
            ("--key-file", &["/nonexistent/other"]),
            ("--run", &["", "two\nlines"]),
        ],
    },
    Case {
        command: "batches --plan /nonexistent/plan.toml --key-file /nonexistent/key",
        flags: &[
            ("--plan", &["/nonexistent/other-plan.toml"]),
            ("--from", &["x", "-1"]),
            ("--count", &["x", "-1"]),
            ("--run", &[""]),
        ],
    },
    Case {
        command: "bench noise --dim 1000 --threads 1",
        flags: &[("--dim", COUNT), ("--threads", &["0", "x", "-1", "nan", "1e9"])],
    },
    #[cfg(feature = "train")]
    Case {
        command: "audit-training --plan /nonexistent/plan.toml",
        flags: &[
            ("--plan", &["/nonexistent/other-plan.toml"]),
            ("--model", NAME),
            ("--canary", NAME),
            ("--canaries", &["x", "-1", "nan", ""]),
            ("--alpha", &["x", ""]),
        ],
    },
    #[cfg(feature = "train")]
    Case {
        command: "train --data csv:/nonexistent/table.csv --label late=no,yes --range distance=0:5000",
        flags: &[
            ("--label", &["", "late", "late=no", "late=no,no", "late=,", "distance=no,yes"]),
            ("--range", &["", "x", "x=1", "x=1:1", "x=2:1", "x=nan:1", "x=0:inf", "late=0:1"]),
            ("--category", &["", "x", "x=", "x=a,a", "x=a,", "distance=a", "late=a"]),
            ("--missing", NAME),
            ("--schema", &["/nonexistent"]),
            ("--test-share", &["x", "0", "1", "-1", "nan"]),
            ("--test", &["/nonexistent"]),
        ],
    },
    #[cfg(feature = "train")]
    Case {
        command: "train --epochs 1 --repeats 1 --learning-rate 0.1",
        flags: &[
            ("--data", &["x", "", "idx:/nonexistent", "fashion-mnist:/nonexistent", "csv"]),
            ("--metrics", FOLDER),
            ("--model", NAME),
            ("--plan", &["/nonexistent/plan.toml"]),
            ("--epsilon", POSITIVE),
            ("--delta", PROBABILITY),
            ("--epochs", COUNT),
            ("--steps", &["10"]),
            ("--batch-size", &["x", "0", "-1", "nan", "100000"]),
            ("--setting", NAME),
            ("--mechanism", &["x", "", "blt:0"]),
            ("--objective", NAME),
            ("--workload", &["x", "momentum:1"]),
            ("--adjacency", NAME),
            ("--clip-norm", POSITIVE),
            ("--release", NAME),
            ("--learning-rate", POSITIVE),
            ("--momentum", &["x", "1", "-1", "nan"]),
            ("--optimizer", NAME),
            ("--schedule", &["x", "", "linear:2", "cosine:nan", "cooldown:0", "drop:1"]),
            ("--warm-up", &["x", "-1", "nan", "1.5", "15"]),
            ("--weight-decay", &["x", "-1", "nan", "inf", "10"]),
            ("--zero-beyond", POSITIVE),
            ("--repeats", &["x", "0", "-1", "nan"]),
            ("--published-models", &["x", "0", "-1", "2"]),
            ("--seed", &["x", "-1", "nan", "1.5"]),
            ("--resume", &["/nonexistent"]),
        ],
    },
];

/// The command with the flag's value replaced, or added.
fn with_flag<'a>(command: &'a str, flag: &'a str, value: &'a str) -> Vec<&'a str> {
    let mut arguments: Vec<&str> = command.split_whitespace().collect();
    match arguments.iter().position(|&argument| argument == flag) {
        Some(at) => arguments[at + 1] = value,
        None => arguments.extend([flag, value]),
    }
    arguments
}

/// What a message may call the flag: itself, as it is written, or the part of its value that is wrong.
fn names(flag: &str) -> Vec<String> {
    let name = flag.trim_start_matches("--");
    let parts: &[&str] = match name {
        "strategy" | "mechanism" => &["order", "bands"],
        "strategies" => &["strategy"],
        "key-file" => &["key", "/nonexistent/other"],
        "data" => &["Fashion-MNIST"],
        "label" => &["column", "classes"],
        "range" | "category" => &["column"],
        // The table is looked for first.
        "test" | "test-share" => &["table.csv"],
        "plan" => &["plan.toml"],
        "participation" => &["min_sep", "max_participations"],
        "workload" => &["momentum", "gamma", "width", "last"],
        // It is a budget for a given number of parameters.
        "noise-time" => &["dim"],
        _ => &[],
    };
    std::iter::once(flag).chain(parts.iter().copied()).map(String::from).collect()
}

#[test]
fn every_flag_refuses_what_it_cannot_use() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let mut refused = 0;
    for case in CASES {
        for (flag, values) in case.flags {
            for value in *values {
                let mut arguments = with_flag(case.command, flag, value);
                if case.command.starts_with("train") {
                    arguments.extend(["--out", out.to_str().unwrap()]);
                }
                let output = antinoise(&arguments);
                let stderr = String::from_utf8_lossy(&output.stderr);
                assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
                assert!(output.stdout.is_empty(), "{arguments:?}");
                let named = names(flag).iter().any(|name| stderr.contains(name.as_str()));
                assert!(named, "{arguments:?} does not name {flag}: {stderr}");
                refused += 1;
            }
        }
    }
    assert!(refused > 200, "{refused}");
    assert!(!out.exists(), "a refused run leaves no folder behind");
}

/// A negative exponent is no flag: the parameter is named with what it got.
#[test]
fn small_negative_numbers_are_refused_by_name() {
    let plan = "plan --examples 1000 --batch-size 50 --epochs 2 --epsilon 1 --setting cyclic";
    for (command, flag, got) in [
        ("account --noise-multiplier 1", "--delta", "-1e-5"),
        ("calibrate --epsilon 1", "--delta", "-1e-5"),
        ("calibrate --delta 1e-5", "--epsilon", "-2.5E-3"),
        (plan, "--delta", "-1e-5"),
    ] {
        let arguments: Vec<&str> = command.split_whitespace().chain([flag, got]).collect();
        let output = antinoise(&arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        let message = format!("{} is {:?} but must be", &flag[2..], got.parse::<f64>().unwrap());
        assert!(stderr.contains(&message), "{arguments:?}: {stderr}");
    }
}

#[test]
fn the_commands_of_the_table_work_without_the_bad_value() {
    for case in CASES
        .iter()
        .filter(|case| !case.command.contains("/nonexistent") && !case.command.starts_with("train"))
    {
        let output = antinoise(&case.command.split_whitespace().collect::<Vec<_>>());
        assert!(output.status.success(), "{:?}: {}", case.command, String::from_utf8_lossy(&output.stderr));
    }
}

#[cfg(feature = "train")]
#[test]
fn data_files_that_are_truncated_or_empty_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let names = [
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte",
    ];
    for contents in [&b""[..], &[0, 0, 8, 3, 0, 0, 0, 9, 0, 0], &[0xff; 64]] {
        for name in names {
            std::fs::write(folder.path().join(name), contents).unwrap();
        }
        let data = format!("idx:{}", folder.path().display());
        let out = folder.path().join("out");
        let output = antinoise(&["train", "--data", &data, "--out", out.to_str().unwrap()]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("ubyte"), "{stderr}");
        assert!(!out.exists());
    }
}

/// A terminal would obey what stands in a stranger's file.
#[test]
fn messages_show_control_characters_of_a_plan_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    let path = path.to_str().unwrap();
    let made =
        "plan --examples 600 --batch-size 50 --epochs 3 --epsilon 4 --delta 1e-5 --setting cyclic --out";
    let arguments: Vec<&str> = made.split_whitespace().chain([path]).collect();
    assert!(antinoise(&arguments).status.success());
    let text = std::fs::read_to_string(path).unwrap();
    let sent = "\\u001b]0;owned\\u0007";
    let fields = text.lines().filter(|line| line.ends_with('"'));
    let mut altered: Vec<String> = fields
        .map(|line| text.replacen(line, &format!("{}{sent}\"", line.strip_suffix('"').unwrap()), 1))
        .collect();
    altered.push(format!("\"{sent}\" = 1\n{text}"));
    assert!(altered.len() > 8, "{text}");
    for altered in altered {
        std::fs::write(path, &altered).unwrap();
        let output = antinoise(&["verify", path]);
        assert!(!output.status.success(), "{altered}");
        let shown = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
        assert!(shown.contains("owned"), "{shown}");
    }
}

/// What may be given for a required option or argument that is missing, also after options of the program.
#[test]
fn what_is_missing_says_its_values() {
    let plan = "plan --examples 60000 --batch-size 500 --epochs 4 --epsilon 4";
    let settings = "--setting is one of poisson, b-min-sep, cyclic, shuffled, federated, single, stream\n";
    let shells = "<SHELL> is one of bash, elvish, fish, powershell, zsh\n";
    for (command, values) in
        [(plan.to_string(), settings), (format!("--json {plan}"), settings), ("completions".into(), shells)]
    {
        let Output { status, stdout, stderr } = antinoise(&command.split(' ').collect::<Vec<_>>());
        let message = String::from_utf8(stderr).unwrap();
        assert!(status.code() == Some(2) && stdout.is_empty() && message.ends_with(values), "{message}");
    }
}
