//! The sum of the clipped updates of a cohort.

use antinoise_noise::KeyedRng;

use super::population::Population;
use super::steps::{LocalSteps, Room};
use crate::Error;
use crate::clip::{GradientSum, sum_clipped_vectors};

/// Users whose updates one thread computes and adds one after the other.
pub(crate) const CHUNK: usize = 4;

/// The sum over `cohort` of u_i min(1, clip_norm / |u_i|), for updates u_i from the parameters `start`;
/// without `clip_norm`, of the updates themselves. `rng` returns the random generator of a user.
pub(crate) fn cohort_sum<P: Population>(
    population: &P,
    local: LocalSteps,
    start: &[f32],
    cohort: &[usize],
    clip_norm: Option<f64>,
    rng: impl Fn(usize) -> KeyedRng + Sync,
) -> Result<GradientSum, Error> {
    sum_clipped_vectors(
        cohort,
        CHUNK,
        start.len(),
        clip_norm.map(Into::into),
        || Room::new(population),
        |room, user, add| {
            let loss = local.update(population, room, start, user, &mut rng(user))?;
            add(&room.update, loss);
            Ok(())
        },
    )
}
