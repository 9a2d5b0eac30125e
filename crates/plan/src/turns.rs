//! Whether a plan's sampler keeps the schema that its sensitivity is for.

use antinoise_input::{InvalidParameter, at_least, between};
use antinoise_mechanism::{Participation, PrivacyUnit};

use crate::{Plan, Result, Sampler, Scheme};

impl Plan {
    /// The sampler must keep the schema that the sensitivity is for.
    pub(crate) fn check_sampler(&self, scheme: &Scheme) -> Result<()> {
        let keeps = match *scheme {
            Scheme::Amplified { groups } => {
                at_least("groups", groups, 1)?;
                true
            }
            Scheme::Unamplified {
                sampler: Sampler::Cyclic { groups } | Sampler::BallsInBins { bins: groups },
                ..
            }
            | Scheme::BallsInBins { bins: groups, .. } => {
                between("groups", groups, 1, self.examples, "examples")?;
                self.participation_holds_cyclic(groups)
            }
            Scheme::Unamplified { sampler: Sampler::BMinSep { min_sep }, .. }
            | Scheme::BMinSep { min_sep, .. } => {
                let most = self.examples / self.batch_size;
                between(
                    "min_sep",
                    min_sep,
                    1,
                    most,
                    "examples / batch_size: so many batches share no example",
                )?;
                self.participation_holds_min_sep(min_sep)
            }
            Scheme::Unamplified { sampler: Sampler::Poisson { groups }, .. } => {
                at_least("groups", groups, 1)?;
                groups == 1 && self.participation == Participation::FullBatch
            }
            Scheme::Unamplified { sampler: Sampler::Stream, .. } => {
                let most = self.examples / self.batch_size;
                between(
                    "steps",
                    self.steps,
                    1,
                    most,
                    "examples / batch_size, after which a stream has ended",
                )?;
                self.participation_holds_cyclic(self.steps)
            }
            Scheme::Unamplified { sampler: Sampler::External, .. } => true,
        };
        if keeps { Ok(()) } else { Err(self.unkept_schema()) }
    }

    /// Samplers that take examples keep a schema of examples: a user with two of them takes part twice as often.
    pub(crate) fn check_unit(&self) -> Result<()> {
        if self.privacy.unit == PrivacyUnit::User && self.sampler != Sampler::External {
            let must_be = "example: the plan's sampler takes examples by number, and clips each by itself, so that a \
                           user with several takes part more often. A plan for users has the external sampler; where \
                           every user has one example, the two units are the same";
            return Err(InvalidParameter::new("unit of the plan", "user", must_be).into());
        }
        Ok(())
    }

    /// True when the schema has every pattern of turns at least `min_sep` steps apart.
    fn participation_holds_min_sep(&self, least: usize) -> bool {
        let turns = self.steps.div_ceil(least);
        match self.participation {
            Participation::FullBatch => true,
            Participation::MinSep { min_sep, max_participations } => {
                least >= min_sep && turns <= max_participations
            }
            Participation::Single | Participation::Cyclic { .. } => turns <= 1,
            // Listed patterns may leave out some.
            Participation::Patterns { .. } => false,
        }
    }

    /// True when the schema has every pattern of a unit whose turn comes every `groups` steps.
    fn participation_holds_cyclic(&self, groups: usize) -> bool {
        let turns = self.steps.div_ceil(groups);
        match self.participation {
            Participation::Single => turns <= 1,
            Participation::FullBatch => true,
            Participation::Cyclic { min_sep, max_participations } => {
                groups == min_sep && turns <= max_participations
            }
            Participation::MinSep { min_sep, max_participations } => {
                groups >= min_sep && turns <= max_participations
            }
            // Listed patterns may leave out some phase.
            Participation::Patterns { .. } => false,
        }
    }
}
