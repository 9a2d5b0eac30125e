//! Layers as described by a caller, and stages: layers with known sizes.

use antinoise_input::{InvalidParameter, at_least};
use serde::{Deserialize, Serialize};

use super::elementwise::Activation;
use super::pool::Pooling;
use super::window::Window;
use crate::data::ImageShape;
use crate::matmul::{Matrix, product};
use crate::multiversion;

/// One layer as described by a caller; the size of its input follows from the previous layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Layer {
    /// y = W x + b, where x is the flattened input.
    Linear {
        /// Number of outputs: the length of y.
        outputs: usize,
    },
    /// Two-dimensional convolution with bias, a square kernel and zero padding.
    Convolution {
        /// Number of output channels.
        outputs: usize,
        /// Height and width of the kernel.
        kernel: usize,
        /// Pixels from one application to the next.
        stride: usize,
        /// Zero pixels around the image.
        padding: usize,
    },
    /// An elementwise function.
    Activation(Activation),
    /// The maximum or the mean of square windows, channel by channel.
    Pool {
        /// Maximum or mean.
        kind: Pooling,
        /// Height and width of a window.
        size: usize,
        /// Pixels from one window to the next.
        stride: usize,
    },
}

/// A layer with known sizes.
#[derive(Debug, Clone)]
pub(super) enum Stage {
    /// y = W x + b, with W and b from index `offset` of the parameters on; x is each window of a convolution
    /// or, for `None`, the whole image.
    Affine {
        windows: Option<Window>,
        inputs: usize,
        outputs: usize,
        offset: usize,
    },
    Activation(Activation),
    Pool(Pooling, Window),
}

impl Layer {
    /// This layer for images of shape `image`, with parameters from `offset` on.
    pub(super) fn stage(&self, image: ImageShape, offset: usize) -> Result<Stage, InvalidParameter> {
        Ok(match *self {
            Self::Linear { outputs } => Stage::Affine {
                windows: None,
                inputs: image.len(),
                outputs: at_least("outputs", outputs, 1)?,
                offset,
            },
            Self::Convolution { outputs, kernel, stride, padding } => {
                let window = Window::new(image, kernel, stride, padding)?;
                let outputs = at_least("outputs", outputs, 1)?;
                Stage::Affine { windows: Some(window), inputs: window.len(), outputs, offset }
            }
            Self::Activation(activation) => Stage::Activation(activation),
            Self::Pool { kind, size, stride } => Stage::Pool(kind, Window::new(image, size, stride, 0)?),
        })
    }
}

impl Stage {
    /// The output shape of the stage for images of shape `image`.
    pub(super) fn outputs(&self, image: ImageShape) -> ImageShape {
        let (windows, channels) = match self {
            Self::Affine { windows: None, outputs, .. } => {
                return ImageShape { height: 1, width: 1, channels: *outputs };
            }
            Self::Affine { windows: Some(windows), outputs, .. } => (windows, *outputs),
            Self::Activation(_) => return image,
            Self::Pool(_, windows) => (windows, image.channels),
        };
        let (height, width) = windows.outputs();
        ImageShape { height, width, channels }
    }
    /// The windows of a convolution's images, as rows; `None` for other stages.
    pub(super) fn unfold(&self, images: &[f32]) -> Option<Vec<f32>> {
        match self {
            Self::Affine { windows: Some(windows), .. } => Some(windows.unfold(images)),
            _ => None,
        }
    }

    /// The outputs of the stage for images, which are unfolded for a convolution.
    pub(super) fn forward(&self, parameters: &[f32], images: &[f32]) -> Vec<f32> {
        match *self {
            Self::Affine { inputs, outputs, offset, .. } => {
                let (weight, bias) =
                    parameters[offset..][..(inputs + 1) * outputs].split_at(inputs * outputs);
                let weight = Matrix::of_rows(weight, inputs).transpose();
                let mut y = product(Matrix::of_rows(images, inputs), weight);
                add_bias(bias, &mut y);
                y
            }
            Self::Activation(activation) => activation.forward(images),
            Self::Pool(kind, window) => kind.forward(window, images),
        }
    }

    /// The gradient with respect to the stage's images, from that with respect to its outputs, which an
    /// activation overwrites.
    pub(super) fn backward(
        &self,
        parameters: &[f32],
        images: &[f32],
        outputs: &[f32],
        gradient: &mut Vec<f32>,
    ) -> Vec<f32> {
        match *self {
            Self::Affine { windows, inputs, outputs, offset } => {
                let weight = Matrix::of_rows(&parameters[offset..][..inputs * outputs], inputs);
                let rows = product(Matrix::of_rows(gradient, outputs), weight);
                match windows {
                    Some(windows) => windows.fold(&rows),
                    None => rows,
                }
            }
            Self::Activation(activation) => {
                activation.backward(outputs, gradient);
                std::mem::take(gradient)
            }
            Self::Pool(kind, window) => kind.backward(window, images, outputs, gradient),
        }
    }
}

multiversion! {
    /// Adds `bias` to each row of `y`.
    fn add_bias(bias: &[f32], y: &mut [f32]) {
        for row in y.chunks_exact_mut(bias.len()) {
            row.iter_mut().zip(bias).for_each(|(y, bias)| *y += bias);
        }
    }
}
