//! A record of participation, which refuses a batch that violates the plan's schema before its noisy sum is
//! made.

use antinoise_input::{InvalidParameter, between};
use antinoise_mechanism::{Participation, Separation};

use crate::{Spacing, VerifiedPlan};

/// For each example of a run, its number of participations and its last step, which are checked against the
/// plan's schema at every step. If sampling amplifies privacy, this record is as secret as the key.
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
    /// The first step that can still be recorded.
    next: usize,
    of: Vec<Taken>,
}

/// The participation of one example so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Taken {
    count: u32,
    last: u32,
}

/// The participation that the plan accounts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limits {
    min_sep: usize,
    most: usize,
    /// Whether an example's steps differ by multiples of `min_sep`, as in a group or a bin.
    in_phase: bool,
    /// The number of steps of an epoch, in each of which an example takes part at most once.
    epoch: Option<usize>,
    steps: usize,
}

impl Limits {
    fn of(plan: &VerifiedPlan) -> Self {
        let (steps, schedule) = (plan.steps, plan.schedule());
        let (min_sep, most, in_phase) = match schedule.sampler.spacing() {
            Some(Spacing { steps: apart, is_exact }) if schedule.is_amplified() => {
                (apart, steps.div_ceil(apart), is_exact)
            }
            _ => {
                let Separation { min_sep, max_participations } = schedule.participation.separation(steps);
                let in_phase = matches!(schedule.participation, Participation::Cyclic { .. });
                (min_sep, max_participations, in_phase)
            }
        };
        let epoch = schedule.participation.epoch_steps();
        Self { min_sep, most, in_phase, epoch, steps }
    }

    fn allow(&self, Taken { count, last }: Taken, step: usize) -> bool {
        let since = step.saturating_sub(last as usize);
        let is_later = |epoch| last as usize / epoch < step / epoch;
        let apart = since >= self.min_sep
            && (!self.in_phase || since.is_multiple_of(self.min_sep))
            && self.epoch.is_none_or(is_later);
        count == 0 && self.most > 0 || (count as usize) < self.most && apart
    }

    fn words(&self) -> String {
        let Self { min_sep, most, .. } = self;
        if let Some(epoch) = self.epoch {
            return format!(
                "of examples that each take part at most once in each epoch of {epoch} steps, as the plan's claim assumes"
            );
        }
        let apart = if self.in_phase { "a multiple of " } else { "at least " };
        format!(
            "of examples that each take part in at most {most} steps, any two of them {apart}{min_sep} steps \
             apart, as the plan's claim assumes"
        )
    }
}

impl Participations {
    /// An empty record, with the limits of the plan's groups, bins or schema. For listed patterns, these are
    /// the smallest separation and the length of the longest pattern.
    pub fn none(plan: &VerifiedPlan) -> Self {
        Self { limits: Limits::of(plan), next: 0, of: vec![Taken::default(); plan.examples] }
    }

    /// The record of a run's first `steps` steps; `batch` returns the examples of a step.
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

    /// The step after the last recorded one; 0 for an empty record.
    pub fn next_step(&self) -> usize {
        self.next
    }

    /// Checks that `batch` can be recorded as the batch of `step`.
    ///
    /// # Errors
    /// When the step was recorded already or is not a step of the plan; or when an example is not in the
    /// plan, is in the batch twice, has participated as often as the plan allows or too few steps ago, or
    /// belongs to another group or bin.
    pub fn check(&self, step: usize, batch: &[usize]) -> Result<(), InvalidParameter> {
        between(
            "step",
            step,
            self.next,
            self.limits.steps - 1,
            "the plan's last step; earlier ones are recorded",
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
                "a number that no example has",
                format!("of example numbers below {}, the plan's number of examples", self.of.len()),
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
    /// As [`Participations::check`]; the record is then unchanged.
    pub fn record(&mut self, step: usize, batch: &[usize]) -> Result<(), InvalidParameter> {
        self.check(step, batch)?;
        for &example in batch {
            let Taken { count, last } = &mut self.of[example];
            (*count, *last) = (*count + 1, step as u32);
        }
        self.next = step + 1;
        Ok(())
    }

    /// The record as bytes: 8 bytes for the next step, then 8 for each example's count and last step,
    /// little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let each = self.of.iter().flat_map(|of| [of.count.to_le_bytes(), of.last.to_le_bytes()]);
        (self.next as u64).to_le_bytes().into_iter().chain(each.flatten()).collect()
    }

    /// The record that [`Participations::to_bytes`] wrote.
    ///
    /// # Errors
    /// When the record has another number of examples, or is outside of the plan's schema.
    pub fn from_bytes(plan: &VerifiedPlan, bytes: &[u8]) -> Result<Self, InvalidParameter> {
        let mut made = Self::none(plan);
        let words: Vec<usize> =
            bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize).collect();
        let refused = |got: String| {
            let must_be = format!("the record of a run of this plan, {} bytes", 8 * (plan.examples + 1));
            Err(InvalidParameter::new("participations", got, must_be))
        };
        if bytes.len() != 8 * (plan.examples + 1) {
            return refused(format!("{} bytes", bytes.len()));
        }
        made.next = words[0];
        if words[1] != 0 || made.next > plan.steps {
            return refused("a record of more steps than the plan has".into());
        }
        for (of, pair) in made.of.iter_mut().zip(words[2..].chunks_exact(2)) {
            let (count, last) = (pair[0], pair[1]);
            let fits = if count == 0 {
                last == 0
            } else {
                last < made.next && count - 1 <= last / made.limits.epoch.unwrap_or(made.limits.min_sep)
            };
            if !fits || count > made.limits.most {
                return refused("a record of participations that the plan does not allow".into());
            }
            *of = Taken { count: count as u32, last: last as u32 };
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests;
