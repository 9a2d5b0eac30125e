//! Privacy cost of all published models together.

use antinoise_plan::{VerifiedPlan, compose};

use crate::error::Result;
use crate::published::Published;
use crate::results::{Results, by_rate};
use crate::study::Study;

impl Published {
    /// Published models, including those of `plan`, and their joint epsilon.
    pub fn cost<'a>(self, study: &'a Study, plan: &'a VerifiedPlan) -> Result<Cost<'a>> {
        let each = study.models_of_a_mechanism();
        let among: Vec<(&VerifiedPlan, usize)> = match self {
            Self::Some(count) => vec![(plan, count)],
            Self::All => study.plans().iter().map(|named| (&named.plan, each)).collect(),
        };
        let models = among.iter().map(|(_, count)| count).sum();
        let epsilon = match models {
            1 => plan.privacy.epsilon,
            _ => compose(&among, plan.privacy.delta)?.upper,
        };
        Ok(Cost { among, models, epsilon })
    }

    /// Number of models that the statement of a mechanism covers.
    pub fn models(self, study: &Study) -> usize {
        match self {
            Self::Some(count) => count,
            Self::All => study.models_of_a_mechanism() * study.plans().len(),
        }
    }

    /// Models that the statement covers, in words.
    pub fn covers(self, study: &Study, results: &Results) -> String {
        let (trained, mechanisms) = (results.finished.len(), study.plans().len());
        let rates = (0..mechanisms).map(|index| by_rate(&results.of_plan(index)).len()).max().unwrap_or(0);
        let what = format!(
            "{trained} private models were trained on these data: {mechanisms} mechanisms, at most {rates} learning rates \
             of each and {} repeats of each rate",
            study.repeats()
        );
        let covers = match self {
            _ if trained == 1 => {
                "one private model was trained on these data; this statement covers it".into()
            }
            Self::All => format!(
                "{what}. This statement covers all of them together, and therefore any choice among them, including \
                 that of the best learning rate"
            ),
            Self::Some(count) => format!(
                "{what}. This statement covers {count} of this mechanism, if chosen without looking at any result. It does \
                 not cover choosing a learning rate or a model by comparing results: such a choice reveals something \
                 about all models trained (--published-models all accounts for it)"
            ),
        };
        match study.uncovered() {
            None => covers,
            Some(uncovered) => format!("{covers}. {uncovered}"),
        }
    }
}

/// Privacy cost of all published models together.
pub struct Cost<'a> {
    /// Plans, each with the number of models trained under it.
    pub among: Vec<(&'a VerifiedPlan, usize)>,
    /// Number of published models.
    pub models: usize,
    /// Epsilon of all published models together; never below the truth.
    pub epsilon: f64,
}
