use std::fmt;

use antinoise_input::{InvalidParameter, at_least};
use rayon::prelude::*;

use super::contract::Learner;
use super::gradient::{Variables, tensors};
use super::network::Network;
use crate::Error;
use crate::clip::{self, Clip, Contribution, GradientSum, check_batch, sum_of_whole};
use crate::data::Examples;
use crate::model::Evaluation;

/// A [`Network`] under private training: one backward pass an example, on all threads, then clipping and sums as for this
/// crate's models, with the same proof (`docs/training.md`).
///
/// A pass sees one example alone, so that an example's gradient depends on no other one. A step takes as long as its passes: a
/// model that [`Model`](crate::model::Model) can say is many times faster there.
pub struct Own<N> {
    name: String,
    network: N,
    shapes: Vec<Vec<usize>>,
    parameters: usize,
}

/// Examples whose sum one thread makes. It follows from nothing, so that sums are made in the same order everywhere.
const CHUNK: usize = 8;
const MAX_PARAMETERS: usize = 1 << 32;

impl<N: Network> Own<N> {
    /// `network`, called `name` in reports.
    ///
    /// # Errors
    /// When it has no parameters, or more than 2^32.
    pub fn new(name: &str, network: N) -> Result<Self, InvalidParameter> {
        let shapes = network.shapes();
        let sizes = shapes.iter().map(|shape| shape.iter().try_fold(1usize, |size, &d| size.checked_mul(d)));
        let parameters = sizes.into_iter().try_fold(0usize, |sum, size| sum.checked_add(size?));
        let parameters = parameters.filter(|&count| count <= MAX_PARAMETERS).ok_or_else(|| {
            let must_be = format!("at most {MAX_PARAMETERS} numbers in all");
            InvalidParameter::new("shapes of the parameters", format!("{shapes:?}"), must_be)
        })?;
        at_least("number of parameters", parameters, 1)?;
        Ok(Self { name: name.into(), network, shapes, parameters })
    }

    /// The network.
    pub fn network(&self) -> &N {
        &self.network
    }

    fn check_length(&self, parameters: &[f32]) -> Result<(), InvalidParameter> {
        if parameters.len() == self.parameters {
            return Ok(());
        }
        let must_be = format!("{}, the model's", self.parameters);
        Err(InvalidParameter::new("number of parameters", parameters.len(), must_be))
    }

    fn sum(
        &self,
        parameters: &[f32],
        examples: &Examples,
        batch: &[usize],
        clip: Option<Clip<'_>>,
    ) -> Result<GradientSum, Error> {
        self.check_length(parameters)?;
        check_batch(batch, examples.len())?;
        let variables = Variables::new(&self.shapes, parameters)?;
        sum_of_whole(
            batch,
            CHUNK,
            parameters.len(),
            clip,
            || (),
            |(), index, add| {
                let (loss, gradient) = variables.gradient(&self.network, examples.example(index))?;
                add(&gradient, f64::from(loss));
                Ok(())
            },
        )
    }
}

impl<N: Network> Learner for Own<N> {
    fn name(&self) -> &str {
        &self.name
    }

    fn parameters(&self) -> usize {
        self.parameters
    }

    fn identity(&self) -> String {
        format!("{:?} of shapes {:?} in chunks of {CHUNK}", self.network.identity(), self.shapes)
    }

    /// Takes the gradients of the first and the last example too, and of the first again, whose bits must not have changed.
    fn check(&self, parameters: &[f32], examples: &Examples) -> Result<(), Error> {
        self.check_length(parameters)?;
        let Some(last) = examples.len().checked_sub(1) else { return Ok(()) };
        let variables = Variables::new(&self.shapes, parameters)?;
        let bits = |index| -> Result<Vec<u32>, Error> {
            let (loss, gradient) = variables.gradient(&self.network, examples.example(index))?;
            let bits = |x: f32| if x.is_nan() { u32::MAX } else { x.to_bits() };
            Ok(gradient.into_iter().chain([loss]).map(bits).collect())
        };
        let first = bits(0)?;
        bits(last)?;
        if bits(0)? != first {
            let must_be = "the same whenever it is made: a function of the parameters and the one example";
            return Err(InvalidParameter::new(
                "gradient of an example",
                "another one at the second time",
                must_be,
            )
            .into());
        }
        Ok(())
    }

    fn contribution_sum(
        &self,
        contribution: Contribution,
        parameters: &[f32],
        examples: &Examples,
        batch: &[usize],
        clip_norm: f64,
    ) -> Result<GradientSum, Error> {
        let clip = Clip::of(contribution, clip_norm, self.parameters)?;
        self.sum(parameters, examples, batch, Some(clip))
    }

    fn plain_sum(
        &self,
        parameters: &[f32],
        examples: &Examples,
        batch: &[usize],
    ) -> Result<GradientSum, Error> {
        self.sum(parameters, examples, batch, None)
    }

    fn sum_margin(&self, examples: usize) -> Result<f64, Error> {
        Ok(clip::sum_margin(examples, CHUNK)?)
    }

    fn evaluate(&self, parameters: &[f32], examples: &Examples) -> Result<Evaluation, Error> {
        self.check_length(parameters)?;
        let parameters = tensors(&self.shapes, parameters)?;
        let one = |index| -> Result<(f64, usize), Error> {
            let example = examples.example(index);
            let loss = self.network.loss(&parameters, example)?.flatten_all()?.to_vec1::<f32>()?;
            let right = self.network.is_right(&parameters, example)?;
            Ok((loss.into_iter().map(f64::from).sum(), usize::from(right)))
        };
        let each: Result<Vec<(f64, usize)>, Error> = (0..examples.len()).into_par_iter().map(one).collect();
        let (loss, right) = each?.iter().fold((0.0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let count = examples.len() as f64;
        Ok(Evaluation { accuracy: right as f64 / count, loss: loss / count })
    }
}

impl<N> fmt::Debug for Own<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Own").field("name", &self.name).field("shapes", &self.shapes).finish_non_exhaustive()
    }
}
