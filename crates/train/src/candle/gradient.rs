//! The gradient of one example, by candle's automatic differentiation.

use antinoise_input::InvalidParameter;
use candle_core::{DType, Device, Result as TensorResult, Storage, Tensor, Var, bail};

use super::example_model::ExampleModel;
use crate::Error;
use crate::data::Example;

/// The parameters as tensors of these shapes on `device`, not recorded for differentiation.
pub(super) fn tensors(
    shapes: &[Vec<usize>],
    parameters: &[f32],
    device: &Device,
) -> TensorResult<Vec<Tensor>> {
    let mut rest = parameters;
    let mut tensors = Vec::with_capacity(shapes.len());
    for shape in shapes {
        let (part, after) = rest.split_at(shape.iter().product());
        tensors.push(Tensor::from_slice(part, shape.as_slice(), device)?);
        rest = after;
    }
    Ok(tensors)
}

/// The parameters of one step, recorded for differentiation.
pub(super) struct Variables {
    variables: Vec<Var>,
    tensors: Vec<Tensor>,
    count: usize,
}

impl Variables {
    pub(super) fn new(shapes: &[Vec<usize>], parameters: &[f32], device: &Device) -> TensorResult<Self> {
        let plain = tensors(shapes, parameters, device)?;
        let variables = plain.iter().map(Var::from_tensor).collect::<TensorResult<Vec<_>>>()?;
        let tensors = variables.iter().map(|variable| variable.as_tensor().clone()).collect();
        Ok(Self { variables, tensors, count: parameters.len() })
    }

    /// The loss of one example and its gradient, flattened; 0 for parameters that the loss does not use.
    pub(super) fn gradient(
        &self,
        model: &impl ExampleModel,
        example: Example,
    ) -> Result<(f32, Vec<f32>), Error> {
        let loss = model.loss(&self.tensors, example)?;
        if loss.elem_count() != 1 || loss.dtype() != DType::F32 {
            let got = format!("{:?} of {:?}", loss.dims(), loss.dtype());
            return Err(InvalidParameter::new("loss of an example", got, "one number of F32").into());
        }
        let gradients = loss.backward()?;
        let mut flat = Vec::with_capacity(self.count);
        for (index, variable) in self.variables.iter().enumerate() {
            match gradients.get(variable) {
                None => flat.resize(flat.len() + variable.elem_count(), 0.0),
                Some(gradient) => {
                    check_shape(index, gradient, variable)?;
                    let gradient = gradient.to_device(&Device::Cpu)?;
                    append(&gradient, &mut flat)?;
                }
            }
        }
        Ok((loss.flatten_all()?.to_vec1::<f32>()?[0], flat))
    }
}

/// Appends the numbers of a CPU tensor in row-major order.
fn append(tensor: &Tensor, flat: &mut Vec<f32>) -> TensorResult<()> {
    let tensor = tensor.contiguous()?;
    let (storage, layout) = tensor.storage_and_layout();
    let (Storage::Cpu(storage), Some((from, to))) = (&*storage, layout.contiguous_offsets()) else {
        bail!("a gradient must be contiguous and on the CPU");
    };
    flat.extend_from_slice(&storage.as_slice::<f32>()?[from..to]);
    Ok(())
}

/// Checks a gradient's shape and type, since a caller's own operation may return anything.
fn check_shape(index: usize, gradient: &Tensor, variable: &Var) -> Result<(), InvalidParameter> {
    if gradient.shape() == variable.shape() && gradient.dtype() == DType::F32 {
        return Ok(());
    }
    let got = format!("{:?} of {:?}", gradient.dims(), gradient.dtype());
    let must_be = format!("{:?} of F32, as the parameter", variable.dims());
    Err(InvalidParameter::new(format!("gradient of parameter {index}"), got, must_be))
}
