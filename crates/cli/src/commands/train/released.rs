//! How many of the trained models are released, and what they cost together.

use std::fmt;
use std::str::FromStr;

use antinoise_input::InvalidParameter;
use antinoise_plan::{Plan, compose};
use serde::{Deserialize, Serialize};

use super::study::Study;
use crate::failure::Result;

/// The models that a privacy statement covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Released {
    /// So many of each mechanism, chosen without a look at the data.
    Some(usize),
    /// Every model that is trained, whereby any choice among them is covered too.
    All,
}

impl Released {
    /// Refuses more models than there are.
    pub fn check(self, trained: usize) -> Result<()> {
        match self {
            Self::Some(count) if count > trained => {
                let must_be =
                    format!("all, or at most {trained}, the models that are trained of a mechanism");
                Err(InvalidParameter::new("released_models", count, must_be).into())
            }
            _ => Ok(()),
        }
    }

    /// The least and the largest epsilon of the models that are released with those of `plan`, and their number.
    pub fn cost(self, study: &Study, plan: &Plan) -> Result<Cost> {
        let each = study.models_of_a_mechanism();
        let models: Vec<(&Plan, usize)> = match self {
            Self::Some(count) => vec![(plan, count)],
            Self::All => study.plans().iter().map(|named| (&named.plan, each)).collect(),
        };
        let count = models.iter().map(|(_, count)| count).sum();
        if count == 1 {
            let privacy = &plan.privacy;
            return Ok(Cost { models: 1, epsilon: privacy.epsilon, epsilon_lower: privacy.epsilon_lower });
        }
        let epsilon = compose(&models, plan.privacy.delta)?;
        Ok(Cost { models: count, epsilon: epsilon.upper, epsilon_lower: epsilon.lower })
    }

    /// What the statement covers, in words.
    pub fn covers(self, study: &Study) -> String {
        let (of_each, rates) = (study.models_of_a_mechanism(), study.rules().len());
        let trained = of_each * study.plans().len();
        let what = format!(
            "{trained} models were trained on these data: {} mechanisms x {rates} learning rates x {} repeats",
            study.plans().len(),
            study.repeats()
        );
        match self {
            _ if trained == 1 => "one model was trained on these data; this statement covers it".into(),
            Self::All => format!(
                "{what}. This statement covers all of them together, and so any choice among them, that of the best \
                 learning rate too"
            ),
            Self::Some(count) => format!(
                "{what}. This statement covers {count} of this mechanism, chosen without a look at any result. It does \
                 not cover the choice of the best learning rate, or of any model, by results of the others: that \
                 releases something of all of them (--released-models all accounts for it)"
            ),
        }
    }
}

/// What released models cost together.
pub struct Cost {
    /// How many they are.
    pub models: usize,
    /// Never below the truth.
    pub epsilon: f64,
    /// How tight it is.
    pub epsilon_lower: f64,
}

impl Default for Released {
    fn default() -> Self {
        Self::Some(1)
    }
}

impl FromStr for Released {
    type Err = InvalidParameter;

    fn from_str(text: &str) -> std::result::Result<Self, InvalidParameter> {
        match text.parse() {
            Ok(count) if count > 0 => Ok(Self::Some(count)),
            _ if text == "all" => Ok(Self::All),
            _ => Err(InvalidParameter::new(
                "released_models",
                format!("{text:?}"),
                "all or a number from 1 on",
            )),
        }
    }
}

impl fmt::Display for Released {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Some(count) => count.fmt(f),
            Self::All => f.write_str("all"),
        }
    }
}

impl TryFrom<String> for Released {
    type Error = InvalidParameter;

    fn try_from(text: String) -> std::result::Result<Self, InvalidParameter> {
        text.parse()
    }
}

impl From<Released> for String {
    fn from(released: Released) -> Self {
        released.to_string()
    }
}
