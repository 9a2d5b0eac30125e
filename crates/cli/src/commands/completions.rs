//! `antinoise completions`: shell scripts that complete commands and options.

use std::fmt;

use clap::Args;
use clap_complete::Shell;
use serde::Serialize;

use crate::failure::{Failure, Result};

/// Print a script that lets a shell complete commands and options.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  source <(antinoise completions bash)
  antinoise completions fish | tee antinoise.fish
  antinoise completions zsh --json")]
pub struct Arguments {
    /// Shell that reads the script.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Output of `antinoise completions`.
#[derive(Debug, Serialize)]
pub struct CompletionScript {
    shell: String,
    script: String,
}

/// Writes the script for the commands of `program`.
pub fn run(arguments: &Arguments, mut program: clap::Command) -> Result<CompletionScript> {
    let (shell, name, mut script) = (arguments.shell, program.get_name().to_string(), Vec::new());
    clap_complete::generate(shell, &mut program, name, &mut script);
    Ok(CompletionScript {
        shell: shell.to_string(),
        script: String::from_utf8(script).map_err(Failure::other)?,
    })
}

impl fmt::Display for CompletionScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.script)
    }
}
