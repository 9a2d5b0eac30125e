//! Affine layers y = x W^T + b whose inputs and output gradients are captured for per-example clipping.

use std::sync::{Arc, OnceLock};

use candle_core::{CpuStorage, CustomOp2, Device, Layout, Result, Shape, Tensor, Var};

use super::window::Window;
use crate::product::product;
use crate::tensor::with_values;
use crate::vectorized::vectorized;

/// One affine layer of one recorded pass: the factors of its per-example weight gradients G_i^T X_i.
pub(crate) struct Captured {
    /// X: examples x positions x inputs.
    pub(crate) input: Tensor,
    output_gradient: Arc<OnceLock<Tensor>>,
}

impl Captured {
    /// G: examples x positions x outputs, available after the backward pass.
    pub(crate) fn output_gradient(&self) -> &Tensor {
        self.output_gradient.get().expect("the backward walk reaches every layer")
    }
}

/// The record of a forward pass for [`crate::clip`]: each affine layer's input and output gradient.
pub(crate) struct Record {
    /// The only variable of the graph: candle differentiates only what depends on a variable.
    anchor: Var,
    pub(crate) layers: Vec<Captured>,
}

impl Record {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { anchor: Var::new(0f32, &Device::Cpu)?, layers: Vec::new() })
    }
}

/// x W^T + b with W: outputs x inputs. x: the windows of the images or, if `windows` is `None`, each whole
/// image.
///
/// A recorded pass treats W and b as constants: the backward pass computes only the gradient of the images,
/// and not even that in the first layer, whose images are data.
pub(super) fn affine(
    images: &Tensor,
    windows: Option<Window>,
    weight: Tensor,
    bias: &[f32],
    record: Option<&mut Record>,
) -> Result<Tensor> {
    let (outputs, inputs) = weight.dims2()?;
    let input = match windows {
        Some(windows) => windows.unfold(&images.detach())?,
        None => images.detach().reshape((images.dim(0)?, 1, inputs))?,
    };
    let product = product(&input, &weight.t()?)?;
    let (height, width) = windows.map_or((1, 1), |windows| windows.outputs());
    let shape = (images.dim(0)?, height, width, outputs).into();
    let mut op = Affine {
        product,
        shape,
        bias: bias.to_vec(),
        windows,
        weight: None,
        output_gradient: Arc::default(),
    };
    let Some(record) = record else {
        return images.apply_op2_no_bwd(images, &op);
    };
    op.weight = (!record.layers.is_empty()).then_some(weight);
    record.layers.push(Captured { input, output_gradient: op.output_gradient.clone() });
    images.apply_op2(&record.anchor, op)
}

struct Affine {
    /// x W^T: examples x positions x outputs.
    product: Tensor,
    /// The shape of the output, with positions as an image.
    shape: Shape,
    bias: Vec<f32>,
    windows: Option<Window>,
    /// W, if the images need a gradient.
    weight: Option<Tensor>,
    output_gradient: Arc<OnceLock<Tensor>>,
}

impl CustomOp2 for Affine {
    fn name(&self) -> &'static str {
        "affine"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        let y = with_values(&self.product, |product| {
            let mut y = vec![0.0; product.len()];
            add_bias(product, &self.bias, &mut y);
            y
        })?;
        Ok((CpuStorage::F32(y), self.shape.clone()))
    }

    fn bwd(
        &self,
        images: &Tensor,
        _: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let gradient = gradient.reshape(self.product.shape())?;
        self.output_gradient.get_or_init(|| gradient.clone());
        let Some(weight) = &self.weight else {
            return Ok((None, None));
        };
        let input = product(&gradient, weight)?;
        let images = match &self.windows {
            Some(windows) => windows.fold(&input)?,
            None => input.reshape(images.shape())?,
        };
        Ok((Some(images), None))
    }
}

vectorized! {
    /// product + bias, row by row, into `y`.
    fn add_bias(product: &[f32], bias: &[f32], y: &mut [f32]) {
        for (y, product) in y.chunks_exact_mut(bias.len()).zip(product.chunks_exact(bias.len())) {
            for ((y, product), bias) in y.iter_mut().zip(product).zip(bias) {
                *y = product + bias;
            }
        }
    }
}
