use std::fmt;

use antinoise_input::{InvalidParameter, at_least};
use candle_core::Device;
use rayon::prelude::*;

use super::example_model::ExampleModel;
use super::gradient::{Variables, tensors};
use super::worker::Worker;
use crate::Error;
use crate::clip::{self, Clipping, GradientSum, check_users, sum_clipped_vectors};
use crate::data::Examples;
use crate::model::Evaluation;
use crate::private_model::PrivateModel;

/// An [`ExampleModel`] under private training: one backward pass per example, on all threads or on a GPU
/// ([`on`](Self::on)), then clipping and sums as for this crate's models, with the same proof
/// (`docs/training.md`).
///
/// A pass sees only one example, so that an example's gradient does not depend on others. A step takes as
/// long as its passes: a model that can be expressed as a [`Model`](crate::model::Model) is many times faster
/// there.
pub struct CandleModel<M> {
    name: String,
    model: M,
    shapes: Vec<Vec<usize>>,
    parameters: usize,
    layers: Vec<usize>,
    worker: Worker,
}

/// Examples per sum of one thread. A constant, so that summation order does not depend on the machine.
const CHUNK: usize = 8;
const MAX_PARAMETERS: usize = 1 << 32;

impl<M: ExampleModel> CandleModel<M> {
    /// Wraps `model`; `name` is its name in reports.
    ///
    /// # Errors
    /// If the model has no parameters, or more than 2^32, or its layers are not made of its tensors.
    pub fn new(name: &str, model: M) -> Result<Self, InvalidParameter> {
        let shapes = model.shapes();
        let sizes = shapes.iter().map(|shape| shape.iter().try_fold(1usize, |size, &d| size.checked_mul(d)));
        let parameters = sizes.into_iter().try_fold(0usize, |sum, size| sum.checked_add(size?));
        let parameters = parameters.filter(|&count| count <= MAX_PARAMETERS).ok_or_else(|| {
            let must_be = format!("at most {MAX_PARAMETERS} numbers in all");
            InvalidParameter::new("shapes of the parameters", format!("{shapes:?}"), must_be)
        })?;
        at_least("number of parameters", parameters, 1)?;
        let layers = layers(&model.layers(), &shapes)?;
        Ok(Self { name: name.into(), model, shapes, parameters, layers, worker: Worker::CPU })
    }

    /// Runs passes on `device`, for example a GPU (feature `cuda`); the default is the CPU.
    ///
    /// Parameters are copied to the device, and gradients are copied back to be clipped and summed on the
    /// CPU. On a device other than the CPU, passes run one after the other, in one thread. Tensors that the
    /// model holds must be on the same device, copied there by the thread that trains or before a
    /// [`Device::synchronize`]. Bits differ between devices: a GPU run cannot resume a checkpoint of a CPU
    /// run, nor the reverse (`docs/training.md`).
    ///
    /// ```
    /// # use antinoise_train::data::Example;
    /// # use antinoise_train::candle::{CandleModel, ExampleModel};
    /// # use candle_core::{Device, Result, Tensor};
    /// # struct Linear;
    /// impl ExampleModel for Linear {
    ///     // Inputs go to the device of the parameters.
    ///     fn outputs(&self, parameters: &[Tensor], example: Example) -> Result<Tensor> {
    ///         Tensor::from_slice(example.features, (1, 64), parameters[0].device())?.matmul(&parameters[0])
    ///     }
    /// #   fn identity(&self) -> String { "linear 64 10".into() }
    /// #   fn shapes(&self) -> Vec<Vec<usize>> { vec![vec![64, 10]] }
    /// }
    ///
    /// // The CPU, unless there is a GPU and the feature `cuda`.
    /// let model = CandleModel::new("linear", Linear)?.on(Device::cuda_if_available(0)?)?;
    /// # use antinoise_train::private_model::PrivateModel;
    /// # model.check(&[0.0; 640], &antinoise_train::data::digits().train)?;
    /// # Ok::<(), antinoise_train::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the device cannot be used.
    pub fn on(self, device: Device) -> Result<Self, Error> {
        Ok(Self { worker: Worker::on(device)?, ..self })
    }

    /// The model of one example.
    pub fn model(&self) -> &M {
        &self.model
    }

    fn check_length(&self, parameters: &[f32]) -> Result<(), InvalidParameter> {
        if parameters.len() == self.parameters {
            return Ok(());
        }
        let must_be = format!("{}, the model's", self.parameters);
        Err(InvalidParameter::new("number of parameters", parameters.len(), must_be))
    }

    /// The sum over units of the mean gradients of their examples, clipped with `clipping`.
    fn sum(
        &self,
        parameters: &[f32],
        examples: &Examples,
        units: &[&[usize]],
        clipping: Option<Clipping<'_>>,
    ) -> Result<GradientSum, Error> {
        self.check_length(parameters)?;
        check_users(units, examples.len())?;
        let numbers: Vec<usize> = (0..units.len()).collect();
        self.worker.run(|| {
            let variables = Variables::new(&self.shapes, parameters, self.worker.device())?;
            let of = |index| variables.gradient(&self.model, examples.example(index));
            sum_clipped_vectors(
                &numbers,
                CHUNK,
                parameters.len(),
                clipping,
                || (),
                |(), unit, add| {
                    let (loss, gradient) = mean(units[unit], of)?;
                    add(&gradient, loss);
                    Ok(())
                },
            )
        })
    }
}

/// The mean loss and the mean gradient of one unit's examples, in single precision; for a single example, its
/// own loss and gradient.
fn mean(
    unit: &[usize],
    of: impl Fn(usize) -> Result<(f32, Vec<f32>), Error>,
) -> Result<(f64, Vec<f32>), Error> {
    if let [only] = unit {
        let (loss, gradient) = of(*only)?;
        return Ok((f64::from(loss), gradient));
    }
    let (share, mut loss, mut sum) = (1.0 / unit.len() as f64, 0.0, Vec::new());
    for &example in unit {
        let (its_loss, gradient) = of(example)?;
        loss += f64::from(its_loss) * share;
        sum.resize(gradient.len(), 0.0);
        sum.iter_mut().zip(gradient).for_each(|(sum, x)| *sum += f64::from(x) * share);
    }
    Ok((loss, sum.into_iter().map(|x| x as f32).collect()))
}

/// The number of parameters of each layer, from its number of tensors; layers without parameters are left
/// out.
fn layers(tensors: &[usize], shapes: &[Vec<usize>]) -> Result<Vec<usize>, InvalidParameter> {
    let in_all = tensors.iter().try_fold(0usize, |sum, &count| sum.checked_add(count));
    if in_all != Some(shapes.len()) {
        let must_be = format!("{} in all, one for each tensor", shapes.len());
        return Err(InvalidParameter::new("tensors of the layers", format!("{tensors:?}"), must_be));
    }
    let mut sizes = shapes.iter().map(|shape| shape.iter().product::<usize>());
    let layers = tensors.iter().map(|&count| sizes.by_ref().take(count).sum());
    Ok(layers.filter(|&parameters| parameters > 0).collect())
}

impl<M: ExampleModel> PrivateModel for CandleModel<M> {
    fn name(&self) -> &str {
        &self.name
    }

    fn parameters(&self) -> usize {
        self.parameters
    }

    fn layers(&self) -> Vec<usize> {
        self.layers.clone()
    }

    fn identity(&self) -> String {
        let (model, device) = (self.model.identity(), self.worker.identity());
        format!("{model:?} of shapes {:?} in chunks of {CHUNK}{device}", self.shapes)
    }

    /// Also computes the gradients of the first and the last example, and the first one again: its bits must
    /// be the same.
    fn check(&self, parameters: &[f32], examples: &Examples) -> Result<(), Error> {
        self.check_length(parameters)?;
        let Some(last) = examples.len().checked_sub(1) else { return Ok(()) };
        self.worker.run(|| {
            let variables = Variables::new(&self.shapes, parameters, self.worker.device())?;
            let bits = |index| -> Result<Vec<u32>, Error> {
                let (loss, gradient) = variables.gradient(&self.model, examples.example(index))?;
                let bits = |x: f32| if x.is_nan() { u32::MAX } else { x.to_bits() };
                Ok(gradient.into_iter().chain([loss]).map(bits).collect())
            };
            let first = bits(0)?;
            bits(last)?;
            if bits(0)? != first {
                let must_be = "the same each time: a function of only the parameters and that example";
                return Err(InvalidParameter::new(
                    "gradient of an example",
                    "different when it was computed a second time",
                    must_be,
                )
                .into());
            }
            Ok(())
        })
    }

    fn clipped_sum(
        &self,
        parameters: &[f32],
        examples: &Examples,
        batch: &[usize],
        clipping: Clipping,
    ) -> Result<GradientSum, Error> {
        let units: Vec<&[usize]> = batch.chunks(1).collect();
        self.clipped_user_sum(parameters, examples, &units, clipping)
    }

    fn clipped_user_sum(
        &self,
        parameters: &[f32],
        examples: &Examples,
        users: &[&[usize]],
        clipping: Clipping,
    ) -> Result<GradientSum, Error> {
        if let Some(groups) = clipping.groups {
            groups.check(&self.layers)?;
        }
        self.sum(parameters, examples, users, Some(clipping))
    }

    fn plain_sum(
        &self,
        parameters: &[f32],
        examples: &Examples,
        batch: &[usize],
    ) -> Result<GradientSum, Error> {
        let units: Vec<&[usize]> = batch.chunks(1).collect();
        self.sum(parameters, examples, &units, None)
    }

    fn sum_margin(&self, examples: usize) -> Result<f64, Error> {
        Ok(clip::sum_margin(examples, CHUNK)?)
    }

    fn user_sum_margin(&self, users: usize) -> Result<f64, Error> {
        self.sum_margin(users)
    }

    fn evaluate(&self, parameters: &[f32], examples: &Examples) -> Result<Evaluation, Error> {
        self.check_length(parameters)?;
        let each: Vec<(f64, usize)> = self.worker.run(|| {
            let parameters = tensors(&self.shapes, parameters, self.worker.device())?;
            let one = |index| -> Result<(f64, usize), Error> {
                let example = examples.example(index);
                let loss = self.model.loss(&parameters, example)?.flatten_all()?.to_vec1::<f32>()?;
                let right = self.model.is_right(&parameters, example)?;
                Ok((loss.into_iter().map(f64::from).sum(), usize::from(right)))
            };
            (0..examples.len()).into_par_iter().map(one).collect()
        })?;
        let (loss, right) = each.iter().fold((0.0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let count = examples.len() as f64;
        Ok(Evaluation { accuracy: right as f64 / count, loss: loss / count })
    }
}

impl<M> fmt::Debug for CandleModel<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CandleModel")
            .field("name", &self.name)
            .field("shapes", &self.shapes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Mutex;
    use std::thread::{self, ThreadId};

    use candle_core::{Result as TensorResult, Tensor};

    use super::*;
    use crate::data::{Example, digits};

    /// Logistic regression that records the threads that call it.
    #[derive(Default)]
    struct Linear(Mutex<HashSet<ThreadId>>);

    impl ExampleModel for Linear {
        fn identity(&self) -> String {
            "linear".into()
        }

        fn shapes(&self) -> Vec<Vec<usize>> {
            vec![vec![64, 10]]
        }

        fn outputs(&self, parameters: &[Tensor], example: Example) -> TensorResult<Tensor> {
            self.0.lock().expect("no panic").insert(thread::current().id());
            Tensor::from_slice(example.features, (1, 64), parameters[0].device())?.matmul(&parameters[0])
        }
    }

    /// The handling of other devices, on the CPU: one thread does all passes of all callers, and no bit
    /// changes.
    #[test]
    fn one_thread_does_all_passes_and_makes_the_same_bits() {
        let mut one = CandleModel::new("linear", Linear::default()).unwrap();
        one.worker = Worker::in_one_thread(Device::Cpu).unwrap();
        let all = CandleModel::new("linear", Linear::default()).unwrap();
        let (digits, start) = (digits(), (0..640).map(|i| (i as f32).sin()).collect::<Vec<_>>());
        let made = |model: &CandleModel<Linear>| {
            model.check(&start, &digits.train).unwrap();
            let batch: Vec<usize> = (0..300).collect();
            let sum = model.clipped_sum(&start, &digits.train, &batch, 0.5.into()).unwrap();
            let plain = model.plain_sum(&start, &digits.train, &batch).unwrap();
            let Evaluation { accuracy, loss } = model.evaluate(&start, &digits.test).unwrap();
            (sum, plain, accuracy, loss.to_bits())
        };
        let expected = made(&all);
        thread::scope(|scope| {
            let callers: Vec<_> = (0..3).map(|_| scope.spawn(|| made(&one))).collect();
            for caller in callers {
                assert_eq!(caller.join().expect("no panic"), expected);
            }
        });
        assert_eq!(one.model.0.lock().expect("no panic").len(), 1);
    }
}
