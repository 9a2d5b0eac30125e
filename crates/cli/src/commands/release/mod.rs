//! `antinoise release`: counts over a stream, published period by period.

mod adopt;
mod advice;
mod figure;
mod freeze;
mod frozen;
mod init;
mod page;
mod publish;
mod query;
mod report;
mod status;

use clap::{Args, Subcommand};

use crate::failure::Result;
use crate::output;

/// Publish private counts, sums, means, histograms and quantiles over a stream, period by period.
///
/// One (epsilon, delta) covers all periods together. The noise is correlated: each period cancels part of the
/// noise of earlier periods, so that running counts stay accurate.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  antinoise release init visits --keys north,south --periods 52 \\
      --epsilon 1 --delta 1e-6 --unit user --max-periods 12
  antinoise release status visits")]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Init(init::Arguments),
    Freeze(freeze::Arguments),
    Publish(publish::Arguments),
    Status(status::Arguments),
    Query(query::Arguments),
    Report(report::Arguments),
    Adopt(adopt::Arguments),
}

/// Runs the subcommand and prints its output.
pub fn run(arguments: &Arguments, json: bool) -> Result<()> {
    match &arguments.action {
        Action::Init(arguments) => output::print(&init::run(arguments)?, json),
        Action::Freeze(arguments) => {
            let frozen = freeze::run(arguments)?;
            output::print(&frozen, json)?;
            frozen.end()
        }
        Action::Publish(arguments) => output::print(&publish::run(arguments)?, json),
        Action::Status(arguments) => output::print(&status::run(arguments)?, json),
        Action::Query(arguments) => output::print(&query::run(arguments)?, json),
        Action::Report(arguments) => output::print(&report::run(arguments)?, json),
        Action::Adopt(arguments) => output::print(&adopt::run(arguments)?, json),
    }
}
