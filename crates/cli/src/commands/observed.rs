//! The participation that a ledger recorded, and the figures that follow from it.

use std::fmt;

use antinoise_input::short_up;
use antinoise_mechanism::sensitivity::{Kind, Sensitivity};
#[cfg(feature = "ledger")]
use antinoise_plan::{ObservedPrivacy, VerifiedPlan};
use serde::Serialize;

#[cfg(feature = "ledger")]
use crate::failure::Result;

/// The participation of a run, without names, and its privacy.
#[derive(Debug, Serialize)]
pub struct Observed {
    steps_finished: usize,
    steps: usize,
    users: usize,
    participations: usize,
    /// Number of different sets of steps.
    patterns: usize,
    /// Smallest number of steps between two participations of a user; null if nobody took part twice.
    min_sep: Option<usize>,
    max_participations: usize,
    sensitivity: Sensitivity,
    /// Epsilon of the plan for every participation that it allows, at its own delta.
    plan_epsilon: f64,
    /// Privacy statement at the plan's delta.
    statement: String,
}

#[cfg(feature = "ledger")]
impl Observed {
    /// Privacy under `plan` of the participation that its ledger recorded.
    pub fn new(
        plan: &VerifiedPlan,
        found: &antinoise_ledger::Observed,
        privacy: ObservedPrivacy,
    ) -> Result<Self> {
        Ok(Self {
            steps_finished: found.steps,
            steps: plan.steps,
            users: found.users,
            participations: found.participations,
            patterns: found.patterns.len(),
            min_sep: privacy.min_sep,
            max_participations: privacy.max_participations,
            plan_epsilon: plan.privacy.epsilon,
            statement: plan.statement_of_observed(&privacy, found.steps)?.to_string(),
            sensitivity: privacy.sensitivity,
        })
    }
}

impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { users, participations, patterns, max_participations, sensitivity, .. } = self;
        writeln!(f, "finished          {} of {} steps", self.steps_finished, self.steps)?;
        writeln!(
            f,
            "took part         {users} users, {participations} times, in {patterns} different sets of steps"
        )?;
        let apart = self.min_sep.map_or(String::new(), |steps| format!(", {steps} steps apart or more"));
        writeln!(f, "at most           {max_participations} times each{apart}")?;
        let kind = match sensitivity.kind {
            Kind::Exact => "exact",
            Kind::UpperBound => "an upper bound",
        };
        let value = short_up(sensitivity.value, 10);
        writeln!(f, "sensitivity       {value} ({kind}: {})", sensitivity.source)?;
        writeln!(f, "the plan's        epsilon {}\n", short_up(self.plan_epsilon, 10))?;
        write!(f, "{}", self.statement)
    }
}
