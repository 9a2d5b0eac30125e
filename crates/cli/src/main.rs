//! The `antinoise` command line.

mod arguments;
mod commands;
mod failure;
mod output;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Correlated-noise mechanisms for differentially private learning: design, account, generate, train.
///
/// Every command takes --json: then stdout holds exactly one JSON object. Exit status: 0 done, 2 bad input,
/// 1 any other failure.
#[derive(Debug, Parser)]
#[command(name = "antinoise", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print one JSON object on stdout and nothing else.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Loss(commands::loss::Arguments),
    Account(commands::account::Arguments),
    Calibrate(commands::calibrate::Arguments),
    Plan(commands::plan::Arguments),
    Train(Box<commands::train::Arguments>),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match &cli.command {
        Command::Loss(arguments) => {
            commands::loss::run(arguments).map(|report| output::print(&report, cli.json))
        }
        Command::Account(arguments) => {
            commands::account::run(arguments).map(|report| output::print(&report, cli.json))
        }
        Command::Calibrate(arguments) => {
            commands::calibrate::run(arguments).map(|report| output::print(&report, cli.json))
        }
        Command::Train(arguments) => {
            commands::train::run(arguments).map(|report| output::print(&report, cli.json))
        }
        Command::Plan(arguments) => {
            commands::plan::run(arguments).map(|report| output::print(&report, cli.json))
        }
    };
    match done.and_then(|printed| printed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}
