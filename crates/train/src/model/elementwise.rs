use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};

use crate::tensor::{contiguous, with_values};

/// A function of each number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// max(x, 0).
    Relu,
    /// tanh(x); bounded activations keep more of a clipped gradient.
    Tanh,
}

impl CustomOp1 for Activation {
    fn name(&self) -> &'static str {
        "activation"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = contiguous(storage, layout)?;
        let y = match self {
            Self::Relu => x.iter().map(|&x| if x < 0.0 { 0.0 } else { x }).collect(),
            Self::Tanh => x.iter().map(|&x| x.tanh()).collect(),
        };
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    fn bwd(&self, _: &Tensor, y: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let product = with_values(y, |y| {
            with_values(gradient, |gradient| -> Vec<f32> {
                let pairs = y.iter().zip(gradient);
                match self {
                    Self::Relu => pairs.map(|(&y, &g)| if y > 0.0 { g } else { 0.0 }).collect(),
                    Self::Tanh => pairs.map(|(y, g)| g * (1.0 - y * y)).collect(),
                }
            })
        })??;
        Ok(Some(Tensor::from_vec(product, y.shape(), y.device())?))
    }
}
