//! The `antinoise` command line, as a function of its arguments. The program `antinoise` and
//! `python -m antinoise` call it.
//!
//! ```
//! assert_eq!(antinoise_cli::run(["antinoise", "calibrate", "--epsilon", "2", "--delta", "1e-6"]), 0);
//! assert_eq!(antinoise_cli::run(["antinoise", "calibrate", "--epsilon", "-2", "--delta", "1e-6"]), 2);
//! ```
//!
//! Layers: each line uses only the lines above it.
//!
//! ```layers
//! failure, numbers, progress: errors and exit statuses; numbers as people write them; progress messages
//! output, plot, signals, arguments: printing and drawing; Ctrl-C; shared options
//! destination, source: output files; the mechanism selected by the options
//! commands: one file for each command
//! ```

// Doc comments of options are help texts: their brackets are not links.
#![allow(rustdoc::broken_intra_doc_links)]

mod arguments;
mod commands;
mod destination;
mod failure;
mod numbers;
mod output;
mod plot;
mod progress;
mod signals;
mod source;

use std::ffi::OsString;

use antinoise_input::printable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

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
    Advise(commands::advise::Arguments),
    Plan(commands::plan::Arguments),
    Verify(commands::verify::Arguments),
    Statement(commands::statement::Arguments),
    Audit(Box<commands::audit::Arguments>),
    #[cfg(feature = "train")]
    AuditTraining(Box<commands::audit_training::Arguments>),
    #[cfg(feature = "train")]
    Probe(Box<commands::probe::Arguments>),
    #[cfg(feature = "train")]
    Train(Box<commands::train::Arguments>),
    #[cfg(feature = "train")]
    Predict(commands::predict::Arguments),
    #[cfg(feature = "train")]
    Evaluate(commands::evaluate::Arguments),
    Noise(commands::noise::Arguments),
    Batches(commands::batches::Arguments),
    #[cfg(feature = "release")]
    Release(commands::release::Arguments),
    Bench(commands::bench::Arguments),
    Completions(commands::completions::Arguments),
    Man(commands::man::Arguments),
}

fn command(cli: &Cli) -> failure::Result<u8> {
    let printed = match &cli.command {
        Command::Loss(arguments) => output::print(&commands::loss::run(arguments)?, cli.json),
        Command::Compare(arguments) => output::print(&commands::compare::run(arguments)?, cli.json),
        Command::Show(arguments) => output::print(&commands::show::run(arguments)?, cli.json),
        Command::Account(arguments) => output::print(&commands::account::run(arguments)?, cli.json),
        Command::Calibrate(arguments) => output::print(&commands::calibrate::run(arguments)?, cli.json),
        Command::Bands(arguments) => output::print(&commands::bands::run(arguments)?, cli.json),
        Command::Advise(arguments) => output::print(&commands::advise::run(arguments)?, cli.json),
        Command::Plan(arguments) => {
            let is_json = cli.json || arguments.is_json();
            output::print(&commands::plan::run(arguments, is_json)?, is_json)
        }
        Command::Verify(arguments) => {
            let report = commands::verify::run(arguments)?;
            output::print(&report, cli.json)?;
            return Ok(if report.holds { 0 } else { 2 });
        }
        Command::Statement(arguments) => {
            output::print(&commands::statement::run(arguments)?, cli.json || arguments.is_json())
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
            return Ok(0);
        }
        #[cfg(feature = "train")]
        Command::AuditTraining(arguments) => {
            let report = commands::audit_training::run(arguments)?;
            output::print(&report, cli.json)?;
            return Ok(if report.holds() { 0 } else { 1 });
        }
        #[cfg(feature = "train")]
        Command::Probe(arguments) => output::print(&commands::probe::run(arguments)?, cli.json),
        #[cfg(feature = "train")]
        Command::Train(arguments) => output::print(&commands::train::run(arguments)?, cli.json),
        #[cfg(feature = "train")]
        Command::Predict(arguments) => output::print(&commands::predict::run(arguments)?, cli.json),
        #[cfg(feature = "train")]
        Command::Evaluate(arguments) => output::print(&commands::evaluate::run(arguments)?, cli.json),
        Command::Noise(arguments) => output::print(&commands::noise::run(arguments)?, cli.json),
        Command::Batches(arguments) => output::print(&commands::batches::run(arguments)?, cli.json),
        #[cfg(feature = "release")]
        Command::Release(arguments) => commands::release::run(arguments, cli.json),
        Command::Bench(arguments) => output::print(&commands::bench::run(arguments)?, cli.json),
        Command::Completions(arguments) => {
            output::print(&commands::completions::run(arguments, Cli::command())?, cli.json)
        }
        Command::Man(arguments) => output::print(&commands::man::run(arguments, Cli::command())?, cli.json),
    };
    printed.map(|()| 0)
}

/// Joins each negative number to the option before it: `--delta -1e-5` becomes `--delta=-1e-5`.
///
/// Otherwise clap reads a number with a negative exponent as several flags.
fn with_negative_numbers(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    for argument in arguments {
        let negative =
            argument.to_str().is_some_and(|text| text.starts_with('-') && text.parse::<f64>().is_ok());
        let option = |before: &OsString| {
            before
                .to_str()
                .is_some_and(|text| text.starts_with("--") && text.len() > 2 && !text.contains('='))
        };
        match joined.last_mut() {
            Some(before) if negative && option(before) => {
                before.push("=");
                before.push(argument);
            }
            _ => joined.push(argument),
        }
    }
    joined
}

/// A message about a parameter that is an option of the command names it as the user wrote it.
fn with_option_named(message: &str, command: &clap::Command) -> String {
    let is_option = |name: &str| command.get_arguments().any(|option| option.get_long() == Some(name));
    let (parameter, rest) = message.split_at(message.find([' ', ':', '\'']).unwrap_or(0));
    let option = parameter.replace('_', "-");
    if is_option(&option) { format!("--{option}{rest}") } else { message.to_string() }
}

/// The innermost command that `arguments` name, after the program's own name.
fn named<'a>(command: &'a clap::Command, arguments: &[OsString]) -> &'a clap::Command {
    arguments
        .iter()
        .skip(1)
        .fold(command, |command, argument| command.find_subcommand(argument).unwrap_or(command))
}

/// The values that options of `command` may have which `error` finds missing.
fn values_of_missing(error: &clap::Error, command: &clap::Command) -> Vec<String> {
    let missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(names)) if error.kind() == ErrorKind::MissingRequiredArgument => names,
        _ => return Vec::new(),
    };
    let options = command.get_arguments().filter(|option| missing.contains(&option.to_string()));
    let name = |option: &clap::Arg| option.get_long().map_or(option.to_string(), |long| format!("--{long}"));
    let values = options.map(|option| (name(option), option.get_possible_values()));
    let listed = values.filter(|(_, values)| !values.is_empty()).map(|(name, values)| {
        let values: Vec<_> = values.iter().map(|value| value.get_name()).collect();
        format!("{name} is one of {}", values.join(", "))
    });
    listed.collect()
}

/// Runs the command that `arguments` name, the program's own name first, prints its output, and returns the
/// exit status: 0 done, 2 bad input, 130 or 143 stopped by a signal, 1 any other failure.
///
/// Commands that a signal may stop listen for it from then on, in the whole process.
pub fn run<T: Into<OsString>>(arguments: impl IntoIterator<Item = T>) -> u8 {
    let commands = Cli::command();
    let arguments = with_negative_numbers(arguments.into_iter().map(Into::into));
    let parsed = commands.clone().try_get_matches_from(&arguments);
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => {
            // If stderr is closed, the exit status still reports the error.
            let _ = error.print();
            let mut built = commands.clone();
            built.build();
            values_of_missing(&error, named(&built, &arguments)).iter().for_each(|text| eprintln!("{text}"));
            return u8::try_from(error.exit_code()).unwrap_or(1);
        }
    };
    command(&cli).unwrap_or_else(|failure| {
        let message = with_option_named(&failure.to_string(), named(&commands, &arguments));
        eprintln!("error: {}", printable(&message));
        failure.status()
    })
}

/// The README, whose code runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
