//! Laws of noisy sums on a grid.

mod common;

use antinoise_mechanism::design::{Objective, StrategySpec};
use antinoise_mechanism::{Participation, Problem, Recursion, Workload};
use antinoise_noise::{Error, Grid, Key, NoiseStream, Shard, StreamBuilder};
use common::{STEPS, cases};

/// More tiles than steps that are made at a time.
const DIM: usize = 9300;
const NOISE_STD: f64 = 1.5;

fn grid() -> Grid {
    Grid::new(2f64.powi(-14)).unwrap()
}

fn builder(recursion: &Recursion) -> StreamBuilder {
    NoiseStream::builder(recursion.clone(), STEPS, DIM, NOISE_STD).threads(1)
}

fn key() -> Key {
    Key::from_seed_insecure(31)
}

fn rows(mut stream: NoiseStream) -> Vec<Vec<f32>> {
    (stream.step()..STEPS)
        .map(|_| {
            let mut row = vec![f32::NAN; stream.len()];
            stream.next_into(&mut row).unwrap();
            row
        })
        .collect()
}

/// The mechanisms that are sums of seeds.
fn sums_of_seeds() -> Vec<(&'static str, Recursion)> {
    let problem = Problem {
        steps: STEPS,
        workload: Workload::Prefix,
        participation: Participation::Single,
        objective: Objective::Rms,
    };
    ["tree", "honaker-online", "honaker-full", "dense", "fourier", "fourier-optimal"]
        .map(|name| {
            let strategy = name.parse::<StrategySpec>().unwrap().design(&problem).unwrap().value;
            (name, strategy.recursion().unwrap())
        })
        .to_vec()
}

fn grid_cases() -> Vec<(&'static str, Recursion)> {
    [cases(), sums_of_seeds()].concat()
}

/// Bytes of the seeds that cannot be recomputed, since their rounding is stored with them.
fn least_memory(recursion: &Recursion) -> u64 {
    let stream = builder(recursion).memory_budget(u64::MAX).grid(grid()).build(key()).unwrap();
    let leaf = |mut recursion: &Recursion| loop {
        match recursion {
            Recursion::Scaled { inner, .. } | Recursion::Restarted { inner, .. } => recursion = inner,
            leaf => return matches!(leaf, Recursion::SeedCombination { .. }),
        }
    };
    if leaf(recursion) { stream.placement().bytes } else { 0 }
}

/// The proof's claim in numbers: the noise is C^-1 Z' for seed noise Z' that differs from Z by the rounding
/// of the same step only, at most half a grid step of that step's fresh noise, however long the run.
#[test]
fn rounded_noise_is_the_mechanism_of_seed_noise_moved_by_half_a_step() {
    for (name, recursion) in grid_cases() {
        let noise = rows(builder(&recursion).grid(grid()).build(key()).unwrap());
        let mut seeds = builder(&recursion).grid(grid()).seed_noise(key());
        // The same law, with one seed a step.
        let recursion = recursion.with_one_seed_per_step(STEPS).unwrap();
        let z: Vec<Vec<f64>> = (0..STEPS as u64)
            .map(|s| {
                let mut z = vec![0.0; DIM];
                seeds.fill_f64(s, 0, &mut z);
                z
            })
            .collect();
        for j in (0..DIM).step_by(61) {
            let mut moved = vec![0.0; STEPS];
            for t in 0..STEPS {
                assert_eq!(f64::from(noise[t][j]) % grid().spacing(), 0.0);
                let without = recursion.apply(STEPS, &moved)[t];
                moved[t] = 1.0;
                let weight = recursion.apply(STEPS, &moved)[t] - without;
                moved[t] = (f64::from(noise[t][j]) / NOISE_STD - without) / weight;
                let half = grid().spacing() / 2.0 / NOISE_STD / weight.abs();
                let off = (moved[t] - z[t][j]).abs();
                assert!(
                    off <= half * (1.0 + 1e-6),
                    "{name}: step {t} moved by {off:e}, half a step is {half:e}"
                );
            }
        }
    }
}

#[test]
fn threads_shards_memory_and_seeking_change_no_bit() {
    for (name, recursion) in grid_cases() {
        let whole = rows(builder(&recursion).grid(grid()).build(key()).unwrap());
        assert_eq!(rows(builder(&recursion).threads(3).grid(grid()).build(key()).unwrap()), whole, "{name}");
        let least = least_memory(&recursion);
        for budget in [0, 8 * DIM as u64, 3 * 8 * DIM as u64, u64::MAX].map(|budget| budget.max(least)) {
            let mut stream = builder(&recursion).memory_budget(budget).grid(grid()).build(key()).unwrap();
            assert!(stream.placement().bytes <= budget);
            let mut row = vec![0.0; DIM];
            for step in [7, 3, 4, 12, 0, 1, 6, 9, 10] {
                stream.seek_and_reuse_noise_unprotected(step).unwrap();
                stream.next_into(&mut row).unwrap();
                assert_eq!(row, whole[step], "{name}: step {step} with {}", stream.placement());
            }
        }
        for cut in [0, 1, 40, 1024, 1030, DIM as u64].windows(2) {
            let shard = builder(&recursion).shard(Shard::of_range(cut[0]..cut[1]));
            for (part, whole) in rows(shard.grid(grid()).build(key()).unwrap()).iter().zip(&whole) {
                assert_eq!(part[..], whole[cut[0] as usize..cut[1] as usize], "{name}: shard {cut:?}");
            }
        }
    }
}

/// Sums of seeds store the rounding of their seeds, and state the memory it takes before they start.
#[test]
fn sums_of_seeds_keep_no_more_than_they_say() {
    for (name, recursion) in sums_of_seeds() {
        let kept = builder(&recursion).look_ahead(1).grid(grid()).build(key()).unwrap().placement();
        let seeds = recursion.with_one_seed_per_step(STEPS).unwrap().state_vectors();
        assert_eq!((kept.vectors, kept.bytes), (seeds, (8 * seeds * DIM) as u64), "{name}");
        assert!(if name == "tree" { seeds == 3 } else { seeds == STEPS - 1 }, "{name}: {seeds}");
        let short = builder(&recursion).memory_budget(kept.bytes - 1).grid(grid()).build(key());
        let error = short.unwrap_err().to_string();
        let expected = format!(
            "memory_budget is {} bytes but must be at least {} bytes, in which a sum of seeds on a grid keeps {seeds} \
             past seeds of {DIM} outputs",
            kept.bytes - 1,
            kept.bytes
        );
        assert!(error.starts_with(&expected), "{error}");
    }
}

/// Rows that exceed the caches are written past them.
#[test]
fn a_large_stream_has_the_bits_of_its_small_shards() {
    const LARGE: usize = 300_001;
    let recursion = Recursion::Blt { scale: vec![0.3, 0.2, 0.1], decay: vec![0.99, 0.8, 0.5] };
    let builder = NoiseStream::builder(recursion, 11, LARGE, NOISE_STD).threads(1);
    let mut whole = builder.clone().grid(grid()).build(key()).unwrap();
    let cut = |i: usize| i as u64 * LARGE as u64 / 29;
    let mut shards: Vec<NoiseStream> = (0..29)
        .map(|i| {
            builder.clone().shard(Shard::of_range(cut(i)..cut(i + 1))).grid(grid()).build(key()).unwrap()
        })
        .collect();
    assert!(whole.placement().bytes > 8 << 20 && shards[0].placement().bytes < 8 << 20);
    let (sum, mut row) = (vec![0.5; LARGE], vec![0.0; LARGE]);
    for step in 0..11 {
        whole.add_to_sum(&sum, &mut row).unwrap();
        let parts: Vec<f32> = shards
            .iter_mut()
            .flat_map(|shard| {
                let mut part = vec![0.0; shard.len()];
                shard.add_to_sum(&sum[..shard.len()], &mut part).unwrap();
                part
            })
            .collect();
        assert_eq!(row, parts, "step {step}");
    }
}

/// A seek over many steps makes them in several passes over the state.
#[test]
fn far_seeks_change_no_bit() {
    let recursion = Recursion::Blt { scale: vec![0.3, 0.1], decay: vec![0.99, 0.5] };
    let builder = NoiseStream::builder(recursion, 700, DIM, NOISE_STD).threads(2);
    let start = || builder.clone().grid(grid()).build(key()).unwrap();
    let (mut walked, mut sought) = (start(), start());
    let (mut row, mut expected) = (vec![0.0; DIM], vec![0.0; DIM]);
    for step in 0..700 {
        walked.next_into(&mut expected).unwrap();
        if [3, 4, 256, 521, 699].contains(&step) {
            sought.seek(step).unwrap();
            sought.next_into(&mut row).unwrap();
            assert_eq!(row, expected, "step {step}");
        }
    }
}

/// Rows made ahead are stored as whole points of four bytes where they are certain to fit.
#[test]
fn rows_are_made_ahead_where_their_points_fit() {
    let recursion = Recursion::Blt { scale: vec![0.3, 0.1], decay: vec![0.99, 0.5] };
    let few = sums_of_seeds().into_iter().find(|(name, _)| *name == "dense").expect("a dense one").1;
    for (recursion, spacing, look_ahead) in
        [(&recursion, -14, 8), (&recursion, -25, 8), (&recursion, -34, 1), (&few, -14, 1)]
    {
        let grid = Grid::new(2f64.powi(spacing)).unwrap();
        let whole = rows(builder(recursion).grid(grid).build(key()).unwrap());
        let stream = builder(recursion).grid(grid).build(key()).unwrap();
        assert_eq!(stream.placement().look_ahead, look_ahead);
        let one_by_one = builder(recursion).look_ahead(1).grid(grid).build(key()).unwrap();
        assert_eq!(rows(one_by_one), whole);
        assert_eq!(rows(stream), whole);
    }
}

/// Sums of many seeds; some seeds are live for a while, and other seeds then take their slots.
#[test]
fn sums_of_many_seeds_are_the_same_made_ahead_and_one_by_one() {
    const MANY: usize = 300;
    type Reads = fn(usize, usize) -> bool;
    let of_all: Reads = |_, _| true;
    let of_a_while: Reads = |t, s| s + 270 > t && ((s * 7 + t) % 5 > 0 || s % 9 == 0);
    // Each step's seed takes the slot of the previous one, which all steps read last.
    let of_the_last: Reads = |t, s| s < 260 || s + 1 == t;
    for (case, reads) in [of_all, of_a_while, of_the_last].into_iter().enumerate() {
        let weight =
            |t: usize, s: usize| 0.9f64.powi((t - s) as i32) * if s.is_multiple_of(3) { -0.5 } else { 1.0 };
        let rows_of =
            |t: usize| (0..=t).filter(|s| *s == t || reads(t, *s)).map(|s| (s, weight(t, s))).collect();
        let recursion = Recursion::SeedCombination { rows: (0..MANY).map(rows_of).collect() };
        for dim in [7, 1100] {
            let builder = || NoiseStream::builder(recursion.clone(), MANY, dim, 1.5);
            let ahead = builder().grid(grid()).build(key()).unwrap();
            assert_eq!(ahead.placement().look_ahead, 32);
            let all = |mut stream: antinoise_noise::NoiseStream| -> Vec<Vec<f32>> {
                let mut next = || {
                    let mut row = vec![0.0; dim];
                    stream.next_into(&mut row).map(|()| row).unwrap()
                };
                (0..MANY).map(|_| next()).collect()
            };
            let whole = all(builder().look_ahead(1).grid(grid()).build(key()).unwrap());
            assert!(all(ahead) == whole, "{case} {dim}");
            let mut sought = builder().threads(1).grid(grid()).build(key()).unwrap();
            let mut row = vec![0.0; dim];
            for step in [290, 3, 299, 150, 151, 11] {
                sought.seek_and_reuse_noise_unprotected(step).unwrap();
                sought.next_into(&mut row).unwrap();
                assert_eq!(row, whole[step], "{case} {dim}: step {step}");
            }
        }
    }
}

#[test]
fn resuming_changes_no_bit_and_another_grid_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grid.safetensors");
    for (name, recursion) in grid_cases() {
        let whole = rows(builder(&recursion).grid(grid()).build(key()).unwrap());
        let mut stream = builder(&recursion).grid(grid()).build(key()).unwrap();
        for _ in 0..5 {
            stream.next_into(&mut vec![0.0; DIM]).unwrap();
        }
        stream.save(&path).unwrap();
        for budget in [least_memory(&recursion), u64::MAX] {
            let resumed = builder(&recursion).memory_budget(budget).grid(grid()).resume(&path).unwrap();
            assert_eq!(rows(resumed), whole[5..], "{name}");
        }
        let other = Grid::new(2f64.powi(-13)).unwrap();
        assert!(matches!(builder(&recursion).grid(other).resume(&path), Err(Error::Checkpoint { .. })));
        assert!(matches!(builder(&recursion).resume(&path), Err(Error::Checkpoint { .. })));
    }
}

#[test]
fn a_noisy_sum_is_the_sum_rounded_from_double_precision_plus_the_noise() {
    const HALF: f64 = (0.5 + 1e-6) / (1 << 14) as f64;
    let (_, recursion) = cases().swap_remove(13);
    let noise = rows(builder(&recursion).grid(grid()).build(key()).unwrap());
    let mut stream = builder(&recursion).grid(grid()).build(key()).unwrap();
    let spacing = grid().spacing();
    for noise in noise {
        // Slightly more than half of the way to the next point; in single precision, half of it or less.
        let sum: Vec<f64> = (0..DIM).map(|j| ((j as f64 * 0.37).sin() * 3000.0).round() + HALF).collect();
        let mut noisy_sum = vec![0.0; DIM];
        stream.add_to_sum(&sum, &mut noisy_sum).unwrap();
        for ((noisy_sum, sum), noise) in noisy_sum.iter().zip(sum).zip(noise) {
            let points = (sum / spacing).ceil() + f64::from(noise) / spacing;
            assert_eq!(*noisy_sum, (points * spacing) as f32);
        }
    }
}

/// A refused sum makes no noisy sum, and later rows have the bits that they would have had.
#[test]
fn wild_sums_are_refused_before_their_step_is_used() {
    let wild =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 2f64.powi(52 - 14), -2f64.powi(52 - 14)];
    let (sum, mut refused) = (vec![0.25; DIM], 0);
    for (name, recursion) in grid_cases() {
        let build = || builder(&recursion).grid(grid()).build(key()).unwrap();
        let (mut calm, mut stream) = (build(), build());
        let (mut expected, mut out) = (vec![0.0; DIM], vec![0.0; DIM]);
        for step in 0..STEPS {
            let mut other = sum.clone();
            other[step * 700 % DIM] = wild[step % wild.len()];
            let message = stream.add_to_sum(&other, &mut out).unwrap_err().to_string();
            assert!(
                message.starts_with("sum is not finite, or beyond what a noisy sum can hold, but must"),
                "{message}"
            );
            assert!(stream.step() == step && out.iter().all(|&x| x == 0.0), "{name}");
            calm.add_to_sum(&sum, &mut expected).unwrap();
            stream.add_to_sum(&sum, &mut out).unwrap();
            assert_eq!(out, expected, "{name}: step {step}");
            refused += 1;
        }
        assert!(stream.add_to_sum(&sum, &mut out).unwrap_err().to_string().starts_with("all 13 steps"));
    }
    assert!(refused >= 20 * STEPS, "{refused}");
    let mut stream = builder(&Recursion::Independent).grid(grid()).build(key()).unwrap();
    let message = stream.add_to_sum(&sum[1..], &mut vec![0.0; DIM]).unwrap_err().to_string();
    assert!(message.starts_with("sum's length is 9299"));
    // The largest sum that is accepted.
    stream.add_to_sum(&[2f64.powi(51 - 14); DIM], &mut vec![0.0; DIM]).unwrap();
}

#[test]
fn what_cannot_be_on_a_grid_is_refused() {
    for spacing in [0.0, -0.5, 0.3, f64::NAN, f64::INFINITY, 2f64.powi(101)] {
        assert!(Grid::new(spacing).unwrap_err().to_string().starts_with("grid spacing is"));
    }
    let message = |recursion: &Recursion, spacing: i32| {
        let grid = Grid::new(2f64.powi(spacing)).unwrap();
        builder(recursion).grid(grid).build(key()).unwrap_err().to_string()
    };
    assert!(message(&Recursion::Independent, -40).starts_with("grid spacing is 1 / "));
    let twice = Recursion::SeedCombination { rows: vec![vec![(0, 1.0)]; STEPS] };
    assert!(message(&twice, -10).starts_with("rows is a linear combination of earlier rows at step 1"));
    assert!(Grid::for_clip_norm(f64::NAN, 3, 0.1).is_err() && Grid::for_clip_norm(1.0, 0, 0.1).is_err());
}

#[test]
fn the_grid_of_a_clip_norm_keeps_its_promise() {
    for dim in [1, 3, 1000, 10_000_000] {
        for (clip_norm, increase) in [(1.0, 0.01), (0.3, 1e-6), (64.0, 0.5)] {
            let grid = Grid::for_clip_norm(clip_norm, dim, increase).unwrap();
            let rise = grid.clip_norm(clip_norm, dim).unwrap() / clip_norm - 1.0;
            assert!(
                rise <= increase * (1.0 + 1e-9) + 1e-15 && rise > increase / 2.1,
                "{dim} {clip_norm} {rise}"
            );
        }
    }
}
