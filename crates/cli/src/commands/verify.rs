//! `antinoise verify`: every claim of a plan, recomputed from its numbers.

use std::fmt;
use std::path::PathBuf;

use antinoise_input::BadInput;
use antinoise_input::hex;
use antinoise_plan::{Error, Plan};
use clap::Args;
use serde::Serialize;

use crate::failure::Result;
use crate::progress::Progress;

/// Recompute every claim of a plan from its numbers, and print its privacy statement.
///
/// Exit status 0: the plan holds. 2: it does not, or cannot be read; the problems say why.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  antinoise plan --examples 60k --batch-size 500 --epochs 4 --epsilon 4 \\
      --delta 1e-5 --setting cyclic --out plan.toml
  antinoise verify plan.toml
  antinoise verify plan.toml --json")]
pub struct Arguments {
    /// A plan that `antinoise plan --out` saved.
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
}

/// Output of `antinoise verify`.
#[derive(Debug, Serialize)]
pub struct Verification {
    /// Whether the plan's claim follows from its numbers.
    pub holds: bool,
    /// SHA-256 of the plan in the form that this program writes; `None` if the plan cannot be read.
    digest: Option<String>,
    statement: Option<String>,
    problems: Vec<String>,
    /// Whether the file was read as a plan.
    #[serde(skip)]
    is_plan: bool,
}

/// Reads the plan and recomputes its claim.
pub fn run(arguments: &Arguments) -> Result<Verification> {
    let progress = Progress::percent("verifying the plan");
    let plan = Plan::load_with(&arguments.plan, &|done, total| progress.done(done as f64, total as f64));
    drop(progress);
    match plan {
        Ok(plan) => Ok(Verification {
            holds: true,
            digest: Some(hex(&plan.digest())),
            statement: Some(plan.statement().to_string()),
            problems: Vec::new(),
            is_plan: true,
        }),
        // An absent file is a failure of the command, not a plan whose claim does not hold.
        Err(error @ Error::Io { .. }) => Err(error.into()),
        Err(error) if error.is_bad_input() => Ok(Verification {
            holds: false,
            digest: None,
            statement: None,
            problems: vec![error.to_string()],
            is_plan: !matches!(error, Error::Format { .. }),
        }),
        Err(error) => Err(error.into()),
    }
}

impl fmt::Display for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.holds {
            let verdict = if self.is_plan { "DOES NOT HOLD" } else { "CANNOT BE READ" };
            return self.problems.iter().try_for_each(|problem| writeln!(f, "{verdict}: {problem}"));
        }
        writeln!(f, "The plan holds: every figure was recomputed from its numbers.")?;
        writeln!(f, "SHA-256 {}\n", self.digest.as_deref().unwrap_or("none"))?;
        write!(f, "{}", self.statement.as_deref().unwrap_or(""))
    }
}
