use rayon::prelude::*;

use super::network::Model;
use super::softmax::{cross_entropy, largest};
use crate::Error;
use crate::data::Examples;

/// Accuracy and loss of parameters on examples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Share of the examples whose largest logit is that of their label.
    pub accuracy: f64,
    /// Mean cross entropy, in nats.
    pub loss: f64,
}

impl Model {
    /// The probability of each class for each example, in the order of labels: the softmax of the logits, in
    /// double precision. Labels of `examples` are ignored.
    ///
    /// ```
    /// use antinoise_train::{data, model::Model};
    /// let digits = data::digits();
    /// let model = Model::logistic(digits.shape, digits.classes)?;
    /// let even = model.probabilities(&vec![0.0; model.parameters()], &digits.test)?;
    /// assert!(even.len() == 357 && even[0].iter().all(|p| (p - 0.1).abs() < 1e-12));
    /// # Ok::<(), antinoise_train::Error>(())
    /// ```
    ///
    /// # Errors
    /// If parameters or examples do not fit this model.
    pub fn probabilities(&self, parameters: &[f32], examples: &Examples) -> Result<Vec<Vec<f64>>, Error> {
        self.check(parameters, examples)?;
        let all: Vec<usize> = (0..examples.len()).collect();
        let chunks: Vec<Vec<Vec<f64>>> = all
            .par_chunks(self.chunk())
            .map(|batch| {
                let logits = self.logits(parameters, examples, batch);
                logits.chunks_exact(self.classes()).map(softmax).collect()
            })
            .collect();
        Ok(chunks.concat())
    }

    /// Accuracy and loss of `parameters` on `examples`; NaN without examples.
    ///
    /// ```
    /// use antinoise_train::{data, model::Model};
    /// let digits = data::digits();
    /// let model = Model::logistic(digits.shape, digits.classes)?;
    /// let zero = model.evaluate(&vec![0.0; model.parameters()], &digits.test)?;
    /// assert!((zero.loss - 10f64.ln()).abs() < 1e-6);
    /// # Ok::<(), antinoise_train::Error>(())
    /// ```
    ///
    /// # Errors
    /// If parameters or examples do not fit this model.
    pub fn evaluate(&self, parameters: &[f32], examples: &Examples) -> Result<Evaluation, Error> {
        self.check(parameters, examples)?;
        let all: Vec<usize> = (0..examples.len()).collect();
        let chunks: Vec<(f64, usize)> = all
            .par_chunks(self.chunk())
            .map(|batch| {
                let mut logits = self.logits(parameters, examples, batch);
                let each = logits.chunks_exact_mut(self.classes()).zip(batch);
                each.fold((0.0, 0), |(loss, right), (logits, &i)| {
                    let label = examples.labels()[i] as usize;
                    let right = right + usize::from(largest(logits) == label);
                    (loss + f64::from(cross_entropy(logits, label)), right)
                })
            })
            .collect();
        let (loss, right) = chunks.iter().fold((0.0, 0), |sum, chunk| (sum.0 + chunk.0, sum.1 + chunk.1));
        let count = examples.len() as f64;
        Ok(Evaluation { accuracy: right as f64 / count, loss: loss / count })
    }
}

/// The softmax of the logits: e^x / sum of e^x for each logit x.
fn softmax(logits: &[f32]) -> Vec<f64> {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let exponentials: Vec<f64> = logits.iter().map(|&x| f64::from(x - largest).exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    exponentials.into_iter().map(|x| x / sum).collect()
}
