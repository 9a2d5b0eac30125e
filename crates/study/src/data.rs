//! Data and models by name.

use std::path::Path;

use antinoise_input::InvalidParameter;
use antinoise_train::data::{self, Dataset, Users};
use antinoise_train::model::Model;

use crate::error::Result;
use crate::persons::Persons;
use crate::table_file::{TABLES, Table, table_file};

/// The kinds of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelName {
    /// One linear layer.
    Logistic,
    /// One hidden layer.
    Mlp,
    /// Two convolutions and two linear layers.
    Cnn,
    /// An LSTM that predicts the next character of a text.
    Lstm,
}

impl ModelName {
    /// Every kind with its name and its meaning.
    pub const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Logistic, "logistic", "One linear layer"),
        (Self::Mlp, "mlp", "One hidden layer"),
        (Self::Cnn, "cnn", "Two convolutions and two linear layers"),
        (Self::Lstm, "lstm", "An LSTM that predicts the next character of a text"),
    ];

    /// The model of this name for the data.
    ///
    /// # Errors
    /// If the data do not fit the model.
    pub fn build(self, dataset: &Dataset) -> Result<Model> {
        let (shape, classes) = (dataset.shape, dataset.classes);
        Ok(match self {
            Self::Logistic => Model::logistic(shape, classes)?,
            Self::Mlp => Model::mlp(shape, classes, 128)?,
            Self::Cnn if shape.height * shape.width == 1 => {
                return Err(InvalidParameter::new(
                    "model",
                    "cnn",
                    "logistic or mlp: the data are not images",
                )
                .into());
            }
            Self::Cnn => Model::cnn(shape, classes)?,
            Self::Lstm => {
                let must_be =
                    "another one: lstm predicts the characters of users' texts, in federated rounds";
                return Err(InvalidParameter::new("model", "lstm", must_be).into());
            }
        })
    }
}

/// Loads the data of this name: digits, fashion-mnist, fashion-mnist:DIR, idx:DIR or images:DIR, perhaps with
/// their `persons`; and with a `table` csv:PATH, jsonl:PATH, npz:PATH, parquet:PATH or arrow:PATH.
///
/// # Errors
/// If no data have this name, or they cannot be read.
pub fn load(data: &str, table: Option<&Table>, persons: Option<&Persons>) -> Result<Dataset> {
    match (table_file(data), table, persons) {
        (Some((kind, path)), Some(table), None) => return table.load(kind, path),
        (Some(_), _, Some(_)) => {
            return Err(InvalidParameter::new("persons", "given", "left out for tables").into());
        }
        (None, Some(_), _) => {
            let must_be = format!("left out unless data is {TABLES}");
            return Err(InvalidParameter::new("table", "given", must_be).into());
        }
        (_, None, _) => {}
    }
    match persons {
        None => without_columns(data, data::images),
        Some(Persons::Folders) => without_columns(data, data::images_of_persons),
        Some(Persons::Lines(path)) => {
            let dataset = without_columns(data, data::images)?;
            let users = Users::of_file(path, dataset.train.len())?;
            Ok(Dataset { users: Some(users), ..dataset })
        }
    }
}

type OfFolder = fn(&Path) -> std::result::Result<Dataset, antinoise_train::Error>;

/// Loads data without columns; `images` reads a folder of images.
fn without_columns(data: &str, images: OfFolder) -> Result<Dataset> {
    match data.split_once(':') {
        None if data == "digits" => Ok(data::digits()),
        None if data == "fashion-mnist" => Ok(data::fashion_mnist(None)?),
        Some(("fashion-mnist", folder)) => Ok(data::fashion_mnist(Some(Path::new(folder)))?),
        Some(("idx", folder)) => Ok(data::idx(Path::new(folder))?),
        Some(("images", folder)) => Ok(images(Path::new(folder))?),
        _ => {
            let must_be = format!("digits, fashion-mnist, fashion-mnist:DIR, idx:DIR, images:DIR, {TABLES}");
            Err(InvalidParameter::new("data", format!("{data:?}"), must_be).into())
        }
    }
}
