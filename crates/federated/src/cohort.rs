//! The cohort of a round: drawn at random, and the sum of its clipped updates.

use antinoise_input::InvalidParameter;
use antinoise_noise::KeyedRng;
use antinoise_plan::Batches;
use antinoise_train::clip::{GradientSum, sum_clipped_vectors};
use rand_core::Rng;

use crate::Error;
use crate::local_steps::{LocalSteps, Workspace};
use crate::population::Population;

/// Draws at most `size` of `users`, uniformly among all such sets, and sorts them.
///
/// # Errors
/// If there are more users than a sampler supports.
pub(crate) fn drawn(
    users: Vec<usize>,
    size: usize,
    rng: &mut impl Rng,
) -> Result<Vec<usize>, InvalidParameter> {
    if users.is_empty() {
        return Ok(users);
    }
    let order = Batches::cyclic(users.len(), 1, rng)?.at(0, rng);
    let mut cohort: Vec<usize> = order.into_iter().take(size).map(|i| users[i]).collect();
    cohort.sort_unstable();
    Ok(cohort)
}

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
        || Workspace::new(population),
        |room, user, add| {
            let loss = local.update(population, room, start, user, &mut rng(user))?;
            add(&room.update, loss);
            Ok(())
        },
    )
}

#[cfg(test)]
mod tests {
    use antinoise_noise::{Key, KeyedRng, Purpose, RunId};

    use super::*;

    #[test]
    fn every_user_has_the_same_chance() {
        let (key, run) = (Key::from_seed_insecure(1), RunId::default());
        let mut counts = [0f64; 7];
        for step in 0..3500 {
            let mut rng = KeyedRng::new(&key, &run, Purpose::BatchSampling, step);
            let cohort = drawn((10..17).collect(), 3, &mut rng).unwrap();
            assert!(cohort.len() == 3 && cohort.windows(2).all(|pair| pair[0] < pair[1]));
            cohort.iter().for_each(|user| counts[user - 10] += 1.0);
        }
        // 1500 each, variance 857: six standard errors, false alarm 1e-8.
        assert!(counts.iter().all(|count| (count - 1500.0).abs() < 6.0 * 857f64.sqrt()), "{counts:?}");
        let mut rng = KeyedRng::new(&key, &run, Purpose::BatchSampling, 0);
        assert_eq!(drawn(vec![4, 2], 3, &mut rng).unwrap(), [2, 4]);
        assert!(drawn(Vec::new(), 3, &mut rng).unwrap().is_empty());
    }
}
