//! What is learned: the data of a study with the model that is trained on them.

use std::path::Path;

use antinoise_federated::lstm::{Lstm, SavedLstm, UserTexts};
use antinoise_federated::plays::{VOCAB_SIZE, texts_of_rows, truncated};
use antinoise_federated::{Population, UserExamples};
use antinoise_input::tables::SimilarNames;
use antinoise_input::{InvalidParameter, hex};
use antinoise_train::clip::Groups;
use antinoise_train::data::{Dataset, Schema, TestPart, TextRows, remarks};
use antinoise_train::model::Model;
use antinoise_train::saved_model::SavedModel;
use rand_core::Rng;

use crate::clip_by::ClipBy;
use crate::data::{ModelName, load};
use crate::error::Result;
use crate::persons::Persons;
use crate::results::largest_class_share;
use crate::table_file::{TABLES, Table, table_file};
use crate::tested::Tested;
use crate::texts::Texts;

/// The data of a study with the model that is trained on them.
pub enum Task {
    /// Labels of examples.
    Labels(Box<Labels>),
    /// The next characters of users' texts.
    Texts(Box<TextTask>),
}

/// Labelled examples and their model.
pub struct Labels {
    pub dataset: Dataset,
    pub model: Model,
    /// The schema of a table.
    pub schema: Option<Schema>,
}

/// Users' texts, with their model.
pub struct TextTask {
    /// The name of the data.
    name: String,
    texts: Texts,
    /// The users who are trained on.
    pub training: UserTexts,
    /// Other users, of whom all characters are tested on.
    test: UserTexts,
}

/// A trained model, with what new data need.
pub enum Saved {
    Labels(SavedModel),
    Texts(SavedLstm),
}

/// The source of a study's data.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The data, as [`load`] names them.
    pub data: &'a str,
    pub table: Option<&'a Table>,
    pub persons: Option<&'a Persons>,
    pub texts: Option<&'a Texts>,
}

impl Source<'_> {
    /// Reads the data.
    pub fn read(self, model: ModelName) -> Result<Task> {
        if let Some(texts) = self.texts {
            return Ok(Task::Texts(Box::new(TextTask::read(texts, self.data)?)));
        }
        let dataset = load(self.data, self.table, self.persons)?;
        let (model, schema) = (model.build(&dataset)?, self.table.map(|table| table.schema.clone()));
        Ok(Task::Labels(Box::new(Labels { dataset, model, schema })))
    }
}

impl TextTask {
    fn read(texts: &Texts, data: &str) -> Result<Self> {
        let Some((kind, path)) = table_file(data) else {
            let must_be = format!("{TABLES}: characters are those of a table's column");
            return Err(InvalidParameter::new("data", format!("{data:?}"), must_be).into());
        };
        let file = kind.file(path, Some(texts.delimiter))?.with_users(&texts.user);
        let test = match &texts.test {
            Some(other) => TestPart::File(other),
            None => TestPart::Drawn { share: texts.test_share, seed: texts.test_seed },
        };
        let (training, test) = file.text_parts(&texts.column, test)?;
        let model = Lstm::new(VOCAB_SIZE, texts.embedding, texts.hidden)?;
        let of = |rows: &TextRows, most: usize| -> Result<UserTexts> {
            Ok(UserTexts::new(model, truncated(texts_of_rows(rows), most)?, texts.sequence_length)?)
        };
        let training = of(&training, texts.max_characters)?;
        Ok(Self { name: file.name(), texts: texts.clone(), training, test: of(&test, usize::MAX)? })
    }
}

impl Task {
    /// The name of the data.
    pub fn name(&self) -> &str {
        match self {
            Self::Labels(labels) => &labels.dataset.name,
            Self::Texts(texts) => &texts.name,
        }
    }

    /// The name of the model.
    pub fn model_name(&self) -> &str {
        match self {
            Self::Labels(labels) => labels.model.name(),
            Self::Texts(_) => "lstm",
        }
    }

    /// Number of training examples, or of users if these are protected.
    pub fn units(&self) -> usize {
        match self {
            Self::Labels(labels) => labels.dataset.units(),
            Self::Texts(texts) => texts.training.users(),
        }
    }

    /// Whether users are protected, rather than examples.
    pub fn has_users(&self) -> bool {
        match self {
            Self::Labels(labels) => labels.dataset.users.is_some(),
            Self::Texts(_) => true,
        }
    }

    /// Number of the model's parameters.
    pub fn parameters(&self) -> usize {
        match self {
            Self::Labels(labels) => labels.model.parameters(),
            Self::Texts(texts) => texts.training.parameters(),
        }
    }

    /// What is unusual about the data, for their owner.
    pub fn remarks(&self) -> Vec<String> {
        match self {
            Self::Labels(labels) => remarks(&labels.dataset, labels.schema.as_ref()),
            Self::Texts(texts) => {
                let of = |texts: &'_ UserTexts, user| texts.name(user).to_owned();
                let names = [&texts.training, &texts.test]
                    .into_iter()
                    .flat_map(|texts| (0..texts.users()).map(move |user| of(texts, user)));
                let names: Vec<String> = names.collect();
                SimilarNames::among(names.iter().map(String::as_str)).warning().into_iter().collect()
            }
        }
    }

    /// SHA-256 of the test data.
    pub fn test_sha256(&self) -> String {
        match self {
            Self::Labels(labels) => hex(&labels.dataset.test.sha256()),
            Self::Texts(texts) => texts.test.identity(),
        }
    }

    /// Random initial parameters.
    pub fn initial_parameters(&self, rng: &mut impl Rng) -> Vec<f32> {
        match self {
            Self::Labels(labels) => labels.model.initial_parameters(rng),
            Self::Texts(texts) => texts.training.model().initial_parameters(rng),
        }
    }

    /// The examples or characters that test accuracies are shares of.
    pub fn tested(&self) -> Tested {
        match self {
            Self::Labels(labels) => Tested::Examples(labels.dataset.test.len()),
            Self::Texts(texts) => Tested::Characters(texts.test.symbols()),
        }
    }

    /// Share of the test examples with the most frequent label, or of the most frequent character.
    pub fn largest_class_share(&self) -> f64 {
        match self {
            Self::Labels(labels) => largest_class_share(&labels.dataset.test, labels.dataset.classes),
            Self::Texts(texts) => texts.test.largest_share(),
        }
    }

    /// The share of the test examples, or test characters, that the model predicts.
    pub fn accuracy(&self, parameters: &[f32]) -> Result<f64> {
        Ok(match self {
            Self::Labels(labels) => labels.model.evaluate(parameters, &labels.dataset.test)?.accuracy,
            Self::Texts(texts) => texts.test.evaluate(parameters).accuracy,
        })
    }

    /// The parts of a gradient that are clipped separately.
    pub fn groups(&self, clip_by: ClipBy) -> Result<Option<Groups>> {
        match self {
            Self::Labels(labels) => clip_by.groups(&labels.model),
            Self::Texts(_) => Ok(None),
        }
    }

    /// A trained model, to be stored.
    pub fn saved(&self, parameters: Vec<f32>) -> Result<Saved> {
        Ok(match self {
            Self::Labels(labels) => {
                let Labels { dataset, model, schema } = &**labels;
                let classes = dataset.class_names.clone();
                Saved::Labels(SavedModel::new(model.clone(), parameters, classes, schema.clone())?)
            }
            Self::Texts(task) => {
                let Texts { column, user, sequence_length, .. } = &task.texts;
                let model = task.training.model();
                Saved::Texts(SavedLstm::new(model, parameters, *sequence_length, (column, user))?)
            }
        })
    }

    /// The labelled examples; for texts the error that `what` needs labels.
    pub fn labels(&self, what: &str) -> Result<&Labels> {
        match self {
            Self::Labels(labels) => Ok(labels),
            Self::Texts(_) => Err(for_labels(what).into()),
        }
    }
}

/// The error that a setting is for labelled examples only.
pub fn for_labels(setting: &str) -> InvalidParameter {
    InvalidParameter::new(setting, "given", "left out where characters are predicted")
}

impl Labels {
    /// The training examples by user, with the model.
    pub fn population(&self) -> Result<UserExamples<'_>> {
        let users = self.dataset.users.as_ref().ok_or_else(|| {
            InvalidParameter::new(
                "users",
                "absent",
                "named: the plan's batches are federated rounds of users",
            )
        })?;
        Ok(UserExamples::new(&self.model, &self.dataset.train, users)?)
    }
}

impl Saved {
    /// The bytes of `model.safetensors`.
    pub fn to_safetensors(&self) -> Result<Vec<u8>> {
        Ok(match self {
            Self::Labels(saved) => saved.to_safetensors()?,
            Self::Texts(saved) => saved.to_safetensors()?,
        })
    }

    /// Writes `model.safetensors` and `model.toml` into an existing folder.
    pub fn save(&self, folder: &Path) -> Result<()> {
        match self {
            Self::Labels(saved) => saved.save(folder)?,
            Self::Texts(saved) => saved.save(folder)?,
        }
        Ok(())
    }
}
