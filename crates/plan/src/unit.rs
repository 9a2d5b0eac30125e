//! A check of the privacy unit against what the sampler draws.

use antinoise_input::{InvalidParameter, at_least};
use antinoise_mechanism::PrivacyUnit;

use crate::Result;

/// Refuses a privacy unit that the sampler does not draw.
///
/// If a sampler draws examples, a user with two examples can take part twice as often as the schema allows. A
/// sampler draws users only if the plan states `max_examples_per_user`: then each user adds one clipped
/// gradient, the mean over the user's examples, when the sampler draws the user.
pub(crate) fn check_unit(
    unit: PrivacyUnit,
    is_external: bool,
    max_examples_per_user: Option<usize>,
) -> Result<()> {
    match (unit, is_external, max_examples_per_user) {
        (PrivacyUnit::Example, _, None) | (PrivacyUnit::User, true, None) => Ok(()),
        (PrivacyUnit::User, false, Some(most)) => Ok(at_least("max_examples_per_user", most, 1).map(drop)?),
        (PrivacyUnit::User, false, None) => {
            let must_be = "example: the plan's sampler takes examples by number, and clips each by itself, so that a \
                           user with several takes part more often. A plan for users has the external sampler, or says \
                           by max_examples_per_user how many examples of a user are clipped together; where every user \
                           has one example, the two units are the same";
            Err(InvalidParameter::new("unit of the plan", "user", must_be).into())
        }
        (PrivacyUnit::Example, _, Some(most)) | (PrivacyUnit::User, true, Some(most)) => {
            let must_be = "left out: it is for plans of users, where a sampler forms the batches";
            Err(InvalidParameter::new("max_examples_per_user", most, must_be).into())
        }
    }
}
