use candle_core::{Result as TensorResult, Tensor, bail};

use crate::data::Example;

/// A model of anyone's, written in candle's operations on one example at a time.
///
/// Parameters come as tensors of single precision, one a shape, on the CPU or where [`Own::on`](super::Own::on) says: what is made of
/// an example belongs there too, `parameters[0].device()`. What is computed must be a function of them and of
/// the one example: no state that one example leaves for the next, no random numbers, no threads' order. Gradients are taken
/// through candle's graph, so that parameters may be used in any way, or not at all.
///
/// ```
/// use antinoise_train::data::Example;
/// use antinoise_train::learner::{Learner, Network, Own};
/// use candle_core::{Result, Tensor};
///
/// /// Logistic regression: one matrix, no bias.
/// struct Linear { inputs: usize, classes: usize }
///
/// impl Network for Linear {
///     fn identity(&self) -> String {
///         format!("linear {} {}", self.inputs, self.classes)
///     }
///     fn shapes(&self) -> Vec<Vec<usize>> {
///         vec![vec![self.inputs, self.classes]]
///     }
///     fn outputs(&self, parameters: &[Tensor], example: Example) -> Result<Tensor> {
///         Tensor::from_slice(example.features, (1, self.inputs), parameters[0].device())?.matmul(&parameters[0])
///     }
/// }
///
/// let digits = antinoise_train::data::digits();
/// let model = Own::new("linear", Linear { inputs: 64, classes: 10 })?;
/// let sum = model.clipped_sum(&vec![0.0; 640], &digits.train, &[3, 1, 4], 0.5)?;
/// assert_eq!((model.parameters(), sum.clipped), (640, 3));
/// # Ok::<(), antinoise_train::Error>(())
/// ```
pub trait Network: Sync {
    /// What a checkpoint knows it by: its kind, its sizes, and whatever else changes what it computes.
    fn identity(&self) -> String;

    /// The shapes of its parameters, in the order in which they lie in the flat vector, each row by row.
    fn shapes(&self) -> Vec<Vec<usize>>;

    /// One number a class (logits), of any shape.
    ///
    /// # Errors
    /// When an operation fails.
    fn outputs(&self, parameters: &[Tensor], example: Example) -> TensorResult<Tensor>;

    /// The loss whose gradient is clipped: one number of single precision. Default: the cross entropy of
    /// [`outputs`](Self::outputs) with the label, in nats.
    ///
    /// # Errors
    /// When an operation fails.
    fn loss(&self, parameters: &[Tensor], example: Example) -> TensorResult<Tensor> {
        let logits = self.outputs(parameters, example)?.flatten_all()?;
        let label = example.label as usize;
        if label >= logits.elem_count() {
            bail!("label {label} of {} classes", logits.elem_count());
        }
        let shifted = logits.broadcast_sub(&logits.detach().max_keepdim(0)?)?;
        shifted.exp()?.sum_all()?.log()? - shifted.get(label)?
    }

    /// Whether it answers right, which accuracies count. Default: the largest of [`outputs`](Self::outputs) is the label's.
    ///
    /// # Errors
    /// When an operation fails.
    fn is_right(&self, parameters: &[Tensor], example: Example) -> TensorResult<bool> {
        let logits = self.outputs(parameters, example)?.flatten_all()?;
        Ok(logits.argmax(0)?.to_scalar::<u32>()? == example.label)
    }
}
