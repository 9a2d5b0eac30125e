use rayon::prelude::*;

use super::network::Model;
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
        let chunks: Result<Vec<(f64, usize)>, Error> = all
            .par_chunks(self.chunk())
            .map(|batch| {
                let logits = self.logits(parameters, examples, batch, None)?;
                let losses: Vec<f32> = Self::losses(&logits, examples, batch)?.flatten_all()?.to_vec1()?;
                let loss = losses.into_iter().map(f64::from).sum::<f64>();
                let guesses: Vec<u32> = logits.argmax(1)?.to_vec1()?;
                let right = guesses.iter().zip(batch).filter(|(guess, i)| **guess == examples.labels()[**i]);
                Ok((loss, right.count()))
            })
            .collect();
        let (loss, right) = chunks?.iter().fold((0.0, 0), |sum, chunk| (sum.0 + chunk.0, sum.1 + chunk.1));
        let count = examples.len() as f64;
        Ok(Evaluation { accuracy: right as f64 / count, loss: loss / count })
    }
}
