//! A trained model that is saved, loaded and used.

use std::path::Path;

use antinoise_input::{InvalidParameter, hex};
use sha2::{Digest, Sha256};

use super::description::{Description, check};
use super::files::tensors_to_bytes;
use super::folder::{ModelFolder, check_parameters};
use super::scores::{Prediction, Scores};
use crate::Error;
use crate::data::{Examples, Schema};
use crate::model::Model;

/// A trained model with the names of its classes and, of a table, the schema that encodes rows.
///
/// ```
/// use antinoise_train::{data, model::Model, saved_model::SavedModel};
/// let digits = data::digits();
/// let model = Model::logistic(digits.shape, digits.classes)?;
/// let zeros = vec![0.0; model.parameters()];
/// let folder = tempfile::tempdir().unwrap();
/// SavedModel::new(model, zeros, digits.class_names.clone(), None)?.save(folder.path())?;
/// let saved = SavedModel::load(folder.path())?;
/// let predictions = saved.predict(&digits.test)?;
/// assert!((predictions[0].probabilities[3] - 0.1).abs() < 1e-12);
/// assert_eq!(saved.evaluate(&digits.test)?.examples, 357);
/// # Ok::<(), antinoise_train::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SavedModel {
    model: Model,
    parameters: Vec<f32>,
    classes: Vec<String>,
    schema: Option<Schema>,
}

impl SavedModel {
    /// A model to save: `classes` name the labels, `schema` encodes the rows of a table.
    ///
    /// # Errors
    /// If parameters, classes or schema are not those of the model, or a parameter is not finite.
    pub fn new(
        model: Model,
        parameters: Vec<f32>,
        classes: Vec<String>,
        schema: Option<Schema>,
    ) -> Result<Self, InvalidParameter> {
        check(&model, &classes, schema.as_ref())?;
        check_parameters(&parameters, model.parameters())?;
        Ok(Self { model, parameters, classes, schema })
    }

    /// The bytes of `model.safetensors`: the parameters as the tensors of [`Model::tensors`].
    ///
    /// # Errors
    /// If the format cannot hold the tensors.
    pub fn to_safetensors(&self) -> Result<Vec<u8>, Error> {
        Ok(tensors_to_bytes(&self.model.tensors(), &self.parameters)?)
    }

    /// Writes `model.safetensors` and `model.toml` into an existing folder, each whole or not at all.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn save(&self, folder: &Path) -> Result<(), Error> {
        let Self { model, classes, schema, .. } = self;
        let tensors = self.to_safetensors()?;
        let description = Description::new(model, classes, schema.as_ref(), hex(&Sha256::digest(&tensors)));
        ModelFolder(folder).save(&tensors, &description)
    }

    /// Reads a folder that [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// If a file is absent or altered, or the two files are not of the same model.
    pub fn load(folder: &Path) -> Result<Self, Error> {
        let folder = ModelFolder(folder);
        let description: Description = folder.description()?;
        let model = description.model()?;
        let parameters = folder.parameters(model.parameters(), || model.tensors(), &description.sha256)?;
        Ok(Self { model, parameters, classes: description.classes, schema: description.table })
    }

    /// The model without its parameters.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The parameters, as one vector.
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// The names of classes, in the order of labels.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The schema that encodes the rows of a table; `None` for a model of images.
    pub fn schema(&self) -> Option<&Schema> {
        self.schema.as_ref()
    }

    /// The class and the probabilities of each example; labels are ignored.
    ///
    /// # Errors
    /// If the shape of the examples differs from that of the model's inputs.
    pub fn predict(&self, examples: &Examples) -> Result<Vec<Prediction>, Error> {
        let probabilities = self.model.probabilities(&self.parameters, examples)?;
        let prediction = |probabilities: Vec<f64>| {
            let class = (1..probabilities.len())
                .fold(0, |best, class| if probabilities[class] > probabilities[best] { class } else { best });
            Prediction { class, probabilities }
        };
        Ok(probabilities.into_iter().map(prediction).collect())
    }

    /// Accuracy, confusion and calibration on labelled examples.
    ///
    /// # Errors
    /// As [`predict`](Self::predict), and if there is no example.
    pub fn evaluate(&self, examples: &Examples) -> Result<Scores, Error> {
        Ok(Scores::new(&self.predict(examples)?, examples.labels(), self.classes.len())?)
    }
}
