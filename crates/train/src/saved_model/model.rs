//! A trained model that is saved, loaded and used.

use std::path::Path;

use antinoise_input::files::{Access, write_whole};
use antinoise_input::{InvalidParameter, hex};
use sha2::{Digest, Sha256};

use super::description::{Description, check};
use super::files;
use super::scores::{Prediction, Scores};
use crate::Error;
use crate::data::{Examples, Schema};
use crate::model::Model;

const TENSORS: &str = "model.safetensors";
const DESCRIPTION: &str = "model.toml";
/// Largest description: a schema of 10^6 words.
const MAX_DESCRIPTION: u64 = 1 << 26;

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
        if parameters.len() != model.parameters() {
            let must_be = format!("{}, the model's", model.parameters());
            return Err(InvalidParameter::new("number of parameters", parameters.len(), must_be));
        }
        if let Some(other) = parameters.iter().find(|x| !x.is_finite()) {
            return Err(InvalidParameter::new("parameter", other, "a finite number"));
        }
        Ok(Self { model, parameters, classes, schema })
    }

    /// The bytes of `model.safetensors`: the parameters as the tensors of [`Model::tensors`].
    ///
    /// # Errors
    /// If the format cannot hold the tensors.
    pub fn to_safetensors(&self) -> Result<Vec<u8>, Error> {
        Ok(files::written(&self.model, &self.parameters)?)
    }

    /// Writes `model.safetensors` and `model.toml` into an existing folder, each whole or not at all.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn save(&self, folder: &Path) -> Result<(), Error> {
        let Self { model, classes, schema, .. } = self;
        let tensors = self.to_safetensors()?;
        let description = Description::new(model, classes, schema.as_ref(), hex(&Sha256::digest(&tensors)));
        let text = toml::to_string(&description)
            .map_err(|error| InvalidParameter::new("model.toml", error, "a description in TOML"))?;
        for (name, contents) in [(TENSORS, &tensors[..]), (DESCRIPTION, text.as_bytes())] {
            let path = folder.join(name);
            write_whole(&path, Access::Everyone, contents).map_err(Error::io(&path))?;
        }
        Ok(())
    }

    /// Reads a folder that [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// If a file is absent or altered, or the two files are not of the same model.
    pub fn load(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(DESCRIPTION);
        if !std::fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= MAX_DESCRIPTION) {
            let inside = folder.join("model");
            let must_be = match inside.join(DESCRIPTION).is_file() {
                true => format!("{}, the folder of the model in it", inside.display()),
                false => {
                    format!("a folder with {DESCRIPTION}, as `antinoise train --out DIR` writes DIR/model")
                }
            };
            return Err(InvalidParameter::new("model folder", folder.display(), must_be).into());
        }
        let text = std::fs::read_to_string(&path).map_err(Error::io(&path))?;
        let (description, model) = Description::read(&text)?;
        let path = folder.join(TENSORS);
        let bytes = std::fs::read(&path).map_err(Error::io(&path))?;
        if hex(&Sha256::digest(&bytes)) != description.sha256 {
            let must_be =
                format!("the file that {DESCRIPTION} describes: its SHA-256 differs from the one there");
            return Err(InvalidParameter::new(path.display().to_string(), "altered", must_be).into());
        }
        let parameters = files::read(&path, &model, &bytes)?;
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
