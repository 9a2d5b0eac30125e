//! The data and the model of an audited training: few parameters, and batches that are recorded.

use std::sync::{Mutex, PoisonError};

use antinoise_input::{InvalidParameter, between};
use antinoise_plan::{Sampler, VerifiedPlan};
use antinoise_train::clip::{Clipping, GradientSum, clipped_sum};
use antinoise_train::data::{Dataset, Examples, ImageShape, numbered_classes};
use antinoise_train::model::Model;
use antinoise_train::optimizer::UpdateRule;

use crate::Error;
use crate::mechanism::linear_model;
use crate::random::Random;
use crate::watched::{Watch, Watched};

/// Number of features of an example.
const FEATURES: usize = 2;
/// Momentum of the audited training.
const MOMENTUM: f64 = 0.9;

/// A plan, as many examples as it states, and a linear model of two classes.
#[derive(Debug)]
pub struct TrainingInputs {
    pub(crate) plan: VerifiedPlan,
    pub(crate) dataset: Dataset,
    pub(crate) model: Watched<Model, Observed>,
}

impl TrainingInputs {
    /// Maximum number of examples of a plan whose training is audited.
    pub const MOST_EXAMPLES: usize = 1 << 22;

    /// Whether the training of `plan` can be audited: it forms its own batches, and has at most
    /// [`MOST_EXAMPLES`](Self::MOST_EXAMPLES) examples.
    pub fn is_for(plan: &VerifiedPlan) -> bool {
        plan.sampler != Sampler::External && plan.examples <= Self::MOST_EXAMPLES
    }

    /// The inputs of a training of `plan`.
    ///
    /// # Errors
    /// For plans for which [`Self::is_for`] is false.
    pub fn new(plan: VerifiedPlan) -> Result<Self, Error> {
        if plan.sampler == Sampler::External {
            let must_be = "one that forms batches: a training that takes them from elsewhere is not audited";
            return Err(InvalidParameter::new("sampler of the plan", "external", must_be).into());
        }
        between(
            "examples of the plan",
            plan.examples,
            1,
            Self::MOST_EXAMPLES,
            "2^22, the maximum for an audit of training",
        )?;
        let mut random = Random(1);
        let mut examples = |count: usize| {
            let features = (0..count * FEATURES).map(|_| random.sign() as f32).collect();
            let labels = (0..count).map(|_| random.below(2) as u32).collect();
            Examples::new(features, labels, FEATURES)
        };
        let (train, test) = (examples(plan.examples)?, examples(1)?);
        let shape = ImageShape { height: 1, width: FEATURES, channels: 1 };
        let class_names = numbered_classes(2);
        let dataset =
            Dataset { name: "signs".into(), shape, classes: 2, class_names, train, users: None, test };
        let model = Watched { inner: linear_model(FEATURES)?, watch: Observed::default() };
        Ok(Self { plan, dataset, model })
    }

    /// The plan.
    pub fn plan(&self) -> &VerifiedPlan {
        &self.plan
    }

    /// Number of entries of a noisy sum.
    pub fn parameters(&self) -> usize {
        self.model.inner.parameters()
    }

    /// The optimizer: SGD with momentum.
    pub fn rule(&self) -> UpdateRule {
        let plan = &self.plan;
        let step = plan.clip_norm + plan.noise_std() / plan.expected_batch_size();
        UpdateRule::Sgd { learning_rate: 0.1 / step, momentum: MOMENTUM }
    }

    /// The sum of clipped gradients over `batch`.
    ///
    /// # Errors
    /// If an index is out of range or occurs twice in the batch.
    pub fn sum(&self, parameters: &[f32], batch: &[usize]) -> Result<Vec<f64>, Error> {
        let (model, examples) = (&self.model.inner, &self.dataset.train);
        Ok(clipped_sum(model, parameters, examples, batch, self.plan.clip_norm)?.gradient)
    }
}

/// Records the batches for which a model computed sums, and replaces the sums by 0 if only the noise is
/// wanted.
#[derive(Debug, Default)]
pub(crate) struct Observed(Mutex<Asked>);

#[derive(Debug, Default)]
struct Asked {
    noise_only: bool,
    batch: Vec<usize>,
}

impl Observed {
    pub(crate) fn set_noise_only(&self, noise_only: bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).noise_only = noise_only;
    }

    /// The batch of the last sum.
    pub(crate) fn take_batch(&self) -> Vec<usize> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).batch)
    }
}

impl Watch for Observed {
    const IDENTITY: &'static str = "";

    fn sum(
        &self,
        batch: &[usize],
        _: Clipping,
        sum_of: &dyn Fn(&[usize]) -> Result<GradientSum, antinoise_train::Error>,
    ) -> Result<GradientSum, antinoise_train::Error> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.batch = batch.to_vec();
        let mut sum = sum_of(batch)?;
        if last.noise_only {
            sum.gradient.fill(0.0);
        }
        Ok(sum)
    }
}
