use antinoise_input::InvalidParameter;
use antinoise_noise::{AnyStream, Grid, NoiseStream, Purpose, RunId, StreamBuilder};
use antinoise_plan::{Batches, Plan, Release, SUM_ALLOWANCE, Sampler, VerifiedPlan};

use crate::Error;
use crate::clip::sum_margin;
use crate::data::Dataset;
use crate::model::Model;
use crate::optimizer::Rule;

/// What a run is a function of, apart from its key and the parameters that it starts from.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// Steps, sampler, clip norm, noise and the privacy that they give.
    pub plan: &'a VerifiedPlan,
    /// What is trained.
    pub model: &'a Model,
    /// What it is trained on and tested with.
    pub dataset: &'a Dataset,
    /// How a step follows from a noisy gradient.
    pub rule: Rule,
}

impl Setup<'_> {
    /// Refuses plan, model, data, optimiser and `start` that do not fit each other: what
    /// [`Trainer::new`](crate::trainer::Trainer::new) would refuse.
    ///
    /// # Errors
    /// It names what does not fit.
    pub fn check(&self, start: &[f32]) -> Result<(), Error> {
        self.rule.check()?;
        let examples = self.dataset.train.len();
        if self.plan.examples != examples {
            let must_be = format!("{examples}, the training examples of {}", self.dataset.name);
            return Err(InvalidParameter::new("examples of the plan", self.plan.examples, must_be).into());
        }
        for part in [&self.dataset.train, &self.dataset.test] {
            self.model.check(start, part)?;
        }
        self.check_sensitivity()
    }

    /// Refuses sums that one example may move further than the plan's noise is for.
    fn check_sensitivity(&self) -> Result<(), Error> {
        let Plan { examples, sampler, release, .. } = **self.plan;
        let parameters = self.model.parameters();
        if let Release::Grid { dim, .. } = release
            && parameters > dim
        {
            let must_be = format!("at most {dim}, the coordinates that the plan's grid is for");
            return Err(InvalidParameter::new("number of parameters", parameters, must_be).into());
        }
        // Every group may come whole.
        let largest = match sampler {
            Sampler::Cyclic { groups } | Sampler::Poisson { groups } => examples.div_ceil(groups),
            Sampler::External => return Err(external().into()),
        };
        let margin = sum_margin(largest, self.model.chunk())?;
        if margin > SUM_ALLOWANCE {
            let got =
                format!("{largest}, whose sum in double precision has a margin of {margin:.2e} clip norms");
            let must_be =
                format!("so few that it is at most {SUM_ALLOWANCE:.2e}, which the plan's noise covers");
            return Err(InvalidParameter::new("examples of the largest batch", got, must_be).into());
        }
        Ok(())
    }

    /// What makes the run's noise, and the plan's grid, where there is one.
    pub(super) fn noise(
        &self,
        run: RunId,
        context: [u8; 32],
    ) -> Result<(StreamBuilder, Option<Grid>), antinoise_plan::Error> {
        let recursion = self.plan.strategy.recursion()?;
        let dim = self.model.parameters();
        let builder = NoiseStream::builder(recursion, self.plan.steps, dim, self.plan.noise_std())
            .run(run)
            .context(context);
        Ok((builder, self.plan.release.grid()?))
    }

    pub(super) fn batches(&self, noise: &AnyStream) -> Result<Batches, InvalidParameter> {
        let Plan { examples, batch_size, sampler, .. } = **self.plan;
        Batches::new(sampler, examples, batch_size, &mut noise.rng(Purpose::DataOrder, 0))
    }
}

fn external() -> InvalidParameter {
    let must_be = "cyclic or Poisson: this trainer forms its own batches";
    InvalidParameter::new("sampler of the plan", "external", must_be)
}
