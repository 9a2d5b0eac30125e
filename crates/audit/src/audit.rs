//! The audit: what is run, the tests, the verdict.

use std::time::Instant;

use antinoise_input::{at_least, between, in_open_unit};

use crate::report::{Report, Test};
use crate::scene::{MOST_STEPS, Scene};
use crate::{Claim, Error, UnderAudit, law, sums};

/// What rounding may add to a figure that is computed twice.
const ROUNDING: f64 = 1.0 + 1e-9;

/// How much is run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Most probability of a correct mechanism to be rejected, by all tests together.
    pub alpha: f64,
    /// Runs of the whole mechanism, two or more.
    pub runs: usize,
    /// Units, each an experiment of its own in every run; 16 or more.
    pub units: usize,
    /// Examples in the sums that are to move too far.
    pub examples: usize,
    /// What patterns and signs are drawn from.
    pub seed: u64,
}

impl Settings {
    /// Enough for `steps` steps to take seconds.
    ///
    /// ```
    /// let settings = antinoise_audit::Settings::new(1e-3, 4000);
    /// assert_eq!((settings.runs, settings.examples), (8, 60_000));
    /// ```
    pub fn new(alpha: f64, steps: usize) -> Self {
        let units = (1_000_000 / steps.clamp(1, MOST_STEPS)).clamp(32, 256);
        Self { alpha, runs: 8, units, examples: 60_000, seed: 1 }
    }

    fn check(&self) -> Result<(), Error> {
        in_open_unit("alpha", self.alpha)?;
        between("runs", self.runs, 2, 1 << 12, "2^12")?;
        between("units", self.units, 16, 1 << 12, "2^12")?;
        at_least("examples", self.examples, 8)?;
        Ok(())
    }
}

/// Holds `mechanism` to `claim`.
///
/// # Errors
/// When a setting is out of range, the strategy is too large to write out, or the mechanism fails to run.
pub fn audit(claim: &Claim, mechanism: &mut dyn UnderAudit, settings: &Settings) -> Result<Report, Error> {
    settings.check()?;
    let start = Instant::now();
    let scene = Scene::new(claim, settings)?;
    let movement = sums::largest_movement(mechanism, &scene.stage, claim.clip_norm, settings.examples)?;
    let mut tests = vec![
        Test::new("sensitivity: mu of the worst sequence", scene.mu_found(claim), claim.mu * ROUNDING),
        Test::new("sum: movement by one example", movement, claim.widened_clip_norm * ROUNDING),
    ];
    let (mut law, experiments) = scene.run(mechanism, settings)?;
    let alpha = settings.alpha / (law::TESTS + experiments.len()) as f64;
    tests.extend(law.tests(alpha));
    tests.extend(experiments.iter().map(|experiment| experiment.test(alpha, claim.mu)));
    let mu_lower = experiments.iter().map(|experiment| experiment.mu_lower(alpha)).fold(0.0, f64::max);
    Ok(Report {
        accepted: tests.iter().all(|test| !test.rejected),
        alpha: settings.alpha,
        mu_stated: claim.mu,
        mu_lower,
        steps_audited: scene.steps,
        runs: settings.runs,
        tests,
        seconds: start.elapsed().as_secs_f64(),
    })
}
