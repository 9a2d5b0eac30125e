//! Who took part when, held against the plan's schema before a gradient is used.

use antinoise_input::InvalidParameter;
use antinoise_mechanism::Participation;
use antinoise_noise::{AnyStream, Purpose};
use antinoise_plan::{Batches, Scheme, VerifiedPlan};

/// The turns that every example has had. Where sampling amplifies privacy they are a secret.
#[derive(Debug)]
pub(super) struct Turns {
    min_sep: usize,
    most: usize,
    /// (turns, the step of the last one), one an example.
    taken: Vec<(u32, u32)>,
}

impl Turns {
    /// Nobody has had a turn.
    pub(super) fn none(plan: &VerifiedPlan) -> Self {
        let (min_sep, most) = match plan.scheme() {
            // Each turn is accounted by itself; there is one a round.
            Scheme::Amplified { groups } => (groups, plan.steps.div_ceil(groups)),
            scheme => match scheme.participation() {
                Participation::Single => (1, 1),
                schema => schema.separation(plan.steps),
            },
        };
        Self { min_sep, most, taken: vec![(0, 0); plan.examples] }
    }

    /// Those of the first steps of a run that goes on: its batches are made again.
    pub(super) fn before(
        plan: &VerifiedPlan,
        batches: &Batches,
        noise: &AnyStream,
    ) -> Result<Self, InvalidParameter> {
        let mut turns = Self::none(plan);
        for step in 0..noise.step() {
            turns.take(step, &batches.at(step, &mut noise.rng(Purpose::BatchSampling, step as u64)))?;
        }
        Ok(turns)
    }

    /// The turns of a step; refused, where one of its examples may not have one.
    pub(super) fn take(&mut self, step: usize, batch: &[usize]) -> Result<(), InvalidParameter> {
        for &example in batch {
            let (turns, last) = self.taken[example];
            let may = turns == 0 || (turns as usize) < self.most && step - last as usize >= self.min_sep;
            if !may {
                let got = "with an example that has had its turns or had one too short a time ago";
                let must_be = format!(
                    "of examples with less than {} turns, any two {} steps apart: the plan accounts for no others",
                    self.most, self.min_sep
                );
                return Err(InvalidParameter::new(format!("batch of step {step}"), got, must_be));
            }
            self.taken[example] = (turns + 1, step as u32);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use antinoise_noise::{Key, KeyedRng, RunId};
    use antinoise_plan::{Length, Request, Setting, choose};

    use super::*;

    fn turns(setting: Setting, epochs: usize) -> (VerifiedPlan, Turns) {
        let plan = choose(&Request::new(60, 5, Length::Epochs(epochs), setting)).unwrap().plan;
        let turns = Turns::none(&plan);
        (plan, turns)
    }

    /// Every sampler's batches pass, and the same ones a step off do not.
    #[test]
    fn batches_of_the_plan_alone_are_taken() {
        for (setting, epochs) in [
            (Setting::Cyclic, 3),
            (Setting::Single, 1),
            (Setting::Stream, 1),
            (Setting::Poisson, 3),
            (Setting::BMinSep, 3),
        ] {
            let name = format!("{setting:?}");
            let (plan, mut taken) = turns(setting, epochs);
            let key = Key::from_seed_insecure(7);
            let rng = |purpose, step| KeyedRng::new(&key, &RunId::default(), purpose, step);
            let order = &mut rng(Purpose::DataOrder, 0);
            let batches =
                Batches::new(plan.sampler, plan.examples, plan.batch_size, plan.steps, order).unwrap();
            let at = |step| batches.at(step, &mut rng(Purpose::BatchSampling, step as u64));
            for step in 0..plan.steps {
                taken.take(step, &at(step)).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
            let mut again = Turns::none(&plan);
            let first = at(0);
            again.take(0, &first).unwrap();
            let apart = taken.min_sep.max(2) - 1;
            let refused = again.take(apart, &first);
            assert!(refused.is_err() || taken.min_sep == 1 && taken.most > 1, "{name}");
        }
    }

    #[test]
    fn turns_too_many_too_early_or_twice_at_once_are_refused() {
        let (plan, mut taken) = turns(Setting::Cyclic, 3);
        assert_eq!((taken.min_sep, taken.most, plan.steps), (12, 3, 36));
        assert!(taken.take(0, &[3, 4, 3]).unwrap_err().to_string().contains("batch of step 0"));
        let mut taken = Turns::none(&plan);
        for step in [0, 12, 30] {
            taken.take(step, &[3]).unwrap();
        }
        assert!(taken.take(35, &[4]).is_ok() && taken.take(46, &[3]).is_err());
        assert!(taken.take(46, &[4]).is_err() && taken.take(47, &[4]).is_ok());
    }
}
