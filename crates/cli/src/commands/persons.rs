//! The epsilon of persons with several examples, where examples are protected.

use antinoise_plan::{Error, PrivacyUnit, VerifiedPlan};
use serde::Serialize;

use crate::failure::Result;
use crate::numbers::short_up;

/// Numbers of examples of a person for which epsilon is stated by default.
const STATED: [usize; 3] = [2, 5, 20];

/// The epsilon of a person with several examples, by group privacy.
#[derive(Debug, Clone, Serialize)]
pub struct ByExamples {
    pub examples: usize,
    /// The epsilon; null where no finite bound is known.
    pub epsilon: Option<f64>,
}

/// The epsilon of persons with these numbers of examples under a plan for examples.
pub fn by_examples(plan: &VerifiedPlan, numbers: impl IntoIterator<Item = usize>) -> Result<Vec<ByExamples>> {
    let epsilon = |examples: usize| match plan.epsilon_of_user(examples) {
        Ok(epsilon) => Ok(Some(epsilon)),
        Err(Error::Accounting(antinoise_accounting::Error::OutOfReach { .. })) => Ok(None),
        Err(error) => Err(error),
    };
    numbers.into_iter().map(|examples| Ok(ByExamples { examples, epsilon: epsilon(examples)? })).collect()
}

/// The epsilon of persons with 2, 5 and 20 examples; none under a plan for users.
pub fn stated(plan: &VerifiedPlan) -> Result<Vec<ByExamples>> {
    match plan.privacy.unit {
        PrivacyUnit::User => Ok(Vec::new()),
        PrivacyUnit::Example => by_examples(plan, STATED.into_iter().filter(|&few| few <= plan.examples)),
    }
}

/// The epsilons with their numbers of examples, such as "1.2 with 2 examples, 3.4 with 5 examples".
pub fn in_words(by: &[ByExamples]) -> String {
    let text = |by: &ByExamples| {
        let epsilon = by.epsilon.map_or_else(|| "no bound".into(), |epsilon| short_up(epsilon, 4));
        format!("{epsilon} with {} {}", by.examples, if by.examples == 1 { "example" } else { "examples" })
    };
    by.iter().map(text).collect::<Vec<_>>().join(", ")
}
