//! A probe of a training on public data: how much the noise of a single step raises the final loss, and the
//! workload of the last iterate that follows. NOT PRIVATE.

use std::sync::atomic::{AtomicBool, Ordering};

use antinoise_input::{InvalidParameter, at_least, positive};
use antinoise_mechanism::Workload;
use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use antinoise_plan::{Batches, Sampler};
use rand_core::Rng;
use serde::Serialize;

use crate::Error;
use crate::clip::Clipping;
use crate::data::Dataset;
use crate::model::Model;
use crate::optimizer::{Optimizer, OptimizerConfig};
use crate::private_model::PrivateModel;

/// A training on public data with independent noise, of which single steps are given more noise.
///
/// ```text
/// growth(s) = mean over seeds and signs of [loss with z_s added to the sum of step s] - loss,    |z_s| = noise clip_norm per coordinate
/// ```
///
/// Losses are those of the test examples after the last step. Where the loss is a quadratic function of the
/// last iterate, growth(s) is a sum over its curvatures h of w_h u_h(s)^2, the squared responses of
/// [`Workload::LastIterate`].
///
/// # Source
/// The quadratic model of noise in training: monograph, Section 5.2, which leaves it open.
#[derive(Debug, Clone, Copy)]
pub struct Probe<'a> {
    /// The model.
    pub model: &'a Model,
    /// The public training and test data.
    pub dataset: &'a Dataset,
    /// The optimizer with its learning rate.
    pub optimizer: OptimizerConfig,
    /// Number of examples in a batch. Batches are cyclic, as those of a plan.
    pub batch_size: usize,
    /// Number of steps.
    pub steps: usize,
    /// The norm to which the gradient of each example is clipped.
    pub clip_norm: f64,
    /// Standard deviation of the noise in each coordinate of a step's sum, in clip norms: of every step, and
    /// once more of the probed step.
    pub noise_multiplier: f64,
    /// Number of trainings with different starts, batches and noise.
    pub repeats: usize,
    /// The seed of all of them.
    pub seed: u64,
}

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

/// A training that can be continued: parameters and optimizer before a step.
type State = (Vec<f32>, Optimizer);

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
        at_least("steps", self.steps, 2)?;
        at_least("repeats", self.repeats, 1)?;
        positive("noise_multiplier", self.noise_multiplier)?;
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
        let (key, run) = (Key::from_seed_insecure(self.seed.wrapping_add(repeat as u64)), RunId::default());
        let rng = |purpose, number| KeyedRng::new(&key, &run, purpose, number);
        let examples = self.dataset.train.len();
        let groups = (examples / at_least("batch_size", self.batch_size, 1)?).max(1);
        let order = &mut rng(Purpose::DataOrder, 0);
        let batches = Batches::new(Sampler::Cyclic { groups }, examples, self.batch_size, self.steps, order)?;
        // Noise of two signs has the covariance of normal noise, on which a quadratic loss depends.
        let size = (self.noise_multiplier * self.clip_norm) as f32;
        let noise = |number: usize| -> Vec<f32> {
            let random = &mut rng(Purpose::BatchSampling, number as u64);
            let sign = |_| if random.next_u32() >> 31 == 0 { size } else { -size };
            (0..self.model.parameters()).map(sign).collect()
        };
        let step = |step: usize, (parameters, optimizer): &mut State, more: f32| -> Result<(), Error> {
            let batch = batches.at(step, &mut rng(Purpose::DataOrder, 1));
            let clipping = Clipping { norm: self.clip_norm, groups: None };
            let sum = self.model.clipped_sum(parameters, &self.dataset.train, &batch, clipping)?.gradient;
            let (every, once) =
                (noise(step), if more == 0.0 { Vec::new() } else { noise(self.steps + step) });
            let added = |i: usize| every[i] + more * once.get(i).copied().unwrap_or(0.0);
            let mean = |(i, &sum): (usize, &f64)| ((sum + f64::from(added(i))) / batch.len() as f64) as f32;
            optimizer.step(parameters, &sum.iter().enumerate().map(mean).collect::<Vec<f32>>());
            Ok(())
        };
        let loss = |state: &State| -> Result<f64, Error> {
            let loss = self.model.evaluate(&state.0, &self.dataset.test)?.loss;
            if loss.is_finite() {
                return Ok(loss);
            }
            let must_be = "finite: probe with a smaller learning rate or noise multiplier";
            Err(InvalidParameter::new("final test loss", loss, must_be).into())
        };
        let start = self.model.initial_parameters(&mut rng(Purpose::Initialization, 0));
        let optimizer = Optimizer::of_run(self.optimizer, self.model.parameters(), self.steps)?;
        let (mut state, mut kept): (State, Vec<State>) = ((start, optimizer), Vec::new());
        for t in 0..self.steps {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if probed.contains(&t) {
                kept.push(state.clone());
            }
            step(t, &mut state, 0.0)?;
        }
        let (without, mut growths) = (loss(&state)?, Vec::new());
        progress();
        for (&probed, before) in probed.iter().zip(&kept) {
            let mut sum = 0.0;
            for sign in [1.0, -1.0] {
                let mut state = before.clone();
                step(probed, &mut state, sign)?;
                for t in probed + 1..self.steps {
                    if stop.load(Ordering::Relaxed) {
                        return Ok(None);
                    }
                    step(t, &mut state, 0.0)?;
                }
                sum += loss(&state)? - without;
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

    /// The workload of the last iterate before weights are fitted: all are equal.
    ///
    /// # Errors
    /// If the optimizer is not SGD, there are too many steps, or the share is out of range.
    pub fn equal_weights(&self, prefix_share: f64) -> Result<Workload, Error> {
        let Workload::LastIterate { momentum, weight_decay, rates, weights, .. } =
            self.optimizer.design_workload(self.steps)
        else {
            let must_be = "at most 16,384, with sgd or nesterov as optimizer";
            return Err(InvalidParameter::new("steps", self.steps, must_be).into());
        };
        let equal = Workload::LastIterate { momentum, weight_decay, prefix_share, rates, weights };
        equal.check().map_err(antinoise_plan::Error::from)?;
        Ok(equal)
    }

    /// The workload of the last iterate whose weights w_h are at least 0 and fit the growths best by least
    /// squares, with a share of prefix sums: noise of early steps can leave the region where the loss is
    /// quadratic.
    ///
    /// # Errors
    /// As [`equal_weights`](Self::equal_weights), and if a step of `growths` is not one of the run, or noise
    /// raises the loss nowhere, so that no weights follow.
    pub fn workload(&self, growths: &[Growth], prefix_share: f64) -> Result<Workload, Error> {
        let equal = self.equal_weights(prefix_share)?;
        let rows = equal.responses(self.steps).map_err(antinoise_plan::Error::from)?;
        if let Some(growth) = growths.iter().find(|growth| growth.step >= self.steps) {
            let must_be = format!("below {}, the steps of the run", self.steps);
            return Err(InvalidParameter::new("step of a growth", growth.step, must_be).into());
        }
        let squares: Vec<Vec<f64>> =
            rows.iter().map(|u| growths.iter().map(|growth| u[growth.step].powi(2)).collect()).collect();
        let measured: Vec<f64> = growths.iter().map(|growth| growth.mean).collect();
        let weights = non_negative_least_squares(&squares, &measured);
        if weights.iter().all(|&weight| weight == 0.0) {
            let must_be = "measured with more repeats or more noise: noise raises the final loss at no step";
            return Err(InvalidParameter::new("growths", "0 or below", must_be).into());
        }
        let largest = weights.iter().copied().fold(0.0, f64::max);
        Ok(equal.with_weights(weights.iter().map(|weight| weight / largest).collect()))
    }
}

/// Maximum number of passes over all weights of the fit.
const MOST_PASSES: usize = 100_000;

/// Returns weights of at least 0 for which the weighted sum of `columns` is nearest to `wanted`, by
/// coordinate descent.
fn non_negative_least_squares(columns: &[Vec<f64>], wanted: &[f64]) -> Vec<f64> {
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let (mut weights, mut left) = (vec![0.0_f64; columns.len()], wanted.to_vec());
    let lengths: Vec<f64> = columns.iter().map(|column| dot(column, column)).collect();
    for _ in 0..MOST_PASSES {
        let mut moved: f64 = 0.0;
        for ((weight, column), length) in weights.iter_mut().zip(columns).zip(&lengths) {
            if *length == 0.0 {
                continue;
            }
            let next = (*weight + dot(column, &left) / length).max(0.0);
            let change = next - *weight;
            left.iter_mut().zip(column).for_each(|(left, x)| *left -= change * x);
            moved = moved.max(change.abs() * length.sqrt());
            *weight = next;
        }
        if moved <= 1e-12 * dot(wanted, wanted).sqrt() {
            break;
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data;
    use crate::optimizer::UpdateRule;

    fn draws(mut state: u64) -> impl FnMut() -> f64 {
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    /// The conditions of Kuhn and Tucker in 300 random problems: no gradient along weights above 0, and none
    /// that asks for more of a weight of 0.
    #[test]
    fn the_fit_is_the_best_one_without_negative_weights() {
        let mut draw = draws(7);
        for _ in 0..300 {
            let (terms, points) = (1 + (draw() * 6.0) as usize, 8);
            let columns: Vec<Vec<f64>> = (0..terms).map(|_| (0..points).map(|_| draw()).collect()).collect();
            let wanted: Vec<f64> = (0..points).map(|_| draw() - 0.3).collect();
            let weights = non_negative_least_squares(&columns, &wanted);
            let mut left = wanted.clone();
            for (weight, column) in weights.iter().zip(&columns) {
                left.iter_mut().zip(column).for_each(|(left, x)| *left -= weight * x);
            }
            for (weight, column) in weights.iter().zip(&columns) {
                let slope: f64 = column.iter().zip(&left).map(|(x, y)| x * y).sum();
                assert!(
                    *weight >= 0.0 && slope < 1e-8 && (*weight == 0.0 || slope > -1e-8),
                    "{weight} {slope}"
                );
            }
        }
    }

    fn probe<'a>(model: &'a Model, dataset: &'a data::Dataset) -> Probe<'a> {
        Probe {
            model,
            dataset,
            optimizer: UpdateRule::Sgd { learning_rate: 0.5, momentum: 0.5 }.into(),
            batch_size: 96,
            steps: 45,
            clip_norm: 1.0,
            noise_multiplier: 4.0,
            repeats: 3,
            seed: 5,
        }
    }

    #[test]
    fn weights_of_known_growths_are_found_again() {
        let dataset = data::digits();
        let model = Model::logistic(dataset.shape, dataset.classes).unwrap();
        let probe = probe(&model, &dataset);
        let equal = probe.optimizer.design_workload(probe.steps);
        let rows = equal.responses(probe.steps).unwrap();
        let growth = |step: usize| {
            // The largest weight of a fit is 1.
            let mean = rows[1][step].powi(2) + rows[6][step].powi(2) / 3.0;
            Growth { step, mean, error: 0.0 }
        };
        let growths: Vec<Growth> = (0..probe.steps).map(growth).collect();
        let Workload::LastIterate { weights, .. } = probe.workload(&growths, 0.05).unwrap() else {
            unreachable!("SGD")
        };
        let fitted = |step: usize| rows.iter().zip(&weights).map(|(u, w)| w * u[step].powi(2)).sum::<f64>();
        for growth in &growths {
            assert!((fitted(growth.step) / growth.mean - 1.0).abs() < 1e-2, "{growth:?} {weights:?}");
        }
    }

    #[test]
    fn noise_raises_the_loss_the_more_the_later_it_comes_and_seeds_repeat_it() {
        let dataset = data::digits();
        let model = Model::logistic(dataset.shape, dataset.classes).unwrap();
        let probe = probe(&model, &dataset);
        let mut trainings = 0;
        let growths = probe.growths(6, &AtomicBool::new(false), || trainings += 1).unwrap().unwrap();
        assert_eq!(trainings, probe.trainings(6));
        assert!(growths[0].mean < growths[4].mean && growths[4].mean > 0.0, "{growths:?}");
        assert_eq!(probe.growths(6, &AtomicBool::new(false), || ()).unwrap().unwrap(), growths);
        assert_eq!(probe.growths(6, &AtomicBool::new(true), || ()).unwrap(), None);
    }

    #[test]
    fn growths_that_say_nothing_are_refused() {
        let dataset = data::digits();
        let model = Model::logistic(dataset.shape, dataset.classes).unwrap();
        let probe = probe(&model, &dataset);
        let at = |step, mean| Growth { step, mean, error: 0.0 };
        for growths in [vec![], vec![at(3, -1.0), at(9, 0.0)], vec![at(45, 1.0)]] {
            let error = probe.workload(&growths, 0.05).unwrap_err();
            assert!(matches!(error, Error::Invalid(_)), "{error}");
        }
    }
}
