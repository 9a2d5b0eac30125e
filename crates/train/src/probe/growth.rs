//! The growth of the final loss with noise at single steps, by repeated trainings.

use std::sync::atomic::{AtomicBool, Ordering};

use antinoise_input::at_least;
use serde::Serialize;

use super::definition::Probe;
use super::training::{State, Training};
use crate::Error;

/// The growth of the final loss with noise at one step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Growth {
    /// The step, from 0.
    pub step: usize,
    /// Mean over repeats and both signs of the noise.
    pub mean: f64,
    /// Standard error of the mean over repeats; NaN for a single repeat.
    pub error: f64,
}

impl Probe<'_> {
    /// Measures the growth at about `count` steps, evenly spaced and the first and last among them, and calls
    /// `progress` after each training. Returns `None` if `stop` becomes true.
    ///
    /// ```
    /// use std::sync::atomic::AtomicBool;
    /// use antinoise_train::{data, model::Model, optimizer::UpdateRule, probe::Probe};
    /// let dataset = data::digits();
    /// let model = Model::logistic(dataset.shape, dataset.classes)?;
    /// let probe = Probe {
    ///     model: &model,
    ///     dataset: &dataset,
    ///     optimizer: UpdateRule::Sgd { learning_rate: 0.5, momentum: 0.0 }.into(),
    ///     batch_size: 96,
    ///     steps: 30,
    ///     clip_norm: 1.0,
    ///     noise_multiplier: 4.0,
    ///     repeats: 2,
    ///     seed: 1,
    /// };
    /// let growths = probe.growths(4, &AtomicBool::new(false), || ())?.unwrap();
    /// assert!(growths.iter().map(|g| g.step).eq([0, 10, 19, 29]));
    /// let workload = probe.workload(&growths, 0.05)?;
    /// assert!(workload.check_steps(30).is_ok());
    /// # Ok::<(), antinoise_train::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a number is out of range, the optimizer's schedule does not fit, a step fails, or a final loss is
    /// not finite.
    pub fn growths(
        &self,
        count: usize,
        stop: &AtomicBool,
        mut progress: impl FnMut(),
    ) -> Result<Option<Vec<Growth>>, Error> {
        self.check()?;
        let last = self.steps - 1;
        let parts = at_least("probes", count, 2)?.min(self.steps) - 1;
        let probed: Vec<usize> = (0..=parts).map(|i| (2 * i * last + parts) / (2 * parts)).collect();
        let mut of_repeats = Vec::new();
        for repeat in 0..self.repeats {
            match self.repeat(repeat, &probed, stop, &mut progress)? {
                Some(growths) => of_repeats.push(growths),
                None => return Ok(None),
            }
        }
        let growth = |(i, &step): (usize, &usize)| {
            let each: Vec<f64> = of_repeats.iter().map(|growths| growths[i]).collect();
            let n = each.len() as f64;
            let mean = each.iter().sum::<f64>() / n;
            let variance = each.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
            Growth { step, mean, error: (variance / n).sqrt() }
        };
        Ok(Some(probed.iter().enumerate().map(growth).collect()))
    }

    /// The growths of one repeat at the steps `probed`.
    fn repeat(
        &self,
        repeat: usize,
        probed: &[usize],
        stop: &AtomicBool,
        progress: &mut impl FnMut(),
    ) -> Result<Option<Vec<f64>>, Error> {
        let training = Training::new(self, repeat)?;
        let (mut state, mut kept): (State, Vec<State>) = (training.start()?, Vec::new());
        for t in 0..self.steps {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if probed.contains(&t) {
                kept.push(state.clone());
            }
            training.step(t, &mut state, 0.0)?;
        }
        let (without, mut growths) = (training.final_loss(&state)?, Vec::new());
        progress();
        for (&probed, before) in probed.iter().zip(&kept) {
            let mut sum = 0.0;
            for sign in [1.0, -1.0] {
                let mut state = before.clone();
                training.step(probed, &mut state, sign)?;
                for t in probed + 1..self.steps {
                    if stop.load(Ordering::Relaxed) {
                        return Ok(None);
                    }
                    training.step(t, &mut state, 0.0)?;
                }
                sum += training.loss(&state)? - without;
                progress();
            }
            growths.push(sum / 2.0);
        }
        Ok(Some(growths))
    }

    /// The number of trainings, whole or in part, of [`growths`](Self::growths) at `count` steps.
    pub fn trainings(&self, count: usize) -> usize {
        self.repeats * (1 + 2 * count.min(self.steps))
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{logistic_digits, probe};
    use super::*;

    #[test]
    fn noise_raises_the_loss_the_more_the_later_it_comes_and_seeds_repeat_it() {
        let (model, dataset) = logistic_digits();
        let probe = probe(&model, &dataset);
        let mut trainings = 0;
        let growths = probe.growths(6, &AtomicBool::new(false), || trainings += 1).unwrap().unwrap();
        assert_eq!(trainings, probe.trainings(6));
        assert!(growths[0].mean < growths[4].mean && growths[4].mean > 0.0, "{growths:?}");
        assert_eq!(probe.growths(6, &AtomicBool::new(false), || ()).unwrap().unwrap(), growths);
        assert_eq!(probe.growths(6, &AtomicBool::new(true), || ()).unwrap(), None);
    }
}
