use candle_core::{Result as TensorResult, Tensor, bail};

use crate::data::Example;

/// A model that is written in candle's operations on one example at a time.
///
/// Parameters are tensors of single precision, one per shape, on the CPU or on the device set by
/// [`CandleModel::on`](super::CandleModel::on); tensors made from an example must be on the same device,
/// `parameters[0].device()`. Results must be a function of the parameters and the one example: no state
/// carried from one example to the next, no random numbers, no dependence on the order of threads. Gradients
/// come from candle's automatic differentiation, so that parameters may be used in any way, or not at all.
///
/// ```
/// use antinoise_train::data::Example;
/// use antinoise_train::candle::{CandleModel, ExampleModel};
/// use antinoise_train::private_model::PrivateModel;
/// use candle_core::{Result, Tensor};
///
/// /// Logistic regression: one matrix, no bias.
/// struct Linear { inputs: usize, classes: usize }
///
/// impl ExampleModel for Linear {
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
/// let model = CandleModel::new("linear", Linear { inputs: 64, classes: 10 })?;
/// let sum = model.clipped_sum(&vec![0.0; 640], &digits.train, &[3, 1, 4], 0.5.into())?;
/// assert_eq!((model.parameters(), sum.clipped), (640, 3));
/// # Ok::<(), antinoise_train::Error>(())
/// ```
pub trait ExampleModel: Sync {
    /// The identity of the model in checkpoints: its kind, its sizes, and everything else that changes its
    /// results.
    fn identity(&self) -> String;

    /// The shapes of the parameter tensors, in their order in the flat vector; each tensor is row-major.
    fn shapes(&self) -> Vec<Vec<usize>>;

    /// The number of tensors of each layer, in the order of the tensors: clipping by layer clips layers
    /// separately. Default: each tensor is a layer.
    fn layers(&self) -> Vec<usize> {
        vec![1; self.shapes().len()]
    }

    /// The logits: one number per class, in a tensor of any shape.
    ///
    /// # Errors
    /// If an operation fails.
    fn outputs(&self, parameters: &[Tensor], example: Example) -> TensorResult<Tensor>;

    /// The loss whose gradient is clipped: one number of single precision. Default: the cross entropy of
    /// [`outputs`](Self::outputs) with the label, in nats.
    ///
    /// # Errors
    /// If an operation fails.
    fn loss(&self, parameters: &[Tensor], example: Example) -> TensorResult<Tensor> {
        let logits = self.outputs(parameters, example)?.flatten_all()?;
        let label = example.label as usize;
        if label >= logits.elem_count() {
            bail!("label {label} of {} classes", logits.elem_count());
        }
        let shifted = logits.broadcast_sub(&logits.detach().max_keepdim(0)?)?;
        shifted.exp()?.sum_all()?.log()? - shifted.get(label)?
    }

    /// Whether the model's answer is right, for accuracies. Default: the largest of
    /// [`outputs`](Self::outputs) is the label's.
    ///
    /// # Errors
    /// If an operation fails.
    fn is_right(&self, parameters: &[Tensor], example: Example) -> TensorResult<bool> {
        let logits = self.outputs(parameters, example)?.flatten_all()?;
        Ok(logits.argmax(0)?.to_scalar::<u32>()? == example.label)
    }
}
