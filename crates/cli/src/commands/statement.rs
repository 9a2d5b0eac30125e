//! `antinoise statement`: the privacy statement of a plan, short or long, in the markup that is asked for.

use std::fmt;
use std::path::PathBuf;

use antinoise_accounting::{Markup, PrivacyStatement};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::failure::Result;
use crate::source::load_plan;

/// Print the privacy statement of a plan, whose claim is recomputed first.
///
/// Three sentences say what is protected against whom, how strongly, and on which conditions. --long adds
/// the table of details, the assumptions and what is not covered. Epsilon is rounded up to three digits:
/// 2.9997 is printed as 3, and no printed figure is below the true one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  antinoise plan --examples 60k --batch-size 500 --epochs 4 --epsilon 4 \\
      --setting cyclic --quick --out plan.toml
  antinoise statement plan.toml
  antinoise statement plan.toml --long --format markdown
  antinoise statement plan.toml --format latex")]
pub struct Arguments {
    /// A plan that `antinoise plan --out` saved.
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// Also print the table of details, the assumptions and what is not covered.
    #[arg(long)]
    long: bool,
    /// Markup of the statement. json always holds the whole statement, as with --long.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl Arguments {
    /// Whether the output is JSON.
    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }
}

/// The form of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Markdown,
    Latex,
    Json,
}

impl Format {
    /// The markup of text; none for JSON.
    pub fn markup(self) -> Option<Markup> {
        match self {
            Self::Text => Some(Markup::Text),
            Self::Markdown => Some(Markup::Markdown),
            Self::Latex => Some(Markup::Latex),
            Self::Json => None,
        }
    }
}

/// Output of `antinoise statement`.
#[derive(Debug, Serialize)]
pub struct Stated {
    #[serde(flatten)]
    statement: PrivacyStatement,
    #[serde(skip)]
    text: String,
}

/// Verifies the plan and writes its statement.
pub fn run(arguments: &Arguments) -> Result<Stated> {
    let statement = load_plan(&arguments.plan)?.statement();
    let text = match arguments.format.markup() {
        Some(markup) => statement.marked_up(markup, arguments.long),
        None => String::new(),
    };
    Ok(Stated { statement, text })
}

impl fmt::Display for Stated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
