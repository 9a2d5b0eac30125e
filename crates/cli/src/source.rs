//! Source of a command's mechanism: the options of a design, or a plan.

use std::path::{Path, PathBuf};

use antinoise_input::{InvalidParameter, printable};
use antinoise_mechanism::design::Solution;
use antinoise_mechanism::{Adjacency, AnyStrategy, Problem, Workload};
use antinoise_plan::{OwnedExamples, Plan, VerifiedPlan};
use clap::Args;
use clap::builder::ArgPredicate;

use crate::arguments::{DesignOptions, StrategyOptions};
use crate::failure::Result;
use crate::progress::Progress;

/// Reads and verifies a plan, which takes seconds if its privacy is accounted for by simulation.
///
/// # Errors
/// When the plan cannot be read or does not hold.
pub fn load_plan(path: &Path) -> Result<VerifiedPlan> {
    let progress = Progress::percent("verifying the plan");
    Ok(Plan::load_with(path, &|done, total| progress.done(done as f64, total as f64))?)
}

/// Characters that other formats put around or between names. A name with one of them is most likely two
/// names, or part of one, and its owner two persons to the plan.
const NOT_IN_NAMES: &[char] = &['"', '[', ']', '{', '}', ';', '|', '\t', '\r'];

/// The examples whose owners the file at `path` names, one example a line. Warns of similar names.
///
/// # Errors
/// When the file cannot be read, has a header, or a line has no owner, an invalid name or a mark of another
/// format.
pub fn owned_examples(path: &Path) -> Result<OwnedExamples> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let got = format!("{} ({error})", path.display());
        InvalidParameter::new("owners", got, "a text file with the owners of one example a line")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let refused = |number: usize, must_be: &str| {
        let line = text.lines().nth(number).unwrap_or_default();
        let what = format!("owners, line {}", number + 1);
        Err(InvalidParameter::new(what, printable(line), must_be).into())
    };
    let first = text.lines().next().unwrap_or_default().trim();
    if ["owner", "owners", "user", "users"].iter().any(|header| first.eq_ignore_ascii_case(header)) {
        return refused(0, "the owners of the first example: the file has no header");
    }
    if let Some(number) = text.lines().position(|line| line.contains(NOT_IN_NAMES)) {
        return refused(number, "names separated by commas, without quotes, brackets and other separators");
    }
    let examples = OwnedExamples::new(text.lines().map(|line| line.split(',')))?;
    if let Some(warning) = examples.similar_names().warning() {
        eprintln!("warning: {warning}");
    }
    Ok(examples)
}

/// A mechanism and the problem under which it is measured.
#[derive(Debug, Args)]
#[command(
    mut_arg("strategy", |arg| arg.required(false).required_unless_present("plan")),
    mut_arg("steps", |arg| {
        // With --plan the value is ignored, but clap demands one for an option of a required group.
        arg.required(false).required_unless_present("plan").default_value_if("plan", ArgPredicate::IsPresent, "1")
    })
)]
pub struct SourceOptions {
    /// Take the mechanism of this plan, made by `antinoise plan --out`; replaces --strategy, --steps and the
    /// other options of a design.
    #[arg(long, value_name = "FILE", conflicts_with_all = STATED_BY_A_PLAN)]
    plan: Option<PathBuf>,
    #[command(flatten)]
    strategy: Option<StrategyOptions>,
    #[command(flatten)]
    design: DesignOptions,
}

const STATED_BY_A_PLAN: [&str; 11] = [
    "strategy",
    "bands",
    "order",
    "fixed",
    "column_normalize",
    "restarts",
    "steps",
    "workload",
    "adjacency",
    "objective",
    "participation",
];

/// Problem, adjacency and strategy that the options name.
pub struct Source {
    /// Problem under which the mechanism is measured.
    pub problem: Problem,
    /// Neighbouring relation of data sets.
    pub adjacency: Adjacency,
    /// C, with the status of its design.
    pub solution: Solution<AnyStrategy>,
    /// Workload whose loss the design minimises; `None` for a strategy from a file.
    pub designed_for: Option<Workload>,
    /// Plan that holds the strategy, if the options name one.
    pub plan: Option<VerifiedPlan>,
}

impl SourceOptions {
    /// The problem of the options or, if they name a plan, that of the plan, with the plan.
    ///
    /// # Errors
    /// When the plan cannot be read or does not hold.
    pub fn problem(&self) -> Result<(Problem, Option<VerifiedPlan>)> {
        let Some(path) = &self.plan else { return Ok((self.design.problem(), None)) };
        let plan = load_plan(path)?;
        let problem = Problem {
            steps: plan.steps,
            workload: plan.workload.clone(),
            participation: plan.participation.clone(),
            objective: plan.objective,
        };
        Ok((problem, Some(plan)))
    }

    /// Designs the strategy, or reads it.
    ///
    /// # Errors
    /// When the options name no valid problem, or a file is invalid.
    pub fn solve(&self) -> Result<Source> {
        let (problem, plan) = self.problem()?;
        self.solve_for(problem, plan)
    }

    /// As [`SourceOptions::solve`], for the results of [`SourceOptions::problem`] that the caller has
    /// checked.
    ///
    /// # Errors
    /// As [`SourceOptions::solve`].
    pub fn solve_for(&self, problem: Problem, plan: Option<VerifiedPlan>) -> Result<Source> {
        if let Some(plan) = plan {
            let solution = Solution::closed_form(plan.strategy.clone());
            let adjacency = plan.privacy.adjacency;
            return Ok(Source { problem, adjacency, solution, designed_for: None, plan: Some(plan) });
        }
        let strategy = self.strategy.as_ref().expect("clap asks for it");
        let solution = strategy.solve(&problem)?;
        let designed_for = strategy.designed_for(&problem)?;
        let adjacency = self.design.problem.adjacency;
        Ok(Source { problem, adjacency, solution, designed_for, plan: None })
    }
}
