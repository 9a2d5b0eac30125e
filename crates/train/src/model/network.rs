use antinoise_input::{InvalidParameter, at_least};

use super::stage::Stage;
use crate::data::{Examples, ImageShape};

/// A classifier of images: a sequence of layers, from features to one logit per class.
///
/// The parameter vector holds, layer by layer, W (outputs x inputs, row-major), then b (outputs). The inputs
/// of a convolution are in the order (row, column, channel) of the kernel.
///
/// ```
/// use antinoise_train::{data::ImageShape, model::Model};
/// let shape = ImageShape { height: 28, width: 28, channels: 1 };
/// assert_eq!(Model::cnn(shape, 10)?.parameters(), 26_010);
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
#[derive(Debug, Clone)]
pub struct Model {
    pub(super) name: String,
    pub(super) shape: ImageShape,
    pub(super) classes: usize,
    pub(super) stages: Vec<Stage>,
    pub(super) parameters: usize,
    pub(super) chunk: usize,
}

impl Model {
    /// The name in reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The shape of one example.
    pub fn shape(&self) -> ImageShape {
        self.shape
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Length of the parameter vector.
    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// The number of parameters of each layer that has some, in their order in the parameter vector.
    ///
    /// ```
    /// use antinoise_train::{data, model::Model};
    /// let digits = data::digits();
    /// assert_eq!(Model::mlp(digits.shape, digits.classes, 16)?.layers(), [65 * 16, 17 * 10]);
    /// # Ok::<(), antinoise_input::InvalidParameter>(())
    /// ```
    pub fn layers(&self) -> Vec<usize> {
        let sizes = self.stages.iter().map(|stage| match stage {
            Stage::Affine { inputs, outputs, .. } => (inputs + 1) * outputs,
            Stage::Activation(_) | Stage::Pool(..) => 0,
        });
        sizes.filter(|&parameters| parameters > 0).collect()
    }

    /// Examples in one pass. It depends only on the model, so that sums over a batch have the same order of
    /// additions for any number of threads.
    pub fn chunk(&self) -> usize {
        self.chunk
    }

    /// Sets the number of examples in one pass; fewer take less memory. It changes the last bits of sums, and
    /// [`crate::clip::sum_margin`].
    ///
    /// ```
    /// use antinoise_train::{data, model::Model};
    /// let digits = data::digits();
    /// assert_eq!(Model::logistic(digits.shape, digits.classes)?.with_chunk(7)?.chunk(), 7);
    /// # Ok::<(), antinoise_input::InvalidParameter>(())
    /// ```
    ///
    /// # Errors
    /// If `chunk` is 0.
    pub fn with_chunk(self, chunk: usize) -> Result<Self, InvalidParameter> {
        Ok(Self { chunk: at_least("chunk", chunk, 1)?, ..self })
    }

    /// Checks that `parameters` belong to this model and `examples` have its shape.
    pub(crate) fn check(&self, parameters: &[f32], examples: &Examples) -> Result<(), InvalidParameter> {
        if parameters.len() != self.parameters {
            let must_be = format!("{}, the model's", self.parameters);
            return Err(InvalidParameter::new("number of parameters", parameters.len(), must_be));
        }
        if examples.features_each() != self.shape.len() {
            let must_be = format!("{}, the model's", self.shape.len());
            return Err(InvalidParameter::new("features an example", examples.features_each(), must_be));
        }
        if let Some(label) = examples.largest_label().filter(|&label| label as usize >= self.classes) {
            return Err(InvalidParameter::new("label", label, format!("below {} classes", self.classes)));
        }
        Ok(())
    }
}
