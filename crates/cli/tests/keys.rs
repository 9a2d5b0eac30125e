//! Keys and runs: which commands make the same bits, which none in common, and which keys are refused.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.key("key", b"antinoise tests use this as key.", 0o600);
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn key(&self, name: &str, bytes: &[u8], mode: u32) {
        std::fs::write(self.path(name), bytes).unwrap();
        #[cfg(unix)]
        std::fs::set_permissions(self.path(name), std::os::unix::fs::PermissionsExt::from_mode(mode))
            .unwrap();
    }

    fn antinoise(&self, arguments: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_antinoise"));
        command.current_dir(self.0.path()).args(arguments.split_whitespace()).output().unwrap()
    }

    fn json(&self, arguments: &str) -> Value {
        let output = self.antinoise(&format!("{arguments} --json"));
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Rows of noise, by a process of their own.
    fn noise(&self, options: &str) -> Vec<f32> {
        self.json(&format!("noise --steps 8 --dim 4096 --key-file key --out noise.npy --force {options}"));
        rows(&self.path("noise.npy"))
    }
}

fn rows(path: &Path) -> Vec<f32> {
    let file = std::fs::read(path).unwrap();
    let header = 10 + u16::from_le_bytes([file[8], file[9]]) as usize;
    file[header..].chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

/// In standard deviations of what independent numbers show.
fn correlation(a: &[f32], b: &[f32]) -> f64 {
    let dot = |x: &[f32], y: &[f32]| -> f64 { x.iter().zip(y).map(|(x, y)| f64::from(x * y)).sum() };
    dot(a, b).abs() / (dot(a, a) * dot(b, b)).sqrt() * (a.len() as f64).sqrt()
}

#[test]
fn parts_and_steps_of_one_stream_fit_together() {
    let folder = Folder::new();
    let whole = folder.noise("--strategy blt:2");
    for part in 0..4 {
        let rows = folder.noise(&format!("--strategy blt:2 --shard {part}/4 --from 3 --count 2 --run 0"));
        for (row, step) in rows.chunks_exact(1024).zip(3..) {
            assert_eq!(row, &whole[step * 4096 + part * 1024..][..1024], "part {part}, step {step}");
        }
    }
}

#[test]
fn other_strategies_scales_and_runs_share_nothing_under_one_key_file() {
    let folder = Folder::new();
    let noise: Vec<Vec<f32>> = [
        "--strategy identity",
        "--strategy identity --noise-std 2",
        "--strategy identity --run 1",
        "--strategy blt:2",
        "--strategy blt:3",
    ]
    .map(|options| folder.noise(options))
    .into();
    for (i, a) in noise.iter().enumerate() {
        for b in &noise[..i] {
            // 8 x 4096 numbers: above 6 with probability 2e-9.
            assert!(correlation(a, b) < 6.0);
        }
    }
    let report = |options| {
        folder.json(&format!(
            "noise --steps 8 --dim 9 --key-file key --out noise.npy --force --count 1 {options}"
        ))
    };
    let (one, shard) = (report("--strategy identity"), report("--strategy identity --shard 1/3 --run 7"));
    assert_eq!(one["description"], shard["description"]);
    assert_eq!((one["run"].as_str(), shard["run"].as_str()), (Some("0"), Some("7")));
    assert_ne!(one["description"], report("--strategy workload")["description"]);
}

#[cfg(unix)]
#[test]
fn keys_that_are_none_are_refused_with_what_to_do() {
    let folder = Folder::new();
    let random = b"antinoise tests use this as key.";
    folder.key("shared", random, 0o640);
    folder.key("zeros", &[0; 32], 0o600);
    folder.key("hex-zeros", &[b'0'; 64], 0o600);
    folder.key("short", &random[1..], 0o600);
    for (key, says) in [
        ("shared", "chmod 600"),
        ("zeros", "the same byte 32 times"),
        ("hex-zeros", "the same byte 32 times"),
        ("short", "31 bytes"),
        (".", "not a regular file"),
    ] {
        let arguments =
            format!("noise --strategy identity --steps 2 --dim 3 --key-file {key} --out noise.npy --json");
        let output = folder.antinoise(&arguments);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(says) && output.stdout.is_empty(), "{message}");
    }
    assert!(!folder.path("noise.npy").exists());
    // Noise itself is as secret as the key.
    folder.noise("--strategy identity --count 1");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&folder.path("noise.npy").metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn noise_without_room_in_single_precision_is_refused() {
    let folder = Folder::new();
    for noise_std in ["1e-46", "1e39"] {
        let output = folder.antinoise(&format!(
            "noise --strategy identity --steps 2 --dim 3 --key-file key --out noise.npy --noise-std {noise_std}"
        ));
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("--noise-std is") && message.contains("2^-100"), "{message}");
    }
    assert!(!folder.path("noise.npy").exists());
}

#[test]
fn batches_are_those_of_the_sampler_by_key_and_run() {
    let folder = Folder::new();
    for (setting, plan) in [("cyclic", "cyclic.toml"), ("poisson", "poisson.toml")] {
        folder.json(&format!(
            "plan --examples 120 --batch-size 12 --epochs 2 --epsilon 4 --delta 1e-3 --setting {setting} --out {plan}"
        ));
        let batches = |options: &str| -> Vec<Vec<usize>> {
            let report = folder.json(&format!("batches --plan {plan} --key-file key {options}"));
            serde_json::from_value(report["batches"].clone()).unwrap()
        };
        let all = batches("");
        assert_eq!(all.len(), 20);
        assert_eq!(all, batches("--run 0"));
        assert_eq!(all[7..10], batches("--from 7 --count 3"));
        assert_ne!(all, batches("--run 1"));
        assert!(all.iter().flatten().all(|&example| example < 120));
        if setting == "cyclic" {
            let mut epoch = all[..10].concat();
            epoch.sort_unstable();
            assert_eq!(epoch, (0..120).collect::<Vec<_>>());
        }
    }
    folder.json("plan --examples 125 --batch-size 12 --epochs 1 --epsilon 4 --delta 1e-3 --setting stream --out stream.toml");
    let report = folder.json("batches --plan stream.toml --key-file key --from 9");
    assert_eq!(report["batches"], serde_json::json!([(108..120).collect::<Vec<_>>()]));
    let output = folder.antinoise("batches --plan cyclic.toml --key-file key --from 20");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn batches_of_examples_with_several_owners_keep_the_plan_of_the_owners() {
    let folder = Folder::new();
    let owners: Vec<String> = (0..200).map(|i| format!("{},{}", i % 17, (i * i + 3) % 17)).collect();
    std::fs::write(folder.path("owners.txt"), owners.join("\n")).unwrap();
    let rest = "--batch-size 3 --steps 20 --epsilon 8 --setting federated --min-sep 3 --max-participations 4";
    let planned = folder.json(&format!("plan --owners owners.txt {rest} --out owners.toml"));
    assert_eq!(planned["plan"], folder.json(&format!("plan --examples 17 {rest}"))["plan"]);
    let report = folder.json("batches --plan owners.toml --key-file key --owners owners.txt");
    let batches: Vec<Vec<usize>> = serde_json::from_value(report["batches"].clone()).unwrap();
    assert!(batches.len() == 20 && batches[0].len() == 3 && report["assumption"].is_string());
    let mean = batches.iter().map(Vec::len).sum::<usize>() as f64 / 20.0;
    assert!(
        planned["owned_examples"] == 200 && (planned["mean_batch_size"].as_f64().unwrap() - mean).abs() < 0.5
    );
    let assumed = planned["statement"]["assumptions"].to_string();
    assert!(assumed.contains(report["assumption"].as_str().unwrap()), "{assumed}");
    for owner in (0..17).map(|owner| owner.to_string()) {
        let owns = |example: &usize| owners[*example].split(',').any(|name| name == owner);
        let steps: Vec<usize> =
            (0..20).flat_map(|step| batches[step].iter().filter(|e| owns(e)).map(move |_| step)).collect();
        assert!(
            steps.len() <= 4 && steps.windows(2).all(|pair| pair[1] - pair[0] >= 3),
            "{owner}: {steps:?}"
        );
    }
    std::fs::write(folder.path("nobody.txt"), "ada\n\nbob").unwrap();
    let marked = [
        ("quoted.txt", "\"ada,bob\"\nada"),
        ("listed.txt", "ada\n[ada, bob]"),
        ("semicolons.txt", "ada;bob\nada"),
        ("returns.txt", "ada\rbob\rada"),
        ("header.txt", "owners\nada"),
    ];
    for (name, text) in marked {
        std::fs::write(folder.path(name), text).unwrap();
    }
    // A byte-order mark is no part of the first name, and epochs are passes over the examples.
    std::fs::write(folder.path("marked.txt"), "\u{feff}ada,bob\r\nada\r\nbob\r\n").unwrap();
    let request = "--batch-size 1 --epochs 2 --epsilon 8 --setting federated --min-sep 2 --strategy identity";
    let planned = folder.json(&format!("plan --owners marked.txt {request}"));
    assert_eq!((&planned["plan"]["examples"], &planned["plan"]["steps"]), (&2.into(), &6.into()));
    for (options, words) in [
        ("--owners quoted.txt", "line 1 is \"ada,bob\""),
        ("--owners listed.txt", "line 2"),
        ("--owners semicolons.txt", "without quotes"),
        ("--owners returns.txt", "line 1"),
        ("--owners header.txt", "has no header"),
        ("", "--owners is absent"),
        ("--owners nobody.txt", "owner of example 1 is empty but must be given"),
        ("--owners none.txt", "--owners is none.txt"),
    ] {
        let output = folder.antinoise(&format!("batches --plan owners.toml --key-file key {options}"));
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && message.contains(words), "{message}");
    }
}
