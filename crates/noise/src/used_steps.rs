//! A record of the steps whose noise a stream has handed out. A row of noise can protect only one sum: a
//! second sum with the same row would reveal the difference of the two.

use antinoise_input::InvalidParameter;

/// The steps whose noise was handed out. A stream hands out consecutive steps from the step to which it last
/// moved, so that two numbers record them.
#[derive(Debug)]
pub(crate) struct Used {
    /// The step to which the stream last moved.
    from: usize,
    /// All steps before this one count as used. If the stream's current step is beyond `from`, all steps
    /// before the current step count as used too.
    before: usize,
}

impl Used {
    /// Creates the record for a stream at `step`: all steps before it count as used.
    pub(crate) fn before(step: usize) -> Self {
        Self { from: step, before: step }
    }

    /// Returns the first step from which on no noise was handed out, for a stream at step `at`.
    fn end(&self, at: usize) -> usize {
        if at > self.from { self.before.max(at) } else { self.before }
    }

    /// Records a move from step `at` to `step`; refuses it if noise from `step` on was handed out.
    pub(crate) fn go(&mut self, at: usize, step: usize) -> Result<(), InvalidParameter> {
        let before = self.end(at);
        if step < before {
            let must_be = format!(
                "at least {before}: the noise of earlier steps was handed out, and a second sum under the same noise would \
                 reveal the difference of the two sums. If nobody sees the first sum, \
                 seek_and_reuse_noise_unprotected moves there"
            );
            return Err(InvalidParameter::new("step", step, must_be));
        }
        *self = Self { from: step, before };
        Ok(())
    }

    /// Records a move from step `at` to `step`, and counts the noise of `step` and all later steps as unused.
    pub(crate) fn forget_from(&mut self, at: usize, step: usize) {
        *self = Self { from: step, before: self.end(at).min(step) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the record with a list of all steps that were handed out, for every sequence of four jumps
    /// with one or two steps after each.
    #[test]
    fn steps_from_the_last_one_in_use_on_are_free_and_no_others() {
        const STEPS: usize = 5;
        let mut cases = 0;
        for sequence in 0..(STEPS * 3).pow(4) {
            let (mut used, mut at, mut last) = (Used::before(0), 0, 0);
            let mut rest = sequence;
            for _ in 0..4 {
                let (step, taken) = (rest % STEPS, rest / STEPS % 3);
                rest /= STEPS * 3;
                match used.go(at, step) {
                    Ok(()) => assert!(step >= last),
                    Err(error) => {
                        assert!(step < last && error.to_string().contains(&format!("at least {last}")));
                        used.forget_from(at, step);
                    }
                }
                at = step + taken;
                last = if step < last || taken > 0 { at.max(step) } else { last };
                cases += 1;
            }
        }
        assert_eq!(cases, 4 * 15usize.pow(4));
    }
}
