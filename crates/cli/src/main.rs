//! The `antinoise` command line.

// Doc comments of options are help texts: their brackets are not links.
#![allow(rustdoc::broken_intra_doc_links)]

mod arguments;
mod commands;
mod failure;
mod output;
mod plot;

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
    Compare(commands::compare::Arguments),
    Show(commands::show::Arguments),
    Account(commands::account::Arguments),
    Calibrate(commands::calibrate::Arguments),
    Bands(commands::bands::Arguments),
    Plan(commands::plan::Arguments),
    Verify(commands::verify::Arguments),
    Audit(Box<commands::audit::Arguments>),
    Train(Box<commands::train::Arguments>),
    Noise(commands::noise::Arguments),
    Bench(commands::bench::Arguments),
}

fn run(cli: &Cli) -> failure::Result<ExitCode> {
    let printed = match &cli.command {
        Command::Loss(arguments) => output::print(&commands::loss::run(arguments)?, cli.json),
        Command::Compare(arguments) => output::print(&commands::compare::run(arguments)?, cli.json),
        Command::Show(arguments) => output::print(&commands::show::run(arguments)?, cli.json),
        Command::Account(arguments) => output::print(&commands::account::run(arguments)?, cli.json),
        Command::Calibrate(arguments) => output::print(&commands::calibrate::run(arguments)?, cli.json),
        Command::Bands(arguments) => output::print(&commands::bands::run(arguments)?, cli.json),
        Command::Plan(arguments) => output::print(&commands::plan::run(arguments)?, cli.json),
        Command::Verify(arguments) => {
            let report = commands::verify::run(arguments)?;
            output::print(&report, cli.json)?;
            return Ok(if report.holds { ExitCode::SUCCESS } else { ExitCode::from(2) });
        }
        Command::Audit(arguments) => {
            let report = commands::audit::run(arguments)?;
            output::print(&report, cli.json)?;
            if !report.accepted() {
                return Err(failure::Failure::other(format!(
                    "the mechanism is not what it claims to be: {}",
                    report.rejections()
                )));
            }
            return Ok(ExitCode::SUCCESS);
        }
        Command::Train(arguments) => output::print(&commands::train::run(arguments)?, cli.json),
        Command::Noise(arguments) => output::print(&commands::noise::run(arguments)?, cli.json),
        Command::Bench(arguments) => output::print(&commands::bench::run(arguments)?, cli.json),
    };
    printed.map(|()| ExitCode::SUCCESS)
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}
