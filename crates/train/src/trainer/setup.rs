use antinoise_input::{InvalidParameter, hex};
use antinoise_noise::{NoiseStream, Purpose};
use antinoise_plan::{Arithmetic, Batches, CLIP_ROUNDING, Plan, Sampler, VerifiedPlan};
use sha2::{Digest, Sha256};

use crate::Error;
use crate::checkpoint::Identity;
use crate::clip::{Clipping, GradientSum, Groups};
use crate::data::{Dataset, Users};
use crate::optimizer::OptimizerConfig;
use crate::private_model::PrivateModel;

/// The inputs of a run, apart from its key and its initial parameters.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// Steps, sampler, clip norm, noise and privacy.
    pub plan: &'a VerifiedPlan,
    /// The model that is trained.
    pub model: &'a dyn PrivateModel,
    /// The training and test data.
    pub dataset: &'a Dataset,
    /// The optimizer. An [`UpdateRule`](crate::optimizer::UpdateRule) converts to one without options.
    pub optimizer: OptimizerConfig,
    /// Groups of layers that are clipped separately; `None` if a gradient is clipped as a whole.
    pub groups: Option<&'a Groups>,
}

impl Setup<'_> {
    /// Checks that plan, model, data, optimizer and `start` fit each other, as
    /// [`Trainer::new`](crate::trainer::Trainer::new) does.
    ///
    /// # Errors
    /// Names the part that does not fit.
    pub fn check(&self, start: &[f32]) -> Result<(), Error> {
        self.optimizer.check(self.plan.steps)?;
        self.check_unit()?;
        for part in [&self.dataset.train, &self.dataset.test] {
            self.model.check(start, part)?;
        }
        if let Some(groups) = self.groups {
            groups.check(&self.model.layers())?;
        }
        self.check_sensitivity()
    }

    /// The clip norm, and the groups of layers that are clipped separately.
    pub fn clipping(&self) -> Clipping<'_> {
        Clipping { norm: self.plan.clip_norm, groups: self.groups }
    }

    /// Refuses a plan for other units, or another number of them, than the data set has.
    fn check_unit(&self) -> Result<(), Error> {
        let Dataset { train, users, name, .. } = self.dataset;
        let must_be = match (self.plan.max_examples_per_user, users) {
            (Some(_), None) => "example: the data set does not say whose examples these are",
            (None, Some(_)) => "user, with max_examples_per_user: the data set says whose examples these are",
            _ => "",
        };
        if !must_be.is_empty() {
            let got = self.plan.privacy.unit;
            return Err(InvalidParameter::new("unit of the plan", got, must_be).into());
        }
        if users.is_some() && self.plan.sampler == Sampler::Stream {
            let must_be = "any but stream if users are protected: the rows of one user decide in which steps later users \
                 take part";
            return Err(InvalidParameter::new("sampler of the plan", "stream", must_be).into());
        }
        let (units, what) = (self.dataset.units(), users.as_ref().map_or("examples", |_| "users"));
        if self.plan.examples != units {
            let must_be = format!("{units}, the training {what} of {name}");
            return Err(InvalidParameter::new("examples of the plan", self.plan.examples, must_be).into());
        }
        match users.as_ref().map(Users::examples).filter(|&examples| examples != train.len()) {
            None => Ok(()),
            Some(examples) => {
                let must_be = format!("{}, all training examples", train.len());
                Err(InvalidParameter::new("examples of all users", examples, must_be).into())
            }
        }
    }

    /// The sum of the clipped gradients of the units `batch` in step `step`: of examples, or of users with at
    /// most the plan's number of examples each, drawn if a user has more.
    pub(super) fn sum(
        &self,
        parameters: &[f32],
        (step, batch): (usize, &[usize]),
        noise: &NoiseStream,
    ) -> Result<GradientSum, Error> {
        let (Dataset { train, users, .. }, clipping) = (self.dataset, self.clipping());
        let (Some(users), Some(most)) = (users, self.plan.max_examples_per_user) else {
            return self.model.clipped_sum(parameters, train, batch, clipping);
        };
        // One generator per user and step, so that the examples drawn of one user do not depend on other
        // users. Generator 0 orders the users.
        let number = |user: usize| 1 + step as u64 * users.len() as u64 + user as u64;
        let examples =
            |&user: &usize| users.drawn(user, most, || noise.rng(Purpose::DataOrder, number(user)));
        let drawn: Vec<Vec<usize>> = batch.iter().map(examples).collect();
        let drawn: Vec<&[usize]> = drawn.iter().map(Vec::as_slice).collect();
        self.model.clipped_user_sum(parameters, train, &drawn, clipping)
    }

    /// Refuses sums whose sensitivity, rounding included, may exceed the one that the plan's noise covers.
    fn check_sensitivity(&self) -> Result<(), Error> {
        let Plan { arithmetic, steps, .. } = **self.plan;
        let parameters = self.model.parameters();
        if let Arithmetic::Grid { dim, .. } = arithmetic
            && parameters > dim
        {
            let must_be = format!("at most {dim}, the coordinates that the plan's grid is for");
            return Err(InvalidParameter::new("number of parameters", parameters, must_be).into());
        }
        // A batch may consist of a whole group.
        let largest =
            (0..steps).filter_map(|step| self.plan.batch_size_law(step)).map(|(most, _)| most).max();
        let largest = largest.ok_or_else(external)?;
        let margin = match self.dataset.users {
            Some(_) => self.model.user_sum_margin(largest)?,
            None => self.model.sum_margin(largest)?,
        };
        if margin > CLIP_ROUNDING {
            let got = format!("{largest}, whose sum may have rounding errors of {margin:.2e} clip norms");
            let must_be = format!(
                "few enough for rounding errors of at most {CLIP_ROUNDING:.2e} clip norms, which the plan's noise covers"
            );
            return Err(InvalidParameter::new("examples of the largest batch", got, must_be).into());
        }
        Ok(())
    }

    /// The identity of a run of this setup in its checkpoints.
    pub fn identity(&self) -> Identity {
        let [train, test] = [&self.dataset.train, &self.dataset.test].map(|part| hex(&part.sha256()));
        Identity::new([
            ("plan", hex(&self.plan.digest())),
            ("model", hex(&Sha256::digest(self.model.identity()))),
            ("optimizer", self.optimizer.identity()),
            ("data set", format!("{train} {test}")),
        ])
        .with("clipping", self.groups.map(Groups::identity))
        .with("users", self.dataset.users.as_ref().map(|users| hex(&users.sha256())))
    }

    pub(super) fn batches(&self, noise: &NoiseStream) -> Result<Batches, InvalidParameter> {
        let Plan { examples, batch_size, steps, sampler, .. } = **self.plan;
        Batches::new(sampler, examples, batch_size, steps, &mut noise.rng(Purpose::DataOrder, 0))
    }
}

fn external() -> InvalidParameter {
    let must_be = "one that forms batches: this trainer does not accept batches of the caller";
    InvalidParameter::new("sampler of the plan", "external", must_be)
}
