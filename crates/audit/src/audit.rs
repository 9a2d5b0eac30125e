//! The audit: the tests and the verdict.

use std::time::Instant;

use crate::report::{Report, Test};
use crate::scene::Scene;
use crate::settings::Settings;
use crate::{Claim, Error, UnderAudit, law, sums};

/// The allowance for rounding between two computations of one figure.
const ROUNDING: f64 = 1.0 + 1e-9;

/// Tests `mechanism` against `claim`.
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
