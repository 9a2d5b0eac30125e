//! Every command that a help text or a document shows is run as it is rendered there.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rayon::prelude::*;
use tempfile::TempDir;

/// Widest line of an example: it fits a terminal of 80 columns as it stands.
const WIDEST: usize = 76;

fn antinoise(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_antinoise")).args(arguments).output().expect("the binary runs")
}

fn help(command: &[&str]) -> String {
    let output = antinoise(&[command, &["--help"]].concat());
    assert!(output.status.success(), "{command:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The commands that a help text lists, but `help` itself.
fn listed(help: &str) -> Vec<String> {
    let after = help.split_once("Commands:\n").map_or("", |(_, after)| after);
    after
        .lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap().to_string())
        .filter(|name| name != "help")
        .collect()
}

/// The help text of every command, subcommands of subcommands included.
fn help_texts(command: &[&str], texts: &mut Vec<(String, String)>) {
    let text = help(command);
    for name in listed(&text) {
        help_texts(&[command, &[name.as_str()]].concat(), texts);
    }
    texts.push((command.join(" "), text));
}

/// Lines of shell, continued lines joined.
fn joined<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in lines {
        let line = line.trim();
        let (text, more) = line.strip_suffix('\\').map_or((line, false), |text| (text.trim_end(), true));
        match commands.last_mut().filter(|_| goes_on) {
            Some(last) => *last = format!("{last} {text}"),
            None if text.is_empty() => {}
            None => commands.push(text.to_string()),
        }
        goes_on = more;
    }
    commands
}

fn examples(help: &str) -> Vec<String> {
    let after = help.split_once("Examples:\n").map_or("", |(_, after)| after);
    let lines = || after.lines().take_while(|line| line.starts_with("  "));
    for line in lines() {
        assert!(line.chars().count() <= WIDEST, "wider than {WIDEST}: {line}");
    }
    joined(lines())
}

/// Whether this build has the command: some need the feature `train`.
fn is_built(command: &str) -> bool {
    let name = command.split_whitespace().nth(1);
    cfg!(feature = "train") || !matches!(name, Some("train" | "probe" | "audit-training"))
}

/// The commands of a page's shell blocks that run this program.
fn shown(page: &str) -> Vec<String> {
    let blocks = page.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let commands = blocks.flat_map(|block| joined(block.lines()));
    commands.filter(|command| command.starts_with("antinoise ") && is_built(command)).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Four files in MNIST's format with a few images, for examples that read a user's own.
fn write_images(folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    for (part, count) in [("train", 200u32), ("t10k", 40)] {
        let pixels = (0..count * 28 * 28).map(|i| (i * 7919 % 251) as u8);
        let header = [0x803u32, count, 28, 28].map(u32::to_be_bytes).concat();
        let images: Vec<u8> = header.into_iter().chain(pixels).collect();
        std::fs::write(folder.join(format!("{part}-images-idx3-ubyte")), images).unwrap();
        let header = [0x801u32, count].map(u32::to_be_bytes).concat();
        let labels: Vec<u8> = header.into_iter().chain((0..count).map(|i| (i % 10) as u8)).collect();
        std::fs::write(folder.join(format!("{part}-labels-idx1-ubyte")), labels).unwrap();
    }
}

/// A small table of flights, for the same.
fn write_table(path: &Path) {
    let row = |i: usize| {
        format!("{},{},{}\n", i * 37 % 5000, ["EWR", "JFK", "LGA"][i % 3], ["no", "yes"][i / 3 % 2])
    };
    let rows: String = (0..2000).map(row).collect();
    std::fs::write(path, format!("distance,origin,late\n{rows}")).unwrap();
}

/// A folder with the files that examples of pages read.
fn folder_of_pages() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_images(&folder.path().join("images"));
    write_table(&folder.path().join("flights.csv"));
    std::fs::create_dir(folder.path().join("docs")).unwrap();
    for (file, copy) in [
        ("docs/visits.csv", "docs/visits.csv"),
        ("docs/visits.csv", "visits.csv"),
        ("docs/flights.csv", "docs/flights.csv"),
        ("docs/speeches.csv", "docs/speeches.csv"),
    ] {
        std::fs::copy(root().join(file), folder.path().join(copy)).unwrap();
    }
    folder
}

/// Runs one after the other in one folder, as a reader would; every one must succeed, and print something if
/// it is of this program.
fn run_all(commands: &[String], folder: &Path) {
    let binary = Path::new(env!("CARGO_BIN_EXE_antinoise")).parent().unwrap();
    let path = std::env::join_paths(
        std::iter::once(binary.to_path_buf())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    )
    .unwrap();
    for command in commands {
        let output = Command::new("bash")
            .args(["-c", command])
            .current_dir(folder)
            .env("PATH", &path)
            .output()
            .expect("bash is there");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}\n{stderr}");
        assert!(!output.stdout.is_empty() || !command.starts_with("antinoise"), "{command} prints nothing");
    }
}

#[test]
fn the_examples_of_every_help_text_work() {
    let mut texts = Vec::new();
    help_texts(&[], &mut texts);
    assert!(texts.len() > 10, "{texts:?}");
    texts.par_iter().for_each(|(command, text)| {
        let is_group = !listed(text).is_empty();
        let commands = examples(text);
        assert!(is_group || !commands.is_empty(), "{command} has no example");
        run_all(&commands, tempfile::tempdir().unwrap().path());
    });
}

#[test]
fn the_commands_of_the_documents_work() {
    let mut pages = vec![root().join("README.md"), root().join("crates/cli/README.md")];
    let docs = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    pages.extend(docs.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    let found: usize = pages
        .par_iter()
        .map(|page| {
            let commands = shown(&std::fs::read_to_string(page).unwrap());
            run_all(&commands, folder_of_pages().path());
            commands.len()
        })
        .sum();
    assert!(found >= 5, "{found}");
}
