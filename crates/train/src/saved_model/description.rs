//! The contents of `model.toml`.

use antinoise_input::InvalidParameter;
use serde::{Deserialize, Serialize};

use crate::data::{ImageShape, Schema};
use crate::model::{Layer, Model};

/// The version of the format.
const VERSION: u32 = 1;

/// A model without its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    version: u32,
    /// The kind: logistic, mlp, cnn.
    kind: String,
    /// SHA-256 of `model.safetensors`.
    pub(super) sha256: String,
    /// The names of classes, in the order of labels.
    pub(super) classes: Vec<String>,
    /// The shape of an input; features of images are brightness in \[0, 1\].
    input: ImageShape,
    layers: Vec<Layer>,
    /// The columns of a table and their scaling; absent for images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) table: Option<Schema>,
}

impl Description {
    pub(super) fn new(model: &Model, classes: &[String], table: Option<&Schema>, sha256: String) -> Self {
        Self {
            version: VERSION,
            kind: model.name().into(),
            sha256,
            classes: classes.to_vec(),
            input: model.shape(),
            layers: model.architecture(),
            table: table.cloned(),
        }
    }

    /// The model that is described.
    pub(super) fn model(&self) -> Result<Model, InvalidParameter> {
        let Self { version, kind, classes, input, layers, table, .. } = self;
        if *version != VERSION {
            let must_be = format!("{VERSION}, the version that this program reads");
            return Err(InvalidParameter::new("version of model.toml", version, must_be));
        }
        let model = Model::new(kind, *input, classes.len(), layers)?;
        check(&model, classes, table.as_ref())?;
        Ok(model)
    }
}

/// Refuses classes and a schema that are not the model's.
pub(super) fn check(
    model: &Model,
    classes: &[String],
    table: Option<&Schema>,
) -> Result<(), InvalidParameter> {
    if classes.len() != model.classes() {
        let must_be = format!("{}, the model's classes", model.classes());
        return Err(InvalidParameter::new("number of class names", classes.len(), must_be));
    }
    let Some(schema) = table else { return Ok(()) };
    schema.check()?;
    if schema.classes != classes {
        let must_be = format!("{}, the classes of the model", classes.join(", "));
        return Err(InvalidParameter::new("classes of the schema", schema.classes.join(", "), must_be));
    }
    if ImageShape::row(schema.features()) != model.shape() {
        let must_be = format!("{}, the model's inputs", model.shape().len());
        return Err(InvalidParameter::new("features of the schema", schema.features(), must_be));
    }
    Ok(())
}
