//! `antinoise audit`: a mechanism run against its claim.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};

use antinoise_audit::{BuiltinMechanism, Claim, Settings, audit_with};
#[cfg(feature = "train")]
use antinoise_audit::{BuiltinTraining, TrainingInputs, audit_with_training};
use antinoise_plan::VerifiedPlan;
use clap::Args;
use serde::Serialize;

use crate::arguments::ArithmeticOptions;
use crate::failure::Result;
use crate::numbers::real;
use crate::output;
use crate::progress::Progress;
use crate::source::{Source, SourceOptions};

/// Run a mechanism on worst-case gradients and test whether it is as private as it claims.
///
/// The gradients that come nearest to breaking the claim, and their neighbours, are clipped, summed and
/// given the real noise. Runs are repeated until a correct mechanism would show nine tenths of the
/// stated mu: this takes seconds, or minutes for a long plan with much noise; the output says what limits the
/// power. The noisy sums are tested against the stated distribution and the stated mu; the number of
/// processes and interruptions must not change a bit. For a plan, the training is audited too: its batches,
/// the input of the optimizer, and resuming. A correct mechanism is rejected with probability at most alpha.
/// Acceptance does not prove privacy: docs/audit.md says what an audit can show. Amplification by sampling is
/// not audited.
///
/// Exit status 0: accepted. 1: rejected, with the tests printed as usual. 2: bad input.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    mut_arg("arithmetic", |arg| arg.conflicts_with("plan")),
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
    arithmetic: ArithmeticOptions,
    /// Without a plan: the noise multiplier, standard deviation of the seed noise over sensitivity.
    #[arg(long, value_name = "S", default_value = "1", value_parser = real, conflicts_with = "plan")]
    noise_multiplier: f64,
    /// Maximum probability that a correct mechanism is rejected.
    #[arg(long, value_name = "A", default_value = "1e-3", value_parser = real)]
    alpha: f64,
}

/// Output of `antinoise audit`.
#[derive(Debug, Serialize)]
pub struct MechanismAudit(antinoise_audit::Report);

impl MechanismAudit {
    /// Whether no test rejects.
    pub fn accepted(&self) -> bool {
        self.0.accepted
    }

    /// Names of the tests that reject.
    pub fn rejections(&self) -> String {
        let names = self.0.tests.iter().filter(|test| test.rejected).map(|test| test.name.as_str());
        names.collect::<Vec<_>>().join("; ")
    }
}

/// Builds the mechanism, and the training of a plan, and audits them.
pub fn run(arguments: &Arguments) -> Result<MechanismAudit> {
    let (claim, plan) = arguments.audited()?;
    let settings = Settings::new(arguments.alpha, claim.strategy.steps());
    let mut progress = Progress::endless("auditing");
    let mut watch = |done: usize, of: usize| {
        if done == 0 {
            progress = Progress::new("auditing", "runs", of as u64);
        } else {
            progress.advance(1);
        }
    };
    // The noise of an audit protects nothing, but each audit should see noise of its own.
    let seed = RandomState::new().build_hasher().finish();
    let report = audited(&claim, plan, seed, &settings, &mut watch);
    drop(progress);
    Ok(MechanismAudit(report?))
}

/// Audits the mechanism and, where this program trains, the training of a plan.
fn audited(
    claim: &Claim,
    plan: Option<VerifiedPlan>,
    seed: u64,
    settings: &Settings,
    watch: &mut dyn FnMut(usize, usize),
) -> std::result::Result<antinoise_audit::Report, antinoise_audit::Error> {
    let mut mechanism = BuiltinMechanism::new(claim.clone(), seed);
    #[cfg(feature = "train")]
    if let Some(plan) = plan.filter(TrainingInputs::is_for) {
        let inputs = TrainingInputs::new(plan)?;
        let mut training = BuiltinTraining::new(&inputs, seed);
        return audit_with_training(claim, &mut mechanism, settings, &mut training, watch);
    }
    #[cfg(not(feature = "train"))]
    drop(plan);
    audit_with(claim, &mut mechanism, settings, watch)
}

impl Arguments {
    /// The claim, and the plan if there is one.
    fn audited(&self) -> Result<(Claim, Option<VerifiedPlan>)> {
        let Source { problem, adjacency, solution, plan, .. } = self.source.solve()?;
        if let Some(plan) = plan {
            return Ok((Claim::of_plan(&plan)?, Some(plan)));
        }
        let (sigma, arithmetic) = (self.noise_multiplier, self.arithmetic.kind());
        Ok((Claim::of_strategy(solution.value, problem.participation, adjacency, sigma, arithmetic)?, None))
    }
}

impl fmt::Display for MechanismAudit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = &self.0;
        let row = |test: &antinoise_audit::Test| {
            let verdict = if test.rejected { "REJECTED" } else { "holds" };
            vec![test.name.clone(), number(test.statistic), number(test.threshold), verdict.into()]
        };
        let rows: Vec<Vec<String>> = report.tests.iter().map(row).collect();
        writeln!(f, "{}", output::table(&["test", "statistic", "at most", ""], &rows))?;
        let [stated, lower, reachable] = [report.mu_stated, report.mu_lower, report.mu_reachable].map(number);
        writeln!(f, "mu stated {stated}, seen {lower} at least, reachable {reachable}")?;
        report.limits().iter().try_for_each(|limit| writeln!(f, "{limit}"))?;
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
