//! What does not change from run to run: the sequences, the units that follow them, and the batches of every
//! step.

use antinoise_input::InvalidParameter;
use antinoise_mechanism::{Adjacency, Encoder, Participation, Strategy};

use crate::attack::{Sequence, densest, drawn, longest};
use crate::membership::Experiment;
use crate::operator::{MOST_RECTANGULAR, Operator, is_rectangular};
use crate::random::Random;
use crate::settings::{MOST_STEPS, Settings};
use crate::stage::{Role, Stage};
use crate::{Claim, Error};

/// The names of the sequences that units follow; the first is the worst that was found.
pub(crate) const SEQUENCES: [&str; 4] =
    ["the worst sequence", "the densest pattern", "a sequence at random", "another sequence at random"];

/// All that does not change from run to run.
pub(crate) struct Scene {
    pub(crate) steps: usize,
    pub(crate) whitening: Operator,
    /// The longest image of a sequence under C, in clip norms.
    longest: f64,
    pub(crate) stage: Stage,
    pub(crate) noise_std: f64,
    /// What a unit that takes part adds along its direction where its sequence is +1, and what one that does
    /// not adds.
    shifts: (f64, f64),
    sequences: Vec<Sequence>,
    /// Each run of even number has these batches, each of odd number the others.
    pub(crate) batches: [Vec<Vec<usize>>; 2],
    pub(crate) roles: Vec<Role>,
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
        // Three of four units follow the worst sequence.
        let attack = |j: usize| if j % 4 < 3 { 0 } else { 1 + j / 4 % (SEQUENCES.len() - 1) };
        let roles: Vec<Role> =
            (0..settings.units).map(|j| Role { attack: attack(j), even: random.sign() > 0.0 }).collect();
        let batches = [0, 1].map(|run| stage.batches(run, steps, claim.adjacency, &sequences, &roles));
        let without = match claim.adjacency {
            Adjacency::ZeroOut => 0.0,
            Adjacency::ReplaceOne => -claim.clip_norm,
        };
        let (noise_std, shifts) = (claim.noise_std, (claim.clip_norm, without));
        Ok(Self { steps, whitening, longest, stage, noise_std, shifts, sequences, batches, roles })
    }

    /// The distance of the farthest neighbours that were found, in standard deviations of the noise.
    pub(crate) fn mu_found(&self, claim: &Claim) -> f64 {
        self.longest * claim.adjacency.sensitivity_factor() * claim.widened_clip_norm / claim.noise_std
    }

    /// The experiments, one a sequence, without a run.
    pub(crate) fn experiments(&self) -> Vec<Experiment> {
        let experiment = |(name, sequence): (&&'static str, &Sequence)| {
            Experiment::new(name, sequence, (&self.whitening, self.steps), self.noise_std, self.shifts)
        };
        SEQUENCES.iter().zip(&self.sequences).map(experiment).collect()
    }

    /// Units that follow the worst sequence.
    pub(crate) fn units_of_worst(&self) -> usize {
        self.roles.iter().filter(|role| role.attack == 0).count()
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
