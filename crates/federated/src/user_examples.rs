//! Users as groups of labelled examples, with a model of this crate.

use antinoise_input::{InvalidParameter, hex};
use antinoise_train::clip::plain_sum;
use antinoise_train::data::Examples;
use antinoise_train::model::Model;
use antinoise_train::private_model::PrivateModel;
use sha2::{Digest, Sha256};

use crate::Error;
use crate::population::Population;

/// Examples grouped by user, with a [`Model`].
///
/// ```
/// use antinoise_federated::{Population, UserExamples};
/// use antinoise_train::{data, model::Model};
/// let digits = data::digits();
/// let model = Model::logistic(digits.shape, digits.classes)?;
/// let writers: Vec<String> = (0..digits.train.len()).map(|i| format!("writer {}", i / 36)).collect();
/// let users = UserExamples::new(&model, &digits.train, &writers)?;
/// assert_eq!((users.users(), users.examples(0)), (40, 36));
/// # Ok::<(), antinoise_federated::Error>(())
/// ```
pub struct UserExamples<'a> {
    model: &'a Model,
    examples: &'a Examples,
    names: Vec<String>,
    of: Vec<Vec<usize>>,
    identity: String,
}

impl<'a> UserExamples<'a> {
    /// Groups examples: example i belongs to the user `user_of[i]`. Users are numbered in the order of their
    /// first examples.
    ///
    /// # Errors
    /// If the model does not fit the examples, or the numbers of users and examples differ.
    pub fn new(model: &'a Model, examples: &'a Examples, user_of: &[String]) -> Result<Self, Error> {
        PrivateModel::check(model, &vec![0.0; model.parameters()], examples)?;
        if user_of.len() != examples.len() {
            let must_be = format!("{}, one an example", examples.len());
            return Err(InvalidParameter::new("users of the examples", user_of.len(), must_be).into());
        }
        let mut number = std::collections::HashMap::new();
        let (mut names, mut of) = (Vec::new(), Vec::<Vec<usize>>::new());
        let mut digest = Sha256::new();
        digest.update(format!("{model:?}"));
        digest.update(examples.sha256());
        for (i, user) in user_of.iter().enumerate() {
            digest.update((user.len() as u64).to_le_bytes());
            digest.update(user);
            let user = *number.entry(user).or_insert_with(|| {
                names.push(user.clone());
                of.push(Vec::new());
                of.len() - 1
            });
            of[user].push(i);
        }
        Ok(Self { model, examples, names, of, identity: hex(&digest.finalize()) })
    }
}

impl Population for UserExamples<'_> {
    type Workspace = ();

    fn workspace(&self) {}

    fn parameters(&self) -> usize {
        self.model.parameters()
    }

    fn users(&self) -> usize {
        self.of.len()
    }

    fn name(&self, user: usize) -> &str {
        &self.names[user]
    }

    fn examples(&self, user: usize) -> usize {
        self.of[user].len()
    }

    fn gradient(
        &self,
        _: &mut (),
        parameters: &[f32],
        user: usize,
        examples: &[usize],
        gradient: &mut [f32],
    ) -> Result<f64, Error> {
        let batch: Vec<usize> = examples.iter().map(|&i| self.of[user][i]).collect();
        let (sum, count) = (plain_sum(self.model, parameters, self.examples, &batch)?, batch.len() as f64);
        gradient.iter_mut().zip(&sum.gradient).for_each(|(to, x)| *to = (x / count) as f32);
        Ok(sum.loss / count)
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }
}
