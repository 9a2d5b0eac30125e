//! The epsilon of persons with several examples, where examples are protected.

use antinoise_input::short_up;
use antinoise_mechanism::PrivacyUnit;
use serde::Serialize;

use crate::{Error, Result, VerifiedPlan};

/// Numbers of examples of a person for which epsilon is stated by default.
const STATED: [usize; 3] = [2, 5, 20];

/// The epsilon of a person with several examples.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ByExamples {
    /// The number of the person's examples.
    pub examples: usize,
    /// The epsilon; null where no finite bound is known.
    pub epsilon: Option<f64>,
}

impl VerifiedPlan {
    /// The epsilon of persons with these numbers of examples, as [`VerifiedPlan::epsilon_of_user`] bounds it.
    ///
    /// # Errors
    /// As [`VerifiedPlan::epsilon_of_user`].
    pub fn epsilon_by_examples(&self, numbers: impl IntoIterator<Item = usize>) -> Result<Vec<ByExamples>> {
        let epsilon = |examples: usize| match self.epsilon_of_user(examples) {
            Ok(epsilon) => Ok(Some(epsilon)),
            Err(Error::Accounting(antinoise_accounting::Error::OutOfReach { .. })) => Ok(None),
            Err(error) => Err(error),
        };
        let one = |examples| Ok(ByExamples { examples, epsilon: epsilon(examples)? });
        numbers.into_iter().map(one).collect()
    }

    /// The epsilon of persons with 2, 5 and 20 examples, as statements and reports give it; empty if the
    /// plan's unit is a user.
    ///
    /// # Errors
    /// If an epsilon cannot be computed.
    ///
    /// ```
    /// use antinoise_plan::{Length, Request, Setting, by_examples_in_words, choose};
    /// let plan = choose(&Request::new(1000, 50, Length::Epochs(2), Setting::Cyclic))?.plan;
    /// let stated = plan.stated_epsilon_by_examples()?;
    /// assert!(stated[1].examples == 5 && stated[1].epsilon > Some(5.0 * plan.privacy.epsilon));
    /// assert!(by_examples_in_words(&stated).contains(" with 2 examples, "));
    /// # Ok::<(), antinoise_plan::Error>(())
    /// ```
    pub fn stated_epsilon_by_examples(&self) -> Result<Vec<ByExamples>> {
        match self.privacy.unit {
            PrivacyUnit::User => Ok(Vec::new()),
            PrivacyUnit::Example => {
                self.epsilon_by_examples(STATED.into_iter().filter(|&few| few <= self.examples))
            }
        }
    }
}

/// The bound on epsilon above which words name no figure: nobody is protected by a probability that may grow
/// e^100 times.
const UNPROTECTED: f64 = 100.0;

/// The epsilons with their numbers of examples, such as "1.2 with 2 examples, 3.4 with 5 examples, not known
/// to be below 100 with 20 examples".
pub fn by_examples_in_words(by: &[ByExamples]) -> String {
    let text = |by: &ByExamples| {
        let epsilon = match by.epsilon {
            None => "no bound".into(),
            Some(epsilon) if epsilon > UNPROTECTED => format!("not known to be below {UNPROTECTED}"),
            Some(epsilon) => short_up(epsilon, 4),
        };
        format!("{epsilon} with {} {}", by.examples, if by.examples == 1 { "example" } else { "examples" })
    };
    by.iter().map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epsilon_that_protects_nobody_is_not_a_figure() {
        let by = |examples, epsilon| ByExamples { examples, epsilon };
        let all = [by(1, Some(100.0)), by(2, Some(100.1)), by(20, Some(16529.9)), by(50, None)];
        let words = "100 with 1 example, not known to be below 100 with 2 examples, not known to be below 100 with \
                     20 examples, no bound with 50 examples";
        assert_eq!(by_examples_in_words(&all), words);
    }
}
