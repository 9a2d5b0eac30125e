//! The sequences, the batches of every step, and the runs.

use std::collections::HashMap;
use std::rc::Rc;

use antinoise_input::InvalidParameter;
use antinoise_mechanism::{Encoder, Participation, Strategy};

use crate::attack::{Sequence, densest, drawn, longest};
use crate::law::Law;
use crate::membership::Experiment;
use crate::operator::{MOST_RECTANGULAR, Operator, is_rectangular};
use crate::random::Random;
use crate::settings::{MOST_STEPS, Settings};
use crate::stage::{Role, Stage};
use crate::{Claim, Error, UnderAudit};

/// The names of the sequences that units follow; the first is the worst that was found.
const SEQUENCES: [&str; 4] =
    ["the worst sequence", "the densest pattern", "a sequence at random", "another sequence at random"];

/// All that does not change from run to run.
pub(crate) struct Scene {
    pub(crate) steps: usize,
    whitening: Operator,
    /// The longest image of a sequence under C, in clip norms.
    longest: f64,
    pub(crate) stage: Stage,
    noise_std: f64,
    sequences: Vec<Sequence>,
    /// Each run of even number has these batches, each of odd number the others.
    batches: [Vec<Vec<usize>>; 2],
    roles: Vec<Role>,
}

impl Scene {
    pub(crate) fn new(claim: &Claim, settings: &Settings) -> Result<Self, Error> {
        let mut random = Random(settings.seed);
        let attacked = Attacked::new(&*claim.strategy, &claim.participation, &mut random)?;
        let Attacked { steps, whitening, worst, longest } = attacked;
        let mut others = [(); SEQUENCES.len() - 2].map(|()| drawn(&claim.participation, steps, &mut random));
        // A listed pattern may begin after the steps that are run.
        others.iter_mut().filter(|other| other.is_empty()).for_each(|other| other.clone_from(&worst));
        let densest = densest(&claim.participation, steps);
        let densest = if densest.is_empty() { worst.clone() } else { densest };
        let sequences: Vec<Sequence> = [worst, densest].into_iter().chain(others).collect();
        let stage = Stage::new(settings.units, claim.clip_norm, &mut random)?;
        // Half of the units follow the worst sequence.
        let attack = |j: usize| if j.is_multiple_of(2) { 0 } else { 1 + j / 2 % (SEQUENCES.len() - 1) };
        let roles: Vec<Role> =
            (0..settings.units).map(|j| Role { attack: attack(j), even: random.sign() > 0.0 }).collect();
        let batches = [0, 1].map(|run| stage.batches(run, steps, claim.adjacency, &sequences, &roles));
        Ok(Self { steps, whitening, longest, stage, noise_std: claim.noise_std, sequences, batches, roles })
    }

    /// The distance of the farthest neighbours that were found, in standard deviations of the noise.
    pub(crate) fn mu_found(&self, claim: &Claim) -> f64 {
        self.longest * claim.adjacency.sensitivity_factor() * claim.widened_clip_norm / claim.noise_std
    }

    /// All runs.
    pub(crate) fn run(
        &self,
        mechanism: &mut dyn UnderAudit,
        settings: &Settings,
    ) -> Result<(Law, Vec<Experiment>), Error> {
        let mut law = Law::new(self.steps, self.stage.dim());
        let experiment = |(name, sequence): (&&'static str, &Sequence)| {
            Experiment::new(name, sequence, &self.whitening, self.steps, self.noise_std)
        };
        let mut experiments: Vec<Experiment> =
            SEQUENCES.iter().zip(&self.sequences).map(experiment).collect();
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

/// The sums of batches that occurred: most steps have the same few batches.
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

/// The longest sequence of a mechanism, over the steps that are run.
struct Attacked {
    steps: usize,
    whitening: Operator,
    worst: Sequence,
    longest: f64,
}

impl Attacked {
    fn new(mechanism: &dyn Strategy, schema: &Participation, random: &mut Random) -> Result<Self, Error> {
        schema.check(mechanism.steps())?;
        let (encoder, recursion) = (mechanism.encoder()?, mechanism.recursion()?);
        let rectangular = is_rectangular(&encoder);
        let steps = mechanism.steps().min(if rectangular { MOST_RECTANGULAR } else { MOST_STEPS });
        let whitening = Operator::whitening(&encoder, &recursion, steps)?;
        let (worst, found) = longest(&whitening, schema, steps, random);
        if worst.is_empty() {
            let must_be = format!("a schema with a pattern in the first {steps} steps, which are audited");
            return Err(InvalidParameter::new("participation", schema, must_be).into());
        }
        let of_encoder = |encoder: &Encoder, random: &mut Random| {
            longest(&Operator::of(encoder, steps), schema, steps, random).1
        };
        // What is claimed of a C with more rows than columns is its own sensitivity, of which the noise hides more.
        let whole = rectangular && steps == mechanism.steps();
        let longest = if whole { found.max(of_encoder(&encoder, random)) } else { found };
        Ok(Self { steps, whitening, worst, longest })
    }
}
