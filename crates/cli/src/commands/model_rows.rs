//! Rows that a saved model is used on: `--data` of `predict` and `evaluate`.

use std::path::Path;

use antinoise_federated::lstm::{SavedLstm, UserTexts};
use antinoise_federated::plays::texts_of_rows;
use antinoise_input::InvalidParameter;
use antinoise_study::{TABLES, TableKind, table_file};
use antinoise_train::data::{
    self, Examples, ImageShape, Labels, class_folders, digits, fashion_mnist, idx_test, image_files,
};
use antinoise_train::saved_model::SavedModel;
use clap::Args;

use super::train::{check_delimiter, delimiter};
use crate::failure::Result;
use crate::progress::Progress;

/// The source of the rows.
#[derive(Debug, Args)]
pub struct RowOptions {
    /// The rows: csv:PATH, jsonl:PATH, npz:PATH, parquet:PATH or arrow:PATH for a model of a table; for a
    /// model of images images:DIR (PNG files in DIR or, with labels, in DIR/CLASS or DIR/test/CLASS), idx:DIR
    /// (the test files in the format of MNIST), digits or fashion-mnist (their test images).
    #[arg(long, value_name = "KIND:PATH")]
    data: String,
    /// For CSV: the character between cells, or tab [default: ,].
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    delimiter: Option<u8>,
}

impl RowOptions {
    /// The rows, encoded for the model.
    pub fn examples(&self, model: &SavedModel, labels: Labels) -> Result<Examples> {
        let _progress = Progress::endless("reading the rows");
        match (table_file(&self.data), model.schema()) {
            (Some((kind, path)), Some(schema)) => {
                check_delimiter(kind, self.delimiter)?;
                Ok(kind.file(path, self.delimiter)?.examples(schema, labels)?)
            }
            (Some(_), None) => Err(self.refused("images: the model is one of images").into()),
            (None, Some(_)) => {
                let must_be = format!("{TABLES}: the model is one of a table");
                Err(self.refused(must_be).into())
            }
            (None, None) => self.images(model, labels),
        }
    }

    /// The texts of users, as sequences for the model.
    pub fn texts(&self, model: &SavedLstm) -> Result<UserTexts> {
        let _progress = Progress::endless("reading the texts");
        let Some((kind, path)) = table_file(&self.data) else {
            return Err(self.refused(format!("{TABLES}: the model is one of texts in a table")).into());
        };
        check_delimiter(kind, self.delimiter)?;
        let (text, user) = model.columns();
        let rows = kind.file(path, self.delimiter)?.with_users(user).texts(text)?;
        Ok(model.users_of(texts_of_rows(&rows))?)
    }

    /// The file of the rows, if they are a table.
    pub fn file(&self) -> Option<&Path> {
        table_file(&self.data).map(|(_, path)| path)
    }

    fn refused(&self, must_be: impl Into<String>) -> InvalidParameter {
        InvalidParameter::new("data", format!("{:?}", self.data), must_be)
    }

    fn images(&self, model: &SavedModel, labels: Labels) -> Result<Examples> {
        check_delimiter(TableKind::JsonLines, self.delimiter)?;
        let test = |dataset: data::Dataset| (dataset.shape, dataset.test);
        let (shape, examples) = match self.data.split_once(':') {
            None if self.data == "digits" => test(digits()),
            None if self.data == "fashion-mnist" => test(fashion_mnist(None)?),
            Some(("fashion-mnist", folder)) => test(fashion_mnist(Some(Path::new(folder)))?),
            Some(("idx", folder)) => idx_test(Path::new(folder))?,
            Some(("images", folder)) => self.folder(Path::new(folder), model, labels)?,
            _ => {
                let must_be = "digits, fashion-mnist, fashion-mnist:DIR, idx:DIR or images:DIR: the model is one of images";
                return Err(self.refused(must_be).into());
            }
        };
        let size = |of: ImageShape| format!("{} x {} with {} channels", of.height, of.width, of.channels);
        if shape != model.model().shape() {
            let must_be = format!("{}, those of the model", size(model.model().shape()));
            return Err(InvalidParameter::new("size of the images", size(shape), must_be).into());
        }
        Ok(examples)
    }

    fn folder(&self, folder: &Path, model: &SavedModel, labels: Labels) -> Result<(ImageShape, Examples)> {
        let test = folder.join("test");
        let within = if test.is_dir() { &test } else { folder };
        Ok(match labels {
            Labels::Required => class_folders(within, model.classes())?,
            Labels::Ignored => image_files(folder)?,
        })
    }
}
