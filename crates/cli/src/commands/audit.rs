//! `antinoise audit`: a mechanism run against its claim.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};

use antinoise_audit::{Claim, Real, Settings, audit};
use clap::Args;
use serde::Serialize;

use crate::arguments::ReleaseOptions;
use crate::failure::Result;
use crate::numbers::real;
use crate::output;
use crate::progress::Progress;
use crate::source::{Source, SourceOptions};

/// Run a mechanism on worst-case gradients and test whether it is as private as it claims.
///
/// The sequences of gradients that come nearest to breaking the claim, and their neighbours, go through the real
/// clipping, summing and release, several times. The releases are tested against the stated law and the stated mu. A correct
/// mechanism is rejected with probability alpha at most. Acceptance is no proof of
/// privacy: docs/audit.md says what an audit can show. Sampling and its amplification are not audited.
///
/// Exit status 0: accepted. 1: rejected, with the tests printed as usual. 2: bad input.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    mut_arg("release", |arg| arg.conflicts_with("plan")),
    after_help = "Examples:
  antinoise plan --examples 60k --batch-size 500 --epochs 4 --epsilon 4 \\
      --delta 1e-5 --setting cyclic --out plan.toml
  antinoise audit --plan plan.toml
  antinoise audit --strategy blt:3 --steps 200 --participation cyclic:50,4
  antinoise audit --strategy tree --steps 64 --release plain --alpha 1e-6 \\
      --json"
)]
pub struct Arguments {
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    release: ReleaseOptions,
    /// Seed noise over sensitivity, of a strategy without a plan.
    #[arg(long, value_name = "S", default_value = "1", value_parser = real, conflicts_with = "plan")]
    noise_multiplier: f64,
    /// Most probability that a correct mechanism is rejected.
    #[arg(long, value_name = "A", default_value = "1e-3", value_parser = real)]
    alpha: f64,
}

/// What the command prints.
#[derive(Debug, Serialize)]
pub struct Report(antinoise_audit::Report);

impl Report {
    /// Whether no test rejects.
    pub fn accepted(&self) -> bool {
        self.0.accepted
    }

    /// The tests that reject, by name.
    pub fn rejections(&self) -> String {
        let names = self.0.tests.iter().filter(|test| test.rejected).map(|test| test.name.as_str());
        names.collect::<Vec<_>>().join("; ")
    }
}

/// Builds the mechanism and audits it.
pub fn run(arguments: &Arguments) -> Result<Report> {
    let claim = arguments.claim()?;
    let settings = Settings::new(arguments.alpha, claim.strategy.steps());
    let progress = Progress::endless("auditing");
    // The noise of an audit protects nothing, but each audit is to see its own.
    let mut real = Real::new(claim.clone(), RandomState::new().build_hasher().finish());
    let report = audit(&claim, &mut real, &settings);
    drop(progress);
    Ok(Report(report?))
}

impl Arguments {
    fn claim(&self) -> Result<Claim> {
        let Source { problem, adjacency, solution, plan, .. } = self.source.solve()?;
        if let Some(plan) = plan {
            return Ok(Claim::of_plan(&plan)?);
        }
        let (sigma, release) = (self.noise_multiplier, self.release.kind());
        Ok(Claim::of_strategy(solution.value, problem.participation, adjacency, sigma, release)?)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = &self.0;
        let row = |test: &antinoise_audit::Test| {
            let verdict = if test.rejected { "REJECTED" } else { "holds" };
            vec![test.name.clone(), number(test.statistic), number(test.threshold), verdict.into()]
        };
        let rows: Vec<Vec<String>> = report.tests.iter().map(row).collect();
        writeln!(f, "{}", output::table(&["test", "statistic", "at most", ""], &rows))?;
        writeln!(f, "mu stated {}, seen {} at least", number(report.mu_stated), number(report.mu_lower))?;
        writeln!(
            f,
            "{} at alpha {}: {} steps, {} runs; {:.1} s",
            if report.accepted { "accepted" } else { "REJECTED" },
            report.alpha,
            report.steps_audited,
            report.runs,
            report.seconds
        )
    }
}

fn number(x: f64) -> String {
    if (1e-3..1e6).contains(&x) || x == 0.0 { format!("{x:.6}") } else { format!("{x:.3e}") }
}
