//! The persons whose examples are trained on: `--user` and `--users`.

use std::path::PathBuf;

use antinoise_input::InvalidParameter;
use antinoise_study::{Persons, TABLES};
use clap::Args;

use crate::failure::Result;
use crate::numbers::count;

/// The persons of the training examples.
#[derive(Debug, Clone, Args)]
pub struct UserOptions {
    /// For tables: the column that names the person of each row. For images:DIR: the word folder, if images
    /// are in train/CLASS/PERSON/*.png and test/CLASS/PERSON/*.png. Then persons are protected with all of
    /// their examples, instead of single examples: batches are of persons, and the mean gradient of a
    /// person's examples is clipped as one. Test rows and images are those of other persons.
    #[arg(long, value_name = "COLUMN", group = "persons")]
    user: Option<String>,
    /// As --user, for data without columns (images, idx): a text file with the person of each training
    /// example, one name a line, in the order of the examples. Examples of images:DIR are ordered by class,
    /// then by file name. Test examples should be those of other persons.
    #[arg(long, value_name = "FILE", group = "persons")]
    users: Option<PathBuf>,
    /// With --user or --users: the maximum number of a person's examples that a step uses; from a person with
    /// more it draws that number at random. Epsilon is the same for any number [default: 100].
    #[arg(long, value_name = "M", value_parser = count, requires = "persons")]
    pub max_examples_per_user: Option<usize>,
}

/// The word for folders of persons.
const FOLDER: &str = "folder";

impl UserOptions {
    /// Name of the first option that is given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("user", self.user.is_some()),
            ("users", self.users.is_some()),
            ("max_examples_per_user", self.max_examples_per_user.is_some()),
        ];
        given.into_iter().find_map(|(name, given)| given.then_some(name))
    }

    /// The column of persons of a table, if persons are protected.
    pub fn column(&self) -> Result<Option<String>> {
        match self.users {
            None => Ok(self.user.clone()),
            Some(_) => {
                let must_be = "left out for tables, whose persons --user COLUMN names";
                Err(InvalidParameter::new("users", "given", must_be).into())
            }
        }
    }

    /// The source of the persons of `data` without columns, if persons are protected.
    pub fn persons(&self, data: &str) -> Result<Option<Persons>> {
        match &self.user {
            None => Ok(self.users.clone().map(Persons::Lines)),
            Some(word) if word == FOLDER && data.starts_with("images:") => Ok(Some(Persons::Folders)),
            Some(_) => {
                let must_be = format!(
                    "left out unless --data is {TABLES}, or images:DIR and --user is folder, for images in \
                     train/CLASS/PERSON/*.png; --users FILE names the persons of other data"
                );
                Err(InvalidParameter::new("user", "given", must_be).into())
            }
        }
    }
}
