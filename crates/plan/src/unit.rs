//! The unit that a plan's sampler draws.

use antinoise_input::{InvalidParameter, at_least};
use antinoise_mechanism::PrivacyUnit;

use crate::Result;

/// Refuses a unit that the sampler does not draw.
///
/// A sampler that draws examples keeps a schema of examples, in which a user with two examples participates
/// twice as often. It draws users only if the plan states the maximum number of a user's examples of which a
/// step uses the mean gradient: then each user adds one clipped vector, and participates when the sampler
/// draws the user.
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
