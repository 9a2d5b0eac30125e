//! `antinoise release`: its contract, and kills at any moment between freezing and publishing.

mod kills;
mod marginals;
mod periods;
mod published;
mod settings;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn antinoise(folder: &Path, arguments: &[&str]) -> Output {
    let binary = env!("CARGO_BIN_EXE_antinoise");
    Command::new(binary).args(arguments).current_dir(folder).output().expect("the binary runs")
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = antinoise(folder, &[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("stdout is one JSON object")
}

fn refused(folder: &Path, arguments: &[&str], named: &str) {
    let output = antinoise(folder, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert!(stderr.contains(named), "{named:?} is not in {stderr}");
}

const EVENTS: [&str; 9] =
    ["--events", "events.csv", "--time", "day", "--user", "user", "--key", "shop", "--unknown=leave"];
const VALUE: [&str; 2] = ["--value", "value"];

fn init(folder: &Path, dir: &str) {
    init_with(folder, dir, &[]);
}

/// Everything that a query remembers or computes from the noisy cells.
const ALL_QUERIES: [&str; 8] = [
    "--query",
    "counts",
    "--query",
    "window:2",
    "--query",
    "cdf:10,20,30",
    "--query",
    "quantiles:0.5@10,20,30",
];

fn init_with(folder: &Path, dir: &str, queries: &[&str]) {
    let rows = |i: usize| {
        let (user, shop, value) = (i * 7 % 23, ["a", "b", "c", "?"][i % 4], i % 50);
        format!("{},u{user},{shop},{value},{}\n", i % 6, i * 13 % 31)
    };
    let rows: String = (0..600).map(rows).collect();
    std::fs::write(folder.join("events.csv"), format!("day,user,shop,value,weight\n{rows}")).unwrap();
    let options =
        ["--periods", "6", "--epsilon", "2", "--delta", "1e-6", "--unit", "user", "--max-periods", "3"];
    let init = ["release", "init", dir, "--keys", "a,b,c", "--max-rows", "2"];
    json(folder, &[&init[..], &options, queries].concat());
}

fn freeze(folder: &Path, dir: &str, period: &str) -> Value {
    json(folder, &[&["release", "freeze", dir, period][..], &EVENTS, &VALUE].concat())
}
