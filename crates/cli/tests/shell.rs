//! Completions and manual pages, as shells and readers of manuals take them.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn antinoise(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_antinoise")).args(arguments).output().expect("the binary runs")
}

fn printed(arguments: &[&str]) -> String {
    let output = antinoise(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The commands that `antinoise --help` lists, but `help` itself.
fn commands() -> Vec<String> {
    let help = printed(&["--help"]);
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let names = list.lines().take_while(|line| !line.is_empty());
    let names = names.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names
        .map(|line| line.split_whitespace().next().unwrap().to_string())
        .filter(|name| name != "help")
        .collect()
}

#[test]
fn every_shell_gets_a_script_that_names_every_command() {
    let commands = commands();
    assert!(commands.len() > 10 && commands.iter().any(|name| name == "completions"), "{commands:?}");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = printed(&["completions", shell]);
        for name in &commands {
            assert!(script.contains(name.as_str()), "{shell}: {name}");
        }
        let report: Value = serde_json::from_str(&printed(&["completions", shell, "--json"])).unwrap();
        assert_eq!(report["shell"], shell);
        assert_eq!(report["script"].as_str().unwrap().trim_end(), script.trim_end());
    }
    let refused = antinoise(&["completions", "tcsh"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said.contains("tcsh") && said.contains("SHELL") && said.contains("zsh"), "{said}");
}

/// What bash offers for a line of words, of which the last is being written.
fn offered(script: &Path, words: &str) -> String {
    let function = "source \"$1\"; COMP_WORDS=($2); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); \
                    _antinoise antinoise \"${COMP_WORDS[-1]}\" \"${COMP_WORDS[-2]}\"; echo \"${COMPREPLY[*]}\"";
    let bash = Command::new("bash").args(["-c", function, "bash"]).arg(script).arg(words).output().unwrap();
    assert!(bash.status.success() && bash.stderr.is_empty(), "{}", String::from_utf8_lossy(&bash.stderr));
    String::from_utf8(bash.stdout).unwrap()
}

#[test]
fn bash_completes_commands_and_options() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("antinoise.bash");
    std::fs::write(&script, printed(&["completions", "bash"])).unwrap();
    let checked = Command::new("bash").arg("-n").arg(&script).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    assert_eq!(offered(&script, "antinoise calib").trim(), "calibrate");
    assert_eq!(offered(&script, "antinoise loss --workl").trim(), "--workload");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("man1");
    let files = printed(&["man", "--out", out.to_str().unwrap()]);
    let name = |path: &str| Path::new(path).file_name().unwrap().to_str().unwrap().to_string();
    let names: Vec<String> = files.lines().map(name).collect();
    for command in commands() {
        assert!(names.contains(&format!("antinoise-{command}.1")), "{command} in {names:?}");
    }
    assert!(names.contains(&"antinoise-bench-noise.1".to_string()), "{names:?}");
    for file in files.lines() {
        let page = std::fs::read_to_string(file).unwrap();
        assert!(page.starts_with(".TH antinoise") && !page.contains("*(Aq"), "{file}: {page}");
        assert!(page.contains(".SH DESCRIPTION"), "{file}");
    }
    let loss = std::fs::read_to_string(out.join("antinoise-loss.1")).unwrap();
    assert!(loss.contains(".SH EXAMPLES\n.nf\n") && loss.contains("antinoise loss "), "{loss}");
    let first = std::fs::read_to_string(out.join("antinoise.1")).unwrap();
    assert_eq!(printed(&["man"]).trim_end(), first.trim_end());
}

#[test]
fn pages_that_are_there_are_kept_unless_forced() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, page) = (folder.path().to_str().unwrap(), folder.path().join("antinoise-plan.1"));
    std::fs::write(&page, "mine").unwrap();
    let refused = antinoise(&["man", dir]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).starts_with("error: --out is "), "{refused:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is written");
    let report: Value = serde_json::from_str(&printed(&["man", dir, "--force", "--json"])).unwrap();
    assert!(report["files"].as_array().unwrap().len() > 10);
    assert!(std::fs::read_to_string(&page).unwrap().contains(".TH antinoise-plan 1"));
    assert_eq!(antinoise(&["man", "--force"]).status.code(), Some(2));
    assert_eq!(antinoise(&["man", "/dev/null/man"]).status.code(), Some(2));
}
