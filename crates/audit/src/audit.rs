//! The audit: all tests and the verdict.

use std::time::Instant;

use crate::report::{Report, Test};
use crate::runs::Runs;
use crate::scene::{SEQUENCES, Scene};
use crate::settings::Settings;
use crate::training::{self, TrainingUnderAudit};
use crate::{Claim, Error, UnderAudit, law, sums};

/// Tolerance for rounding between two computations of one figure.
const ROUNDING: f64 = 1.0 + 1e-9;

/// Tests `mechanism` against `claim`.
///
/// # Errors
/// When a setting is out of range, the strategy is too large to write out, or the mechanism fails to run.
pub fn audit(claim: &Claim, mechanism: &mut dyn UnderAudit, settings: &Settings) -> Result<Report, Error> {
    audit_with(claim, mechanism, settings, None, &mut |_, _| ())
}

/// Tests `mechanism` against `claim`, and `training` against its plan. Calls `watch(run, runs)` before each
/// run: `run` of `runs` runs are done.
///
/// # Errors
/// As [`audit`], and when the training fails to run.
pub fn audit_with(
    claim: &Claim,
    mechanism: &mut dyn UnderAudit,
    settings: &Settings,
    training: Option<&mut dyn TrainingUnderAudit>,
    watch: &mut dyn FnMut(usize, usize),
) -> Result<Report, Error> {
    settings.check()?;
    let start = Instant::now();
    let scene = Scene::new(claim, settings)?;
    let movement = sums::largest_movement(mechanism, &scene.stage, claim.clip_norm, settings.examples)?;
    let mut tests = vec![
        Test::new("sensitivity: mu of the worst sequence", scene.mu_found(claim), claim.mu * ROUNDING),
        Test::new("sum: movement by one example", movement, claim.widened_clip_norm * ROUNDING),
    ];
    let by_chance =
        law::TESTS + SEQUENCES.len() + if training.is_some() { training::TESTS_BY_CHANCE } else { 0 };
    let alpha = settings.alpha / by_chance as f64;
    let mut runs = Runs::new(&scene, mechanism, settings.seed);
    tests.extend(runs.compared()?);
    let (mut law, experiments, count) = runs.all(settings, (alpha, claim.mu), watch)?;
    tests.extend(law.tests(alpha));
    tests.extend(experiments.iter().map(|experiment| experiment.test(alpha, claim.mu)));
    if let Some(training) = training {
        tests.extend(training::tests(training, alpha, settings.seed)?);
    }
    let mu_lower = experiments.iter().map(|experiment| experiment.mu_lower(alpha)).fold(0.0, f64::max);
    Ok(Report {
        accepted: tests.iter().all(|test| !test.rejected),
        alpha: settings.alpha,
        mu_stated: claim.mu,
        mu_lower,
        mu_reachable: experiments.iter().map(|experiment| experiment.apart).fold(0.0, f64::max),
        steps_audited: scene.steps,
        runs: count.runs,
        runs_wanted: count.wanted,
        mu_wanted: count.mu_wanted,
        most_numbers: settings.most_numbers,
        tests,
        seconds: start.elapsed().as_secs_f64(),
    })
}
