//! The audit: the sequences, the runs, the tests.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;

use antinoise_input::{InvalidParameter, at_least, between, in_open_unit};
use antinoise_mechanism::Recursion;

use crate::attack::{Sequence, densest, drawn, longest};
use crate::law::{self, Law};
use crate::membership::Experiment;
use crate::operator::{MOST_RECTANGULAR, Operator, is_rectangular};
use crate::random::Random;
use crate::report::{Report, Test};
use crate::stage::{Role, Stage};
use crate::{Claim, Error, UnderAudit, sums};

/// Most steps that are run. C is lower triangular, so the first steps of a longer run are a mechanism of their own.
const MOST_STEPS: usize = 1 << 15;
/// What rounding may add to a figure that is computed twice.
const ROUNDING: f64 = 1.0 + 1e-9;

/// How much is run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Most probability of a correct mechanism to be rejected, by all tests together.
    pub alpha: f64,
    /// Runs of the whole mechanism, two or more.
    pub runs: usize,
    /// Units, each an experiment of its own in every run; eight or more.
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
        between("units", self.units, 8, 1 << 12, "2^12")?;
        at_least("examples", self.examples, 8)?;
        Ok(())
    }
}

/// The names of the sequences that units follow; the first is the worst that was found.
const SEQUENCES: [&str; 4] =
    ["the worst sequence", "the densest pattern", "a sequence at random", "another sequence at random"];

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

/// All that does not change from run to run.
struct Scene {
    steps: usize,
    whitening: Operator,
    /// The longest image of a sequence under C, in clip norms.
    longest: f64,
    stage: Stage,
    noise_std: f64,
    sequences: Vec<Sequence>,
    /// Each run of even number has these batches, each of odd number the others.
    batches: [Vec<Vec<usize>>; 2],
    roles: Vec<Role>,
}

impl Scene {
    fn new(claim: &Claim, settings: &Settings) -> Result<Self, Error> {
        let mechanism = claim.strategy.mechanism();
        claim.participation.check(mechanism.steps())?;
        let (encoder, recursion) = (mechanism.encoder()?, mechanism.recursion()?);
        let rectangular = is_rectangular(&encoder);
        let steps = mechanism.steps().min(if rectangular { MOST_RECTANGULAR } else { MOST_STEPS });
        let whitening = Operator::whitening(&encoder, &leading(&recursion, steps), steps)?;
        let mut random = Random(settings.seed);
        let (worst, mut length) = longest(&whitening, &claim.participation, steps, &mut random);
        if worst.is_empty() {
            let must_be = format!("a schema with a pattern in the first {steps} steps, which are audited");
            return Err(InvalidParameter::new("participation", &claim.participation, must_be).into());
        }
        if rectangular && mechanism.steps() <= MOST_RECTANGULAR {
            // What is claimed is the sensitivity of C, of which the noise hides more.
            let whole = Operator::of(&encoder, steps);
            length = f64::max(length, longest(&whole, &claim.participation, steps, &mut random).1);
        }
        let stage = Stage::new(settings.units, claim.clip_norm, &mut random)?;
        let mut sequences = vec![
            worst,
            densest(&claim.participation, steps),
            drawn(&claim.participation, steps, &mut random),
            drawn(&claim.participation, steps, &mut random),
        ];
        // A listed pattern may begin after the steps that are run.
        for i in 1..sequences.len() {
            if sequences[i].is_empty() {
                sequences[i] = sequences[0].clone();
            }
        }
        // Half of the units follow the worst sequence.
        let attack = |j: usize| if j.is_multiple_of(2) { 0 } else { 1 + j / 2 % (SEQUENCES.len() - 1) };
        let roles: Vec<Role> =
            (0..settings.units).map(|j| Role { attack: attack(j), even: random.sign() > 0.0 }).collect();
        let batches = [0, 1].map(|run| stage.batches(run, steps, claim.adjacency, &sequences, &roles));
        Ok(Self {
            steps,
            whitening,
            longest: length,
            stage,
            noise_std: claim.noise_std,
            sequences,
            batches,
            roles,
        })
    }

    /// The distance of the farthest neighbours that were found, in standard deviations of the noise.
    fn mu_found(&self, claim: &Claim) -> f64 {
        self.longest * claim.adjacency.sensitivity_factor() * claim.widened_clip_norm / claim.noise_std
    }

    fn run(
        &self,
        mechanism: &mut dyn UnderAudit,
        settings: &Settings,
    ) -> Result<(Law, Vec<Experiment>), Error> {
        let mut law = Law::new(self.steps, self.stage.dim());
        let experiment = |(name, sequence): (&&'static str, &Sequence)| {
            Experiment::new(name, sequence, &self.whitening, self.steps, self.noise_std)
        };
        let mut experiments: Vec<Experiment> = SEQUENCES.iter().zip(&self.sequences).map(experiment).collect();
        let mut sums = Sums::default();
        for run in 0..settings.runs {
            let residuals = self.one_run(mechanism, run, &mut sums, &mut experiments)?;
            law.add(&self.whitening, self.noise_std, &residuals);
        }
        Ok((law, experiments))
    }

    /// R - G of each coordinate.
    fn one_run(
        &self,
        mechanism: &mut dyn UnderAudit,
        run: usize,
        sums: &mut Sums,
        experiments: &mut [Experiment],
    ) -> Result<Vec<Vec<f64>>, Error> {
        let mut residuals = vec![vec![0.0; self.steps]; self.stage.dim()];
        let mut statistics = vec![0.0; self.roles.len()];
        let base = sums.of(mechanism, &self.stage, &self.stage.others())?;
        mechanism.begin(run as u64, self.stage.dim())?;
        for (t, batch) in self.batches[run % 2].iter().enumerate() {
            let sum = sums.of(mechanism, &self.stage, batch)?;
            let release = mechanism.release(&self.stage.data, batch)?;
            for (j, (role, statistic)) in self.roles.iter().zip(&mut statistics).enumerate() {
                let moved = self.stage.along(&release, j) - self.stage.along(&base, j);
                *statistic += experiments[role.attack].weights[t] * moved;
            }
            for ((residual, r), g) in residuals.iter_mut().zip(&release).zip(&*sum) {
                residual[t] = r - g;
            }
        }
        for (role, statistic) in self.roles.iter().zip(statistics) {
            experiments[role.attack].add(role.takes_part(run), statistic);
        }
        Ok(residuals)
    }
}

/// The sums of batches that came up: most steps have the same few batches.
#[derive(Default)]
struct Sums(HashMap<Vec<usize>, Rc<Vec<f64>>>);

impl Sums {
    fn of(
        &mut self,
        mechanism: &mut dyn UnderAudit,
        stage: &Stage,
        batch: &[usize],
    ) -> Result<Rc<Vec<f64>>, Error> {
        if let Some(sum) = self.0.get(batch) {
            return Ok(sum.clone());
        }
        let sum = Rc::new(mechanism.sum(&stage.data, batch)?);
        self.0.insert(batch.to_vec(), sum.clone());
        Ok(sum)
    }
}

/// The recursion as the first `steps` steps see it, where that is less work.
fn leading(recursion: &Recursion, steps: usize) -> Recursion {
    match recursion {
        Recursion::Combination { rows } => Recursion::Combination { rows: rows[..steps.min(rows.len())].to_vec() },
        other => other.clone(),
    }
}
