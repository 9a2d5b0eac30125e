//! A model's parameters as named tensors in PyTorch's layout.

use super::elementwise::Activation;
use super::network::Model;
use super::pool::Pooling;
use super::stage::{Layer, Stage};

/// One tensor of a model, in PyTorch's layout.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedTensor {
    /// `linear1.weight`, `linear1.bias`, `conv1.weight`, ...: layers of a kind are counted from 1.
    pub name: String,
    /// A linear layer's weight: outputs x inputs. A convolution's: outputs x channels x height x width of the
    /// kernel. A bias: outputs.
    pub shape: Vec<usize>,
    /// The index in the parameter vector of each number of the tensor, which is row-major.
    pub indices: Vec<usize>,
}

impl NamedTensor {
    /// A tensor of a model of another crate.
    pub fn new(name: impl Into<String>, shape: Vec<usize>, indices: Vec<usize>) -> Self {
        Self { name: name.into(), shape, indices }
    }
}

impl Model {
    /// The layers, as [`Model::new`] takes them.
    ///
    /// ```
    /// use antinoise_train::{data, model::{Layer, Model}};
    /// let digits = data::digits();
    /// let model = Model::logistic(digits.shape, digits.classes)?;
    /// assert_eq!(model.architecture(), [Layer::Linear { outputs: 10 }]);
    /// # Ok::<(), antinoise_input::InvalidParameter>(())
    /// ```
    pub fn architecture(&self) -> Vec<Layer> {
        let layer = |stage: &Stage| match *stage {
            Stage::Affine { windows: None, outputs, .. } => Layer::Linear { outputs },
            Stage::Affine { windows: Some(window), outputs, .. } => Layer::Convolution {
                outputs,
                kernel: window.size,
                stride: window.stride,
                padding: window.padding,
            },
            Stage::Activation(activation) => Layer::Activation(activation),
            Stage::Pool(kind, window) => Layer::Pool { kind, size: window.size, stride: window.stride },
        };
        self.stages.iter().map(layer).collect()
    }

    /// The parameters as tensors, in the order of layers, a weight before its bias.
    ///
    /// In the parameter vector the inputs of a layer are in the order (row, column, channel); in PyTorch's
    /// layout they are in the order (channel, row, column), in which `torch.nn.Flatten` leaves them.
    ///
    /// ```
    /// use antinoise_train::{data, model::Model};
    /// let digits = data::digits();
    /// let tensors = Model::mlp(digits.shape, digits.classes, 16)?.tensors();
    /// assert_eq!((&tensors[2].name[..], &tensors[2].shape[..]), ("linear2.weight", &[10, 16][..]));
    /// # Ok::<(), antinoise_input::InvalidParameter>(())
    /// ```
    pub fn tensors(&self) -> Vec<NamedTensor> {
        let (mut image, mut tensors) = (self.shape, Vec::new());
        let (mut linear, mut convolutions) = (0, 0);
        for stage in &self.stages {
            if let Stage::Affine { windows, inputs, outputs, offset } = stage {
                let (height, width, channels) = match windows {
                    Some(window) => (window.size, window.size, window.image.channels),
                    None => (image.height, image.width, image.channels),
                };
                let (name, shape) = match windows {
                    Some(_) => {
                        convolutions += 1;
                        (format!("conv{convolutions}"), vec![*outputs, channels, height, width])
                    }
                    None => {
                        linear += 1;
                        (format!("linear{linear}"), vec![*outputs, *inputs])
                    }
                };
                let mut indices = Vec::with_capacity(inputs * outputs);
                for output in 0..*outputs {
                    for channel in 0..channels {
                        let pixels = 0..height * width;
                        let own = pixels.map(|pixel| offset + output * inputs + pixel * channels + channel);
                        indices.extend(own);
                    }
                }
                tensors.push(NamedTensor { name: format!("{name}.weight"), shape, indices });
                let bias = offset + inputs * outputs;
                let (shape, indices) = (vec![*outputs], (bias..bias + outputs).collect());
                tensors.push(NamedTensor { name: format!("{name}.bias"), shape, indices });
            }
            image = stage.outputs(image);
        }
        tensors
    }

    /// The same model in PyTorch: an expression for a `torch.nn.Sequential` whose state dictionary has the
    /// names of [`tensors`](Self::tensors). Its input is examples x channels x height x width.
    ///
    /// ```
    /// use antinoise_train::{data, model::Model};
    /// let digits = data::digits();
    /// let code = Model::logistic(digits.shape, digits.classes)?.pytorch();
    /// assert!(code.contains("(\"linear1\", nn.Linear(64, 10))"));
    /// # Ok::<(), antinoise_input::InvalidParameter>(())
    /// ```
    pub fn pytorch(&self) -> String {
        let (mut image, mut parts) = (self.shape, Vec::new());
        let (mut linear, mut convolutions) = (0, 0);
        for stage in &self.stages {
            match stage {
                Stage::Affine { windows: None, inputs, outputs, .. } => {
                    linear += 1;
                    if linear == 1 {
                        parts.push("(\"flatten\", nn.Flatten())".into());
                    }
                    parts.push(format!("(\"linear{linear}\", nn.Linear({inputs}, {outputs}))"));
                }
                Stage::Affine { windows: Some(window), outputs, .. } => {
                    convolutions += 1;
                    parts.push(format!(
                        "(\"conv{convolutions}\", nn.Conv2d({}, {outputs}, {}, stride={}, padding={}))",
                        image.channels, window.size, window.stride, window.padding
                    ));
                }
                Stage::Activation(activation) => {
                    let kind = match activation {
                        Activation::Relu => "ReLU",
                        Activation::Tanh => "Tanh",
                    };
                    parts.push(format!("(\"activation{}\", nn.{kind}())", parts.len()));
                }
                Stage::Pool(kind, window) => {
                    let kind = match kind {
                        Pooling::Max => "MaxPool2d",
                        Pooling::Average => "AvgPool2d",
                    };
                    let (size, stride) = (window.size, window.stride);
                    parts.push(format!("(\"pool{}\", nn.{kind}({size}, stride={stride}))", parts.len()));
                }
            }
            image = stage.outputs(image);
        }
        format!("nn.Sequential(OrderedDict([\n    {},\n]))", parts.join(",\n    "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ImageShape;

    /// Every parameter is in one place of one tensor, and a convolution's numbers are where PyTorch has them.
    #[test]
    fn tensors_hold_every_parameter_once() {
        let shape = ImageShape { height: 8, width: 8, channels: 3 };
        let model = Model::cnn(shape, 5).unwrap();
        let tensors = model.tensors();
        let names: Vec<&str> = tensors.iter().map(|tensor| &*tensor.name).collect();
        let layers = ["conv1", "conv2", "linear1", "linear2"];
        let wanted: Vec<String> =
            layers.iter().flat_map(|layer| [format!("{layer}.weight"), format!("{layer}.bias")]).collect();
        assert_eq!(names, wanted);
        let mut all: Vec<usize> = tensors.iter().flat_map(|tensor| tensor.indices.iter().copied()).collect();
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..model.parameters()));
        for tensor in &tensors {
            assert_eq!(tensor.indices.len(), tensor.shape.iter().product::<usize>(), "{}", tensor.name);
        }
        // Output 1, channel 2, row 0, column 1 of the first kernel of 3 x 3 x 3.
        assert_eq!(tensors[0].shape, [16, 3, 3, 3]);
        assert_eq!(tensors[0].indices[27 + 2 * 9 + 1], 27 + 3 + 2);
        let again = Model::new(model.name(), shape, 5, &model.architecture()).unwrap();
        assert_eq!(format!("{again:?}"), format!("{model:?}"));
    }
}
