//! Draws without replacement.

use rand_core::Rng;

/// Draws `count` of `all` items, every set of `count` with the same probability; returns for each item
/// whether it was drawn.
pub(super) fn drawn(all: usize, count: usize, random: &mut impl Rng) -> Vec<bool> {
    let mut left = count;
    (0..all)
        .map(|one| {
            let open = (all - one) as u128;
            let is_drawn = ((u128::from(random.next_u64()) * open) >> 64) < left as u128;
            left -= usize::from(is_drawn);
            is_drawn
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use antinoise_noise::{Key, KeyedRng, Purpose, RunId};

    use super::*;

    #[test]
    fn everything_is_drawn_equally_often_and_a_seed_draws_the_same() {
        let mut times = [0u32; 20];
        for seed in 0..4000 {
            let (key, run) = (Key::from_seed_insecure(seed), RunId::default());
            let draw = || drawn(20, 5, &mut KeyedRng::new(&key, &run, Purpose::DataOrder, 0));
            let found = draw();
            assert_eq!(found.iter().filter(|&&is_drawn| is_drawn).count(), 5);
            assert_eq!(found, draw());
            times.iter_mut().zip(found).for_each(|(times, is_drawn)| *times += u32::from(is_drawn));
        }
        // 1000 are expected, with a standard deviation of 27.
        assert!(times.iter().all(|times| (870..1130).contains(times)), "{times:?}");
    }
}
