//! The audit: all tests and the verdict.

use std::time::Instant;

use crate::experiment::{Experiment, SEQUENCES};
use crate::report::{Report, Test};
use crate::runs::Runs;
use crate::settings::Settings;
#[cfg(feature = "train")]
use crate::training::{self, Training};
use crate::{Claim, Error, Mechanism, noise_tests, sums};

/// Relative tolerance between two computations of the same figure, which differ by rounding.
const ROUNDING: f64 = 1.0 + 1e-9;

/// Tests `mechanism` against `claim`.
///
/// # Errors
/// When a setting is out of range, the strategy is too large to be written as a matrix, or the mechanism
/// fails.
pub fn audit(claim: &Claim, mechanism: &mut dyn Mechanism, settings: &Settings) -> Result<Report, Error> {
    audit_with(claim, mechanism, settings, &mut |_, _| ())
}

/// Tests `mechanism` against `claim`. Calls `watch(run, runs)` before each run, when `run` of `runs` runs are
/// finished.
///
/// # Errors
/// As [`audit`].
pub fn audit_with(
    claim: &Claim,
    mechanism: &mut dyn Mechanism,
    settings: &Settings,
    watch: &mut dyn FnMut(usize, usize),
) -> Result<Report, Error> {
    verdict(claim, mechanism, settings, (0, &mut |_| Ok(Vec::new())), watch)
}

/// Tests `mechanism` against `claim`, and `training` against its plan. Calls `watch(run, runs)` before each
/// run, when `run` of `runs` runs are finished.
///
/// # Errors
/// As [`audit`], and when the training fails to run.
#[cfg(feature = "train")]
pub fn audit_with_training(
    claim: &Claim,
    mechanism: &mut dyn Mechanism,
    settings: &Settings,
    training: &mut dyn Training,
    watch: &mut dyn FnMut(usize, usize),
) -> Result<Report, Error> {
    let mut tests = |alpha| training::tests(training, alpha, settings.seed);
    verdict(claim, mechanism, settings, (training::TESTS_BY_CHANCE, &mut tests), watch)
}

/// Further tests: the number of tests whose outcome is random, and a function that runs all tests, given the
/// false-alarm probability of each random one.
type Further<'a> = (usize, &'a mut dyn FnMut(f64) -> Result<Vec<Test>, Error>);

fn verdict(
    claim: &Claim,
    mechanism: &mut dyn Mechanism,
    settings: &Settings,
    (further_by_chance, further): Further,
    watch: &mut dyn FnMut(usize, usize),
) -> Result<Report, Error> {
    settings.check()?;
    let start = Instant::now();
    let experiment = Experiment::new(claim, settings)?;
    let movement =
        sums::largest_movement(mechanism, &experiment.canaries, claim.clip_norm, settings.examples)?;
    let mut tests = vec![
        Test::new("sensitivity: mu of the worst sequence", experiment.mu_found(claim), claim.mu * ROUNDING),
        Test::new("sum: movement by one example", movement, claim.widened_clip_norm * ROUNDING),
    ];
    let by_chance = noise_tests::TESTS + SEQUENCES.len() + further_by_chance;
    let alpha = settings.alpha / by_chance as f64;
    let mut runs = Runs::new(&experiment, mechanism, settings.seed);
    tests.extend(runs.compared()?);
    let (mut noise_tests, membership_tests, count) = runs.all(settings, (alpha, claim.mu), watch)?;
    tests.extend(noise_tests.tests(alpha));
    tests.extend(membership_tests.iter().map(|test| test.test(alpha, claim.mu)));
    tests.extend(further(alpha)?);
    let mu_lower = membership_tests.iter().map(|test| test.mu_lower(alpha)).fold(0.0, f64::max);
    Ok(Report {
        accepted: tests.iter().all(|test| !test.rejected),
        alpha: settings.alpha,
        mu_stated: claim.mu,
        mu_lower,
        mu_reachable: membership_tests.iter().map(|test| test.apart).fold(0.0, f64::max),
        steps_audited: experiment.steps,
        runs: count.runs,
        runs_wanted: count.wanted,
        mu_wanted: count.mu_wanted,
        most_numbers: settings.most_numbers,
        tests,
        seconds: start.elapsed().as_secs_f64(),
    })
}
