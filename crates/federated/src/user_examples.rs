//! Users as groups of labelled examples, with a model of this crate.

use antinoise_input::{InvalidParameter, hex};
use antinoise_train::clip::plain_sum;
use antinoise_train::data::{Examples, Users};
use antinoise_train::model::Model;
use antinoise_train::private_model::PrivateModel;
use sha2::{Digest, Sha256};

use crate::Error;
use crate::population::Population;

/// Examples grouped by user, with a [`Model`].
///
/// ```
/// use antinoise_federated::{Population, UserExamples};
/// use antinoise_train::{data::{self, Users}, model::Model};
/// let digits = data::digits();
/// let model = Model::logistic(digits.shape, digits.classes)?;
/// let writers: Vec<String> = (0..digits.train.len()).map(|i| format!("writer {}", i / 36)).collect();
/// let users = Users::new(writers.iter().map(String::as_str))?;
/// let population = UserExamples::new(&model, &digits.train, &users)?;
/// assert_eq!((population.users(), population.examples(0)), (40, 36));
/// # Ok::<(), antinoise_federated::Error>(())
/// ```
pub struct UserExamples<'a> {
    model: &'a Model,
    examples: &'a Examples,
    users: &'a Users,
    identity: String,
}

impl<'a> UserExamples<'a> {
    /// The examples of these users.
    ///
    /// # Errors
    /// If the model does not fit the examples, or the users have more or fewer examples than there are.
    pub fn new(model: &'a Model, examples: &'a Examples, users: &'a Users) -> Result<Self, Error> {
        PrivateModel::check(model, &vec![0.0; model.parameters()], examples)?;
        if users.examples() != examples.len() {
            let must_be = format!("{}, all examples", examples.len());
            return Err(InvalidParameter::new("examples of all users", users.examples(), must_be).into());
        }
        let mut digest = Sha256::new();
        digest.update(format!("{model:?}"));
        digest.update(examples.sha256());
        digest.update(users.sha256());
        Ok(Self { model, examples, users, identity: hex(&digest.finalize()) })
    }
}

impl Population for UserExamples<'_> {
    type Workspace = ();

    fn workspace(&self) {}

    fn parameters(&self) -> usize {
        self.model.parameters()
    }

    fn users(&self) -> usize {
        self.users.len()
    }

    fn name(&self, user: usize) -> &str {
        self.users.name(user)
    }

    fn examples(&self, user: usize) -> usize {
        self.users.of(user).len()
    }

    fn gradient(
        &self,
        _: &mut (),
        parameters: &[f32],
        user: usize,
        examples: &[usize],
        gradient: &mut [f32],
    ) -> Result<f64, Error> {
        let batch: Vec<usize> = examples.iter().map(|&i| self.users.of(user)[i]).collect();
        let (sum, count) = (plain_sum(self.model, parameters, self.examples, &batch)?, batch.len() as f64);
        gradient.iter_mut().zip(&sum.gradient).for_each(|(to, x)| *to = (x / count) as f32);
        Ok(sum.loss / count)
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }
}
