//! The experiment that all runs repeat: the sequences, the units that follow them, and the batches of every
//! step.

use antinoise_input::InvalidParameter;
use antinoise_mechanism::{Adjacency, Encoder, Participation, Strategy};

use crate::canary_inputs::{Arm, CanaryInputs};
use crate::membership_test::MembershipTest;
use crate::operator::{MOST_RECTANGULAR, Operator, is_rectangular};
use crate::random::Random;
use crate::settings::{MOST_STEPS, Settings};
use crate::worst_case::{Sequence, densest, drawn, longest};
use crate::{Claim, Error};

/// The names of the sequences that units follow; the first is the worst sequence that was found.
pub(crate) const SEQUENCES: [&str; 4] =
    ["the worst sequence", "the densest pattern", "a sequence at random", "another sequence at random"];

/// The experiment that all runs repeat.
pub(crate) struct Experiment {
    pub(crate) steps: usize,
    pub(crate) whitening: Operator,
    /// The largest norm |C g| of a sequence g that was found, in clip norms.
    longest: f64,
    pub(crate) canaries: CanaryInputs,
    pub(crate) noise_std: f64,
    /// How far a unit shifts a sum along its direction at a step where its sequence is +1: if it takes part,
    /// and if it does not.
    shifts: (f64, f64),
    sequences: Vec<Sequence>,
    /// The batches of runs with even numbers, and of runs with odd numbers.
    pub(crate) batches: [Vec<Vec<usize>>; 2],
    pub(crate) arms: Vec<Arm>,
}

impl Experiment {
    pub(crate) fn new(claim: &Claim, settings: &Settings) -> Result<Self, Error> {
        let mut random = Random(settings.seed);
        let attacked = Attacked::new(&*claim.strategy, &claim.participation, &mut random)?;
        let Attacked { steps, whitening, worst, longest } = attacked;
        let mut others = [(); SEQUENCES.len() - 2].map(|()| drawn(&claim.participation, steps, &mut random));
        // A listed pattern may begin after the audited steps.
        others.iter_mut().filter(|other| other.is_empty()).for_each(|other| other.clone_from(&worst));
        let densest = densest(&claim.participation, steps);
        let densest = if densest.is_empty() { worst.clone() } else { densest };
        let sequences: Vec<Sequence> = [worst, densest].into_iter().chain(others).collect();
        let canaries = CanaryInputs::new(settings.units, claim.clip_norm, &mut random)?;
        // Three of four units follow the worst sequence.
        let attack = |j: usize| if j % 4 < 3 { 0 } else { 1 + j / 4 % (SEQUENCES.len() - 1) };
        let arms: Vec<Arm> =
            (0..settings.units).map(|j| Arm { attack: attack(j), even: random.sign() > 0.0 }).collect();
        let batches = [0, 1].map(|run| canaries.batches(run, steps, claim.adjacency, &sequences, &arms));
        let without = match claim.adjacency {
            Adjacency::ZeroOut => 0.0,
            Adjacency::ReplaceOne => -claim.clip_norm,
        };
        let (noise_std, shifts) = (claim.noise_std, (claim.clip_norm, without));
        Ok(Self { steps, whitening, longest, canaries, noise_std, shifts, sequences, batches, arms })
    }

    /// The largest distance between neighbours that was found, in standard deviations of the noise.
    pub(crate) fn mu_found(&self, claim: &Claim) -> f64 {
        self.longest * claim.adjacency.sensitivity_factor() * claim.widened_clip_norm / claim.noise_std
    }

    /// A membership test for each sequence, without guesses yet.
    pub(crate) fn membership_tests(&self) -> Vec<MembershipTest> {
        let test = |(name, sequence): (&&'static str, &Sequence)| {
            MembershipTest::new(name, sequence, (&self.whitening, self.steps), self.noise_std, self.shifts)
        };
        SEQUENCES.iter().zip(&self.sequences).map(test).collect()
    }

    /// Number of units that follow the worst sequence.
    pub(crate) fn units_of_worst(&self) -> usize {
        self.arms.iter().filter(|arm| arm.attack == 0).count()
    }
}

/// A mechanism under attack: the operator that whitens its noise over the audited steps, and the
/// contributions of one unit that move the whitened output farthest.
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
        // For a C with more rows than columns, the claim is about the sensitivity of C, although its noise is
        // more private than that.
        let whole = rectangular && steps == mechanism.steps();
        let longest = if whole { found.max(of_encoder(&encoder, random)) } else { found };
        Ok(Self { steps, whitening, worst, longest })
    }
}
