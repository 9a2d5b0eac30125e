//! Building a model from layers.

use antinoise_input::{InvalidParameter, at_least};
use rand_core::Rng;

use super::elementwise::Activation;
use super::network::Model;
use super::pool::Pooling;
use super::stage::{Layer, Stage};
use crate::data::ImageShape;

impl Model {
    /// The model that applies `layers` one after the other to images of `shape`; the output of the last layer
    /// must be one number per class.
    ///
    /// ```
    /// use antinoise_train::{data::ImageShape, model::{Layer, Model}};
    /// let shape = ImageShape { height: 2, width: 2, channels: 1 };
    /// let model = Model::new("tiny", shape, 3, &[Layer::Linear { outputs: 3 }])?;
    /// assert_eq!(model.parameters(), 15);
    /// # Ok::<(), antinoise_input::InvalidParameter>(())
    /// ```
    ///
    /// # Errors
    /// If a size is 0, a window is larger than its padded image, padding reaches the size of the window, the
    /// number of parameters overflows, or the last layer does not have `classes` outputs.
    pub fn new(
        name: &str,
        shape: ImageShape,
        classes: usize,
        layers: &[Layer],
    ) -> Result<Self, InvalidParameter> {
        at_least("pixels of an image", shape.len(), 1)?;
        at_least("classes", classes, 2)?;
        let mut image = shape;
        let (mut parameters, mut widest) = (0, shape.len());
        let mut stages = Vec::with_capacity(layers.len());
        for layer in layers {
            let stage = layer.stage(image, parameters)?;
            if let Stage::Affine { inputs, outputs, .. } = &stage {
                let more = (inputs + 1).checked_mul(*outputs).and_then(|more| parameters.checked_add(more));
                parameters = more.filter(|&sum| sum <= MAX_PARAMETERS).ok_or_else(|| {
                    InvalidParameter::new("outputs", outputs, format!("at most {MAX_PARAMETERS} parameters"))
                })?;
            }
            image = stage.outputs(image);
            widest = widest.max(image.len());
            stages.push(stage);
        }
        if image.len() != classes {
            let must_be = format!("the {classes} classes");
            return Err(InvalidParameter::new("outputs of the last layer", image.len(), must_be));
        }
        let chunk = (CHUNK_NUMBERS / widest).clamp(1, 64);
        Ok(Self { name: name.into(), shape, classes, stages, parameters, chunk })
    }

    /// Logistic regression: one linear layer.
    ///
    /// # Errors
    /// As [`Model::new`].
    pub fn logistic(shape: ImageShape, classes: usize) -> Result<Self, InvalidParameter> {
        Self::new("logistic", shape, classes, &[Layer::Linear { outputs: classes }])
    }

    /// A multilayer perceptron with one hidden layer of `hidden` tanh units.
    ///
    /// # Errors
    /// As [`Model::new`].
    pub fn mlp(shape: ImageShape, classes: usize, hidden: usize) -> Result<Self, InvalidParameter> {
        let hidden = Layer::Linear { outputs: hidden };
        let tanh = Layer::Activation(Activation::Tanh);
        Self::new("mlp", shape, classes, &[hidden, tanh, Layer::Linear { outputs: classes }])
    }

    /// A small convolutional network: two convolutions of 16 and 32 channels, each with max pooling and tanh,
    /// then linear layers to 32 units, with tanh, and to the classes. (Pooling precedes tanh: they commute.)
    ///
    /// Images of at least 20 pixels a side get wide strided kernels (26,010 parameters on 28x28 in 10
    /// classes), smaller ones get kernels of 3x3.
    ///
    /// # Errors
    /// As [`Model::new`].
    pub fn cnn(shape: ImageShape, classes: usize) -> Result<Self, InvalidParameter> {
        let tanh = Layer::Activation(Activation::Tanh);
        let pool = |stride| Layer::Pool { kind: Pooling::Max, size: 2, stride };
        let convolution =
            |outputs, kernel, stride, padding| Layer::Convolution { outputs, kernel, stride, padding };
        let head = [Layer::Linear { outputs: 32 }, tanh, Layer::Linear { outputs: classes }];
        let body = if shape.height.min(shape.width) >= 20 {
            [convolution(16, 8, 2, 3), pool(1), tanh, convolution(32, 4, 2, 0), pool(1), tanh]
        } else {
            [convolution(16, 3, 1, 1), pool(2), tanh, convolution(32, 3, 1, 1), pool(2), tanh]
        };
        Self::new("cnn", shape, classes, &[body.as_slice(), &head].concat())
    }

    /// Random initial parameters: uniform in +-1 / sqrt(inputs), layer by layer.
    ///
    /// Initial parameters need not be secret: privacy does not depend on them.
    ///
    /// # Source
    /// PyTorch's default for linear and convolution layers.
    ///
    /// ```
    /// use antinoise_train::{data, model::Model};
    /// use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
    /// let digits = data::digits();
    /// let model = Model::logistic(digits.shape, digits.classes)?;
    /// let start = model.initial_parameters(&mut ChaCha8Rng::seed_from_u64(7));
    /// assert!(start.len() == 650 && start.iter().all(|w| w.abs() <= 0.125));
    /// # Ok::<(), antinoise_input::InvalidParameter>(())
    /// ```
    pub fn initial_parameters(&self, random: &mut impl Rng) -> Vec<f32> {
        let mut parameters = Vec::with_capacity(self.parameters);
        for stage in &self.stages {
            if let Stage::Affine { inputs, outputs, .. } = stage {
                let bound = 1.0 / (*inputs as f32).sqrt();
                for _ in 0..(inputs + 1) * outputs {
                    let unit = (random.next_u32() >> 8) as f32 / (1 << 24) as f32;
                    parameters.push((2.0 * unit - 1.0) * bound);
                }
            }
        }
        parameters
    }
}

const MAX_PARAMETERS: usize = 1 << 32;

/// Bound on the numbers in an activation of one chunk, which keeps a chunk's memory small.
const CHUNK_NUMBERS: usize = (1 << 16) - 1;
