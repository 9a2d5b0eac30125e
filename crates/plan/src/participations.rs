//! Which examples took part when, held against the plan's schema before a step is released.

use antinoise_input::{InvalidParameter, between};
use antinoise_mechanism::{Participation, Separation};

use crate::{Scheme, VerifiedPlan};

/// How often each example of a run took part, and in which step last: what the plan's schema is checked by at every step. Where sampling
/// amplifies privacy it is as secret as the key.
///
/// ```
/// use antinoise_plan::{Length, Participations, Request, Setting, choose};
/// let plan = choose(&Request::new(60, 5, Length::Epochs(3), Setting::Cyclic))?.plan;
/// let mut taken = Participations::none(&plan);
/// taken.record(0, &[3, 4])?;
/// assert!(taken.record(11, &[3]).is_err()); // the plan says 12 steps apart
/// taken.record(12, &[3])?;
/// assert_eq!(Participations::from_bytes(&plan, &taken.to_bytes())?, taken);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Participations {
    limits: Limits,
    /// No step below this one can be recorded.
    next: usize,
    of: Vec<Taken>,
}

/// Of one example.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Taken {
    count: u32,
    last: u32,
}

/// What the plan accounts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limits {
    min_sep: usize,
    most: usize,
    /// Whether an example's steps differ by multiples of `min_sep`: those of one group, or one bin.
    in_phase: bool,
    steps: usize,
}

impl Limits {
    fn of(plan: &VerifiedPlan) -> Self {
        let steps = plan.steps;
        let every = |groups: usize| (groups, steps.div_ceil(groups), true);
        let (min_sep, most, in_phase) = match plan.scheme() {
            // Each participation is accounted by itself; there is at most one a round.
            Scheme::Amplified { groups } => every(groups),
            Scheme::BallsInBins { bins, .. } => every(bins),
            Scheme::BMinSep { min_sep, .. } => (min_sep, steps.div_ceil(min_sep), false),
            Scheme::Unamplified { participation, .. } => {
                let Separation { min_sep, max_participations } = participation.separation(steps);
                (min_sep, max_participations, matches!(participation, Participation::Cyclic { .. }))
            }
        };
        Self { min_sep, most, in_phase, steps }
    }

    fn allow(&self, Taken { count, last }: Taken, step: usize) -> bool {
        let since = step.saturating_sub(last as usize);
        let apart = since >= self.min_sep && (!self.in_phase || since.is_multiple_of(self.min_sep));
        count == 0 && self.most > 0 || (count as usize) < self.most && apart
    }

    fn words(&self) -> String {
        let Self { min_sep, most, .. } = self;
        let apart = if self.in_phase { "a multiple of " } else { "at least " };
        format!(
            "of examples that each take part in at most {most} steps, any two of them {apart}{min_sep} steps \
             apart: the plan accounts for no others"
        )
    }
}

impl Participations {
    /// Nobody took part yet. Limits are those of the plan's groups, bins or schema; of listed patterns, their least separation and their
    /// greatest length.
    pub fn none(plan: &VerifiedPlan) -> Self {
        Self { limits: Limits::of(plan), next: 0, of: vec![Taken::default(); plan.examples] }
    }

    /// Those of a run's first `steps` steps, whose examples `batch` says.
    ///
    /// # Errors
    /// As [`Participations::record`], or as `batch`.
    pub fn of_steps<E: From<InvalidParameter>>(
        plan: &VerifiedPlan,
        steps: usize,
        mut batch: impl FnMut(usize) -> Result<Vec<usize>, E>,
    ) -> Result<Self, E> {
        let mut made = Self::none(plan);
        for step in 0..steps {
            made.record(step, &batch(step)?)?;
        }
        Ok(made)
    }

    /// The step after the last one that was recorded; 0 where there is none.
    pub fn next_step(&self) -> usize {
        self.next
    }

    /// Refuses what [`Participations::record`] refuses, and records nothing.
    ///
    /// # Errors
    /// When the step is not after those recorded, or is none of the plan's; an example is none of the plan's, is in the batch twice, took part
    /// as often as the plan accounts for, or too few steps ago, or is one of another group or bin.
    pub fn check(&self, step: usize, batch: &[usize]) -> Result<(), InvalidParameter> {
        between(
            "step",
            step,
            self.next,
            self.limits.steps - 1,
            "the plan's last step, and after those recorded",
        )?;
        let refused = |got: &str, must_be| {
            Err(InvalidParameter::new(format!("batch of step {step}"), format!("with {got}"), must_be))
        };
        let mut sorted = batch.to_vec();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return refused("an example twice", "of different examples".into());
        }
        if sorted.last().is_some_and(|&last| last >= self.of.len()) {
            return refused(
                "a number of no example",
                format!("of examples below {}, the plan's", self.of.len()),
            );
        }
        if !batch.iter().all(|&example| self.limits.allow(self.of[example], step)) {
            let got = "an example that took part too often, too few steps ago or in another group's step";
            return refused(got, self.limits.words());
        }
        Ok(())
    }

    /// Records that the examples `batch` take part in `step`.
    ///
    /// # Errors
    /// As [`Participations::check`]; then nothing is recorded.
    pub fn record(&mut self, step: usize, batch: &[usize]) -> Result<(), InvalidParameter> {
        self.check(step, batch)?;
        for &example in batch {
            let Taken { count, last } = &mut self.of[example];
            (*count, *last) = (*count + 1, step as u32);
        }
        self.next = step + 1;
        Ok(())
    }

    /// 8 bytes, and 8 for each example, little-endian: the next step, then counts and last steps.
    pub fn to_bytes(&self) -> Vec<u8> {
        let each = self.of.iter().flat_map(|of| [of.count.to_le_bytes(), of.last.to_le_bytes()]);
        (self.next as u64).to_le_bytes().into_iter().chain(each.flatten()).collect()
    }

    /// Those that [`Participations::to_bytes`] wrote.
    ///
    /// # Errors
    /// When they are of another number of examples, or none that the plan accounts for.
    pub fn from_bytes(plan: &VerifiedPlan, bytes: &[u8]) -> Result<Self, InvalidParameter> {
        let mut made = Self::none(plan);
        let words: Vec<usize> =
            bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize).collect();
        let refused = |got: String| {
            let must_be = format!("those of a run of this plan, {} bytes", 8 * (plan.examples + 1));
            Err(InvalidParameter::new("participations", got, must_be))
        };
        if bytes.len() != 8 * (plan.examples + 1) {
            return refused(format!("{} bytes", bytes.len()));
        }
        made.next = words[0];
        if words[1] != 0 || made.next > plan.steps {
            return refused("those of more steps than the plan has".into());
        }
        for (of, pair) in made.of.iter_mut().zip(words[2..].chunks_exact(2)) {
            let (count, last) = (pair[0], pair[1]);
            let fits = if count == 0 {
                last == 0
            } else {
                last < made.next && (count - 1) * made.limits.min_sep <= last
            };
            if !fits || count > made.limits.most {
                return refused("those of other steps".into());
            }
            *of = Taken { count: count as u32, last: last as u32 };
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests;
