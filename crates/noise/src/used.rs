//! Which steps' noise a stream has handed out: a row hides one sum, and a second sum under it shows the
//! difference of both.

use antinoise_input::InvalidParameter;

/// The steps whose noise is in use. A stream hands out every step from where it last went to on, so that
/// nothing has to be noted at a step.
#[derive(Debug)]
pub(crate) struct Used {
    /// Where the stream last went to.
    from: usize,
    /// All steps before this one count as used; more do, once the stream is beyond `from`.
    before: usize,
}

impl Used {
    /// All steps before `step`, where the stream is.
    pub(crate) fn before(step: usize) -> Self {
        Self { from: step, before: step }
    }

    /// The step from which on no noise is in use, of a stream at the step `at`.
    fn end(&self, at: usize) -> usize {
        if at > self.from { self.before.max(at) } else { self.before }
    }

    /// Goes from the step `at` to `step`, if no noise from there on is in use.
    pub(crate) fn go(&mut self, at: usize, step: usize) -> Result<(), InvalidParameter> {
        let before = self.end(at);
        if step < before {
            let must_be = format!(
                "at least {before}: noise of the steps before hides what it was handed out for, and with a second sum under \
                 the same noise the difference of the two has none. Where nobody sees the first, \
                 seek_and_reuse_noise_unprotected goes there"
            );
            return Err(InvalidParameter::new("step", step, must_be));
        }
        *self = Self { from: step, before };
        Ok(())
    }

    /// Goes to `step` and forgets that its noise, and that of later steps, is in use.
    pub(crate) fn forget_from(&mut self, at: usize, step: usize) {
        *self = Self { from: step, before: self.end(at).min(step) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a list of the steps that were handed out, over every sequence of four jumps with a step or two
    /// after each.
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
