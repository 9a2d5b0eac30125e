use antinoise_input::{InvalidParameter, hex};
use antinoise_noise::{NoiseStream, Purpose};
use antinoise_plan::{Batches, CLIP_ROUNDING, Plan, Release, Sampler, VerifiedPlan};
use sha2::{Digest, Sha256};

use crate::Error;
use crate::checkpoint::Identity;
use crate::clip::{Clipping, Groups};
use crate::data::Dataset;
use crate::optimizer::OptimizerConfig;
use crate::private_model::PrivateModel;

/// The inputs of a run, apart from its key and its initial parameters.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// Steps, sampler, clip norm, noise and privacy.
    pub plan: &'a VerifiedPlan,
    /// The model.
    pub model: &'a dyn PrivateModel,
    /// The training and test data.
    pub dataset: &'a Dataset,
    /// The optimizer; a rule alone is one (`UpdateRule::into`).
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
        let examples = self.dataset.train.len();
        if self.plan.examples != examples {
            let must_be = format!("{examples}, the training examples of {}", self.dataset.name);
            return Err(InvalidParameter::new("examples of the plan", self.plan.examples, must_be).into());
        }
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

    /// Refuses sums whose sensitivity, rounding included, may exceed the one that the plan's noise covers.
    fn check_sensitivity(&self) -> Result<(), Error> {
        let Plan { examples, sampler, release, .. } = **self.plan;
        let parameters = self.model.parameters();
        if let Release::Grid { dim, .. } = release
            && parameters > dim
        {
            let must_be = format!("at most {dim}, the coordinates that the plan's grid is for");
            return Err(InvalidParameter::new("number of parameters", parameters, must_be).into());
        }
        // A batch may consist of a whole group.
        let largest = match sampler {
            Sampler::Cyclic { groups } | Sampler::Poisson { groups } => examples.div_ceil(groups),
            Sampler::Stream => self.plan.batch_size,
            Sampler::BallsInBins { .. } | Sampler::BMinSep { .. } => examples,
            Sampler::External => return Err(external().into()),
        };
        let margin = self.model.sum_margin(largest)?;
        if margin > CLIP_ROUNDING {
            let got =
                format!("{largest}, whose sum in double precision has a margin of {margin:.2e} clip norms");
            let must_be = format!(
                "few enough for a margin of at most {CLIP_ROUNDING:.2e}, which the plan's noise covers"
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
