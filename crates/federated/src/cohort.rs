//! The cohort of a round: drawn at random, and the sum of its clipped updates.

use std::sync::atomic::{AtomicUsize, Ordering};

use antinoise_input::InvalidParameter;
use antinoise_noise::KeyedRng;
use antinoise_plan::Batches;
use antinoise_train::clip::{GradientSum, sum_clipped_vectors};
use rand_core::Rng;

use crate::Error;
use crate::local_steps::{LocalSteps, Trained, Workspace};
use crate::population::Population;

/// Draws at most `size` of `users`, uniformly among all such sets. The cohort has the order of `users`: a
/// function of the random numbers and of the users' order alone, so that two programs that list the users
/// who may take part by name draw the same cohort.
///
/// ```
/// use antinoise_federated::draw_cohort;
/// use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
/// let rng = &mut KeyedRng::new(&Key::from_os()?, &RunId::default(), Purpose::BatchSampling, 0);
/// let cohort = draw_cohort(&["ada", "edsger", "grace"], 2, rng)?;
/// assert!(cohort.len() == 2 && cohort.is_sorted());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If there are more users than a sampler supports.
pub fn draw_cohort<U: Copy>(
    users: &[U],
    size: usize,
    rng: &mut impl Rng,
) -> Result<Vec<U>, InvalidParameter> {
    if users.is_empty() {
        return Ok(Vec::new());
    }
    let mut drawn: Vec<usize> =
        Batches::cyclic(users.len(), 1, rng)?.at(0, rng).into_iter().take(size).collect();
    drawn.sort_unstable();
    Ok(drawn.into_iter().map(|i| users[i]).collect())
}

/// The numbers of all users, in the order of their names.
pub(crate) fn by_name(population: &impl Population) -> Vec<usize> {
    let mut users: Vec<usize> = (0..population.users()).collect();
    users.sort_unstable_by_key(|&user| population.name(user));
    users
}

/// Users whose updates one thread computes and adds one after the other.
pub(crate) const CHUNK: usize = 4;

/// The sum of u_i min(1, clip_norm / |u_i|) over the updates u_i of a cohort of `count` users, each of `dim`
/// numbers, in double precision: that of a round of [`Federation`](crate::Federation), whose order depends
/// on `count` alone. `update(i, add)` computes the update of user i of the cohort and calls `add` with it,
/// or not at all for a user without one. An update that is not finite adds nothing.
///
/// ```
/// use antinoise_federated::{Error, clipped_update_sum};
/// let updates = [[3.0, 4.0], [0.0, 0.5]];
/// let sum = clipped_update_sum(2, 2, 1.0, |i, add| Ok::<(), Error>(add(&updates[i])))?;
/// assert!((sum[0] - 0.6).abs() < 1e-6 && (sum[1] - 1.3).abs() < 1e-6);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// If the clip norm is below 2^-1000 or not finite; the errors of `update`.
///
/// # Panics
/// If an update does not have `dim` numbers.
pub fn clipped_update_sum<E: From<InvalidParameter> + Send>(
    count: usize,
    dim: usize,
    clip_norm: f64,
    update: impl Fn(usize, &mut dyn FnMut(&[f32])) -> Result<(), E> + Sync,
) -> Result<Vec<f64>, E> {
    let cohort: Vec<usize> = (0..count).collect();
    let each =
        |_: &mut (), user, add: &mut dyn FnMut(&[f32], f64)| update(user, &mut |numbers| add(numbers, 0.0));
    Ok(sum_clipped_vectors(&cohort, CHUNK, dim, Some(clip_norm.into()), || (), each)?.gradient)
}

/// The sum over `cohort` of u_i min(1, clip_norm / |u_i|), for updates u_i from the parameters `start`;
/// without `clip_norm`, of the updates themselves. `rng` returns the random generator of a user. Also returns
/// the number of updates that became 0, as they were beyond the bound of `local`.
pub(crate) fn cohort_sum<P: Population>(
    population: &P,
    local: LocalSteps,
    start: &[f32],
    cohort: &[usize],
    clip_norm: Option<f64>,
    rng: impl Fn(usize) -> KeyedRng + Sync,
) -> Result<(GradientSum, usize), Error> {
    let zeroed = AtomicUsize::new(0);
    let sum = sum_clipped_vectors(
        cohort,
        CHUNK,
        start.len(),
        clip_norm.map(Into::into),
        || Workspace::new(population),
        |room, user, add| {
            let Trained { loss, is_zeroed } = local.update(population, room, start, user, &mut rng(user))?;
            zeroed.fetch_add(usize::from(is_zeroed), Ordering::Relaxed);
            add(&room.update, loss);
            Ok(())
        },
    );
    sum.map(|sum: GradientSum| (sum, zeroed.into_inner()))
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
            let cohort = draw_cohort(&[10, 11, 12, 13, 14, 15, 16], 3, &mut rng).unwrap();
            assert!(cohort.len() == 3 && cohort.windows(2).all(|pair| pair[0] < pair[1]));
            cohort.iter().for_each(|user| counts[user - 10] += 1.0);
        }
        // 1500 each, variance 857: six standard errors, false alarm 1e-8.
        assert!(counts.iter().all(|count| (count - 1500.0).abs() < 6.0 * 857f64.sqrt()), "{counts:?}");
        let mut rng = KeyedRng::new(&key, &run, Purpose::BatchSampling, 0);
        assert_eq!(draw_cohort(&["b", "a"], 3, &mut rng).unwrap(), ["b", "a"]);
        assert!(draw_cohort::<usize>(&[], 3, &mut rng).unwrap().is_empty());
    }
}
