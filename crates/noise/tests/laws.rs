//! The laws of streams for the table of classes: a strategy of every class, and compositions of them, also
//! nested.

mod classes;

use std::ops::Range;

use antinoise_input::BadInput;
use antinoise_mechanism::{AnyStrategy, Recursion};
use antinoise_noise::{Error, Grid, Key, NoiseStream, Restored, Shard, StateAt, StreamBuilder};
use classes::{designs, matrices};

const STEPS: usize = 12;
/// More tiles than a stream of this length looks ahead.
const DIM: usize = 13_500;
const NOISE_STD: f64 = 1.5;
/// Bound on the rounding error of a row in single precision.
const SINGLE: f64 = 1e-5;

fn builder(recursion: &Recursion) -> StreamBuilder {
    NoiseStream::builder(recursion.clone(), STEPS, DIM, NOISE_STD).threads(1)
}

fn grid() -> Grid {
    Grid::new(2f64.powi(-14)).unwrap()
}

fn key() -> Key {
    Key::from_seed_insecure(77)
}

/// A kind of stream, so that each law is written once.
trait Kind {
    fn build(builder: StreamBuilder) -> NoiseStream;
    fn resume(builder: StreamBuilder, path: &std::path::Path) -> NoiseStream;
}

struct Plain;
struct OnGrid;

impl Kind for Plain {
    fn build(builder: StreamBuilder) -> NoiseStream {
        builder.build(key()).unwrap()
    }
    fn resume(builder: StreamBuilder, path: &std::path::Path) -> NoiseStream {
        builder.resume(path).unwrap()
    }
}

impl Kind for OnGrid {
    fn build(builder: StreamBuilder) -> NoiseStream {
        builder.grid(grid()).build(key()).unwrap()
    }
    fn resume(builder: StreamBuilder, path: &std::path::Path) -> NoiseStream {
        builder.grid(grid()).resume(path).unwrap()
    }
}

/// The remaining rows.
fn rows(mut stream: NoiseStream) -> Vec<Vec<f32>> {
    let mut row = || {
        let mut row = vec![f32::NAN; stream.len()];
        stream.next_into(&mut row).unwrap();
        row
    };
    (0..STEPS).map(|_| row()).collect()
}

/// N, rows by seeds: the response of the recursion to each unit seed.
fn dense(recursion: &Recursion) -> Vec<Vec<f64>> {
    let seeds = recursion.seeds(STEPS);
    let unit = |s: usize| (0..seeds).map(|i| f64::from(i == s)).collect::<Vec<_>>();
    let columns: Vec<Vec<f64>> = (0..seeds).map(|s| recursion.apply(STEPS, &unit(s))).collect();
    (0..STEPS).map(|t| columns.iter().map(|column| column[t]).collect()).collect()
}

fn each_strategy(mut law: impl FnMut(&str, &AnyStrategy, &Recursion)) {
    for (name, strategy) in designs(STEPS).into_iter().chain(matrices(STEPS)) {
        law(&name, &strategy, &strategy.recursion().unwrap());
    }
}

/// The recursions of all strategies, and recursions that occur only in long runs.
fn each_recursion(mut law: impl FnMut(&str, &Recursion)) {
    each_strategy(|name, _, recursion| law(name, recursion));
    let circulant =
        |seeds: usize| Recursion::Circulant { root: (1..=seeds).map(|i| 1.0 / (i as f64).sqrt()).collect() };
    law("circulant", &circulant(2 * STEPS));
    let runs = Recursion::Restarted { inner: Box::new(circulant(10)), period: 5 };
    law("circulant in runs", &runs);
    law("circulant in scaled runs", &Recursion::Scaled { inner: Box::new(runs), factors: vec![0.5; STEPS] });
}

/// N C = I for the strategy's own C, and the rows are N Z.
#[test]
fn a_plain_stream_is_the_dense_inverse_of_the_strategy_times_its_seeds() {
    each_strategy(|name, strategy, recursion| {
        let inverse = dense(recursion);
        let c = strategy.encoder().unwrap().to_dense();
        for t in 0..STEPS {
            for s in 0..STEPS {
                let entry: f64 = (0..c.nrows()).map(|i| inverse[t][i] * c[(i, s)]).sum();
                assert!((entry - f64::from(t == s)).abs() < 1e-9, "{name}: N C at ({t}, {s}) is {entry}");
            }
        }
    });
    each_recursion(|name, recursion| {
        let inverse = dense(recursion);
        let found = rows(Plain::build(builder(recursion)));
        let mut seeds = builder(recursion).seed_noise(key());
        let z: Vec<Vec<f32>> = (0..recursion.seeds(STEPS) as u64)
            .map(|s| {
                let mut z = vec![0.0; DIM];
                seeds.fill(s, 0, &mut z);
                z
            })
            .collect();
        for j in (0..DIM).step_by(101) {
            for t in 0..STEPS {
                let exact: f64 = inverse[t].iter().zip(&z).map(|(w, z)| w * f64::from(z[j])).sum();
                let off = (f64::from(found[t][j]) - NOISE_STD * exact).abs();
                assert!(off < SINGLE, "{name}: step {t}, coordinate {j} is off by {off:e}");
            }
        }
    });
}

/// Rows are L Z' for the lower-triangular form L with one seed a step, where Z' moves each seed by the
/// rounding of its own step only.
#[test]
fn a_stream_on_a_grid_is_the_dense_inverse_times_seeds_moved_by_half_a_point() {
    each_recursion(|name, recursion| {
        let inverse = dense(&recursion.with_one_seed_per_step(STEPS).unwrap());
        let found = rows(OnGrid::build(builder(recursion)));
        let mut seeds = builder(recursion).grid(grid()).seed_noise(key());
        let z: Vec<Vec<f64>> = (0..STEPS as u64)
            .map(|s| {
                let mut z = vec![0.0; DIM];
                seeds.fill_f64(s, 0, &mut z);
                z
            })
            .collect();
        for j in (0..DIM).step_by(101) {
            let mut moved: Vec<f64> = Vec::new();
            for t in 0..STEPS {
                let noise = f64::from(found[t][j]);
                assert_eq!(noise % grid().spacing(), 0.0, "{name}");
                let past: f64 = inverse[t].iter().zip(&moved).map(|(w, z)| w * z).sum();
                moved.push((noise / NOISE_STD - past) / inverse[t][t]);
                let half = grid().spacing() / 2.0 / NOISE_STD / inverse[t][t].abs();
                let off = (moved[t] - z[t][j]).abs();
                assert!(
                    off <= half * (1.0 + 1e-6),
                    "{name}: step {t} moved by {off:e}, half a point is {half:e}"
                );
            }
        }
    });
}

fn no_way_to_run_changes_a_bit<K: Kind>() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("noise.safetensors");
    each_recursion(|name, recursion| {
        let whole = rows(K::build(builder(recursion)));
        assert!(rows(K::build(builder(recursion).threads(3))) == whole, "{name}: three threads");
        assert!(rows(K::build(builder(recursion).look_ahead(1))) == whole, "{name}: no look-ahead");
        for threads in [1, 3] {
            let mut stream = K::build(builder(recursion).threads(threads));
            for whole in &whole {
                let mut row = vec![f32::NAN; DIM];
                stream
                    .next_into_slices(&mut places(&mut row, &[0, 0, 1, 700, 1031, 1032, 9000, 9000]))
                    .unwrap();
                assert!(row == *whole, "{name}: in places, {threads} threads");
            }
        }
        for cut in [0, 1, 40, 1025, DIM as u64].windows(2) {
            let part = rows(K::build(builder(recursion).shard(Shard::of_range(cut[0]..cut[1]))));
            for (part, whole) in part.iter().zip(&whole) {
                assert!(part[..] == whole[cut[0] as usize..cut[1] as usize], "{name}: shard {cut:?}");
            }
        }
        for (width, stride) in [(1, 7), (8, 64), (33, 70), (300, 1301), (700, 1500)] {
            let stripes = stripes(width, stride);
            let shard = stripes.iter().cloned().fold(Shard::default(), Shard::and_range);
            let part = rows(K::build(builder(recursion).shard(shard)));
            let at: Vec<usize> = stripes.into_iter().flatten().map(|j| j as usize).collect();
            for (part, whole) in part.iter().zip(&whole) {
                assert!(at.iter().map(|&j| whole[j]).eq(part.iter().copied()), "{name}: stripes of {width}");
            }
        }
        let mut sought = K::build(builder(recursion));
        let mut row = vec![0.0; DIM];
        for step in [7, 3, 4, 11, 0, 8] {
            sought.seek_and_reuse_noise_unprotected(step).unwrap();
            sought.next_into(&mut row).unwrap();
            assert!(row == whole[step], "{name}: sought step {step}");
        }
        let mut saved = K::build(builder(recursion));
        for step in 0..STEPS {
            if step % 5 == 3 {
                saved.save(&path).unwrap();
                let mut resumed = K::resume(builder(recursion), &path);
                for whole in &whole[step..] {
                    resumed.next_into(&mut row).unwrap();
                    assert!(row == *whole, "{name}: resumed at step {step}");
                }
            }
            saved.next_into(&mut row).unwrap();
        }
    });
}

#[test]
fn no_way_to_run_a_plain_stream_changes_a_bit() {
    no_way_to_run_changes_a_bit::<Plain>();
}

#[test]
fn no_way_to_run_a_stream_on_a_grid_changes_a_bit() {
    no_way_to_run_changes_a_bit::<OnGrid>();
}

/// The numbers split at these cuts.
fn places<'a, T>(mut numbers: &'a mut [T], cuts: &[usize]) -> Vec<&'a mut [T]> {
    let mut places = Vec::new();
    for (i, cut) in cuts.iter().enumerate() {
        let (place, others) = numbers.split_at_mut(cut - i.checked_sub(1).map_or(0, |last| cuts[last]));
        places.push(place);
        numbers = others;
    }
    places.push(numbers);
    places
}

/// Rows in several slices equal a row in one, and noisy sums that replace their sums equal noisy sums in
/// other memory: for noisy sums of sums and added noise, with padding and stripes.
#[test]
fn places_hold_what_one_row_would() {
    let sum: Vec<f64> = (0..DIM).map(|j| (j as f64).sin() / 3.0).collect();
    let stripes = stripes(9, 90).into_iter().take(100).fold(Shard::default(), Shard::and_range);
    let shard = stripes.and_padding(3000).and_range(1..9).and_range(10..4009);
    let (sum, mut found) = (&sum[..shard.len()], 0);
    let (sums, cuts) = ([&sum[..901], &[], &sum[901..4100], &sum[4100..]], [0, 7, 910, 2000, 4500, 6000]);
    each_recursion(|name, recursion| {
        for (grid, threads) in [(None, 1), (Some(grid()), 1), (None, 3), (Some(grid()), 3)] {
            let start = || builder(recursion).shard(shard.clone()).threads(threads);
            let [mut one, mut several, mut in_place] =
                [0; 3].map(|_| start().grid(grid).build(key()).unwrap());
            let (mut row, mut parts) = (vec![f32::NAN; sum.len()], vec![f32::NAN; sum.len()]);
            for step in 0..STEPS {
                if step % 3 == 1 && grid.is_none() {
                    one.add_next_into(&mut row, -0.5).unwrap();
                    several.add_next_into_slices(&mut places(&mut parts, &cuts), -0.5).unwrap();
                    in_place.next_into(&mut vec![0.0; sum.len()]).unwrap();
                } else {
                    one.add_to_sum(sum, &mut row).unwrap();
                    let (mut replaced, mut digests) = (sum.to_vec(), Vec::new());
                    let mut see = |digest| {
                        digests.push(digest);
                        Ok::<(), Error>(())
                    };
                    several.add_to_sum_slices_if(&sums, &mut places(&mut parts, &cuts), &mut see).unwrap();
                    in_place.add_to_sum_in_place_if(&mut places(&mut replaced, &cuts), &mut see).unwrap();
                    assert!(digests[0] == digests[1], "{name}: step {step} has another digest in place");
                    let widened = row.iter().map(|&noisy| f64::from(noisy));
                    assert!(replaced.into_iter().eq(widened), "{name}: step {step} in place");
                }
                assert!(row == parts, "{name}: step {step}");
                found += 1;
            }
            let refused = several.add_to_sum_slices(&sums[..3], &mut [&mut parts]).unwrap_err().to_string();
            assert!(refused.starts_with("sum's length is 4100 but"), "{refused}");
            let refused = several.add_to_sum_slices(&sums, &mut [&mut parts[1..]]).unwrap_err().to_string();
            assert!(refused.starts_with("output length is 7"), "{refused}");
        }
    });
    assert!(found > 100);
}

/// A plain noisy sum is the sum and the row, added in double precision.
#[test]
fn a_plain_noisy_sum_adds_the_row_in_double_precision() {
    let sum: Vec<f64> = (0..DIM).map(|j| (j as f64).sin() / 3.0).collect();
    each_recursion(|name, recursion| {
        let mut stream = builder(recursion).build(key()).unwrap();
        for row in rows(Plain::build(builder(recursion))) {
            let mut noisy_sum = vec![f32::NAN; DIM];
            stream.add_to_sum(&sum, &mut noisy_sum).unwrap();
            let added = row.iter().zip(&sum).map(|(row, sum)| (sum + f64::from(*row)) as f32);
            assert!(added.eq(noisy_sum), "{name}");
        }
    });
}

/// Columns of a matrix with rows of `stride` numbers: the last ones first.
fn stripes(width: u64, stride: u64) -> Vec<Range<u64>> {
    (0..DIM as u64 / stride).rev().map(|row| row * stride + 3..row * stride + 3 + width).collect()
}

/// Ways to distribute the coordinates; the second is not in order, the third is stripes.
fn shardings() -> Vec<Vec<Vec<Range<u64>>>> {
    let (dim, whole) = (DIM as u64, |range| vec![range]);
    vec![
        vec![whole(0..dim)],
        vec![vec![1000..dim, 0..3], vec![10..1000], vec![3..10]],
        vec![
            (0..135).map(|row| 100 * row..100 * row + 13).collect(),
            (0..135).map(|row| 100 * row + 13..100 * row + 100).collect(),
        ],
        vec![whole(0..40), whole(40..1025), whole(1025..dim)],
    ]
}

/// Builders of the shards, which store their past.
fn parts(recursion: &Recursion, sharding: &[Vec<Range<u64>>]) -> Vec<StreamBuilder> {
    let of = |ranges: &Vec<Range<u64>>| ranges.iter().cloned().fold(Shard::default(), Shard::and_range);
    // With a budget of 0 bytes, everything that can be recomputed would not be stored otherwise.
    let start = || builder(recursion).state_in_memory().memory_budget(0);
    sharding.iter().map(|ranges| start().shard(of(ranges))).collect()
}

/// The key of a stream's run, as a state stores it.
fn run_key(stream: &NoiseStream) -> Key {
    let copied = |lent: &[u8; 32]| {
        Key::from_reader(|key| {
            key.copy_from_slice(lent);
            Ok::<_, ()>(())
        })
    };
    stream.expose_run_key(copied).unwrap()
}

/// Visits the index in each shard's vector and in a vector over all coordinates.
fn each_coordinate(sharding: &[Vec<Range<u64>>], mut visit: impl FnMut(usize, usize, usize)) {
    for (shard, ranges) in sharding.iter().enumerate() {
        ranges.iter().cloned().flatten().enumerate().for_each(|(j, at)| visit(shard, j, at as usize));
    }
}

fn any_sharding_goes_on_with_the_state_of_another<K: Kind>(grid: Option<Grid>) {
    each_recursion(|name, recursion| {
        let whole = rows(K::build(builder(recursion)));
        let check = |streams: &mut [NoiseStream], sharding: &[Vec<Range<u64>>], step: usize| {
            let mut rows: Vec<Vec<f32>> = streams.iter().map(|stream| vec![0.0; stream.len()]).collect();
            streams.iter_mut().zip(&mut rows).for_each(|(stream, row)| stream.next_into(row).unwrap());
            each_coordinate(sharding, |shard, j, at| {
                assert!(rows[shard][j] == whole[step][at], "{name}: {step}")
            });
        };
        for (from, to) in [(0, 1), (1, 2), (2, 3), (3, 0)] {
            let (old, new) = (&shardings()[from], &shardings()[to]);
            let mut streams: Vec<NoiseStream> = parts(recursion, old)
                .into_iter()
                .map(|start| start.grid(grid).build(key()).unwrap())
                .collect();
            for step in 0..=STEPS {
                if step % 4 == from || step == STEPS {
                    let words = streams[0].state_words();
                    let mut state = vec![0; words * DIM];
                    let mut states: Vec<Vec<i32>> =
                        streams.iter().map(|s| vec![0; s.len() * words]).collect();
                    let written =
                        streams.iter_mut().zip(&mut states).map(|(s, state)| s.state(state).unwrap());
                    let (at, sums): (Vec<StateAt>, Vec<u128>) = written.unzip();
                    assert!(at.iter().all(|other| *other == at[0]) && at[0].step == step, "{name}: {at:?}");
                    let total = sums.into_iter().fold(0, u128::wrapping_add);
                    let commitment = streams[0].state_commitment(at[0], total, b"extra");
                    each_coordinate(old, |shard, j, to| {
                        let len = states[shard].len() / words.max(1);
                        (0..words).for_each(|w| state[w * DIM + to] = states[shard][w * len + j]);
                    });
                    let len = |ranges: &Vec<Range<u64>>| ranges.iter().cloned().flatten().count();
                    let mut states: Vec<Vec<i32>> = new.iter().map(|s| vec![0; len(s) * words]).collect();
                    each_coordinate(new, |shard, j, from| {
                        let len = states[shard].len() / words.max(1);
                        (0..words).for_each(|w| states[shard][w * len + j] = state[w * DIM + from]);
                    });
                    let restored: Vec<Restored> = parts(recursion, new)
                        .into_iter()
                        .zip(&states)
                        .map(|(start, state)| {
                            start.grid(grid).resume_state(run_key(&streams[0]), at[0], state).unwrap()
                        })
                        .collect();
                    let sums = restored.iter().map(Restored::sum);
                    assert_eq!(sums.fold(0, u128::wrapping_add), total, "{name}: step {step}");
                    let mut resumed: Vec<NoiseStream> = restored
                        .into_iter()
                        .map(|restored| restored.checked(total, b"extra", &commitment).unwrap())
                        .collect();
                    assert!(resumed.iter().all(|stream| stream.state_words() == words), "{name}");
                    for stream in resumed.iter_mut().filter(|_| step > 0) {
                        assert!(stream.seek(step - 1).unwrap_err().to_string().starts_with("step is"));
                    }
                    (step..STEPS).for_each(|step| check(&mut resumed, new, step));
                }
                if step < STEPS {
                    check(&mut streams, old, step);
                }
            }
        }
    });
}

#[test]
fn any_sharding_goes_on_with_the_state_of_another_plain_stream() {
    any_sharding_goes_on_with_the_state_of_another::<Plain>(None);
}

#[test]
fn any_sharding_goes_on_with_the_state_of_another_stream_on_a_grid() {
    any_sharding_goes_on_with_the_state_of_another::<OnGrid>(Some(grid()));
}

/// A row's whole points plus a rounded sum make the noisy sum.
#[test]
fn whole_points_and_a_rounded_sum_make_the_noisy_sum() {
    let (spacing, sum): (f64, Vec<f64>) =
        (grid().spacing(), (0..DIM).map(|j| (j as f64).sin() / 3.0).collect());
    let (mut found, mut noisy_sum) = (0, vec![0.0f32; DIM]);
    each_recursion(|name, recursion| {
        let [mut added, mut alone] = [0; 2].map(|_| OnGrid::build(builder(recursion)));
        let mut points = vec![0; DIM];
        for step in 0..STEPS {
            // Between them, rows may be returned in another way.
            if step % 3 == 2 {
                let mut row = vec![0.0; DIM];
                added.next_into(&mut noisy_sum).unwrap();
                alone.next_into(&mut row).unwrap();
                assert!(row == noisy_sum, "{name}: step {step}");
                continue;
            }
            alone.next_points_into(&mut points).unwrap();
            added.add_to_sum(&sum, &mut noisy_sum).unwrap();
            let whole = |j: usize| (sum[j] / spacing).round_ties_even() as i64 + i64::from(points[j]);
            assert!(
                (0..DIM).all(|j| noisy_sum[j] == (whole(j) as f64 * spacing) as f32),
                "{name}: step {step}"
            );
            found += 1;
        }
    });
    assert!(found > 100);
    let fine =
        || builder(&Recursion::Independent).grid(Grid::new(2f64.powi(-30)).unwrap()).build(key()).unwrap();
    let error = fine().next_points_into(&mut vec![0; DIM]).unwrap_err();
    assert!(error.is_bad_input() && error.to_string().starts_with("grid spacing is 9.31"), "{error}");
    let mut coarse = OnGrid::build(builder(&Recursion::Independent));
    assert!(coarse.next_points_into(&mut [0; 3]).unwrap_err().to_string().starts_with("output length is 3"));
    assert_eq!(coarse.step(), 0);
}

/// Tiles are computed, not listed: a shard of any size costs no memory for its tiles.
#[test]
fn a_stream_of_any_size_takes_no_more_memory_than_it_says() {
    let dim = 1_000_000_000_000_000;
    let start = |recursion: Recursion| NoiseStream::builder(recursion, STEPS, dim, 1.0).threads(1);
    let mut stream = start(Recursion::Independent).build(key()).unwrap();
    assert_eq!((stream.len(), stream.placement().bytes), (dim, 0));
    stream.seek(7).unwrap();
    assert!(stream.next_into(&mut [0.0; 3]).unwrap_err().to_string().starts_with("output length is 3"));
    let blt = Recursion::Blt { scale: vec![0.3], decay: vec![0.9] };
    assert_eq!(start(blt.clone()).memory_budget(1 << 20).build(key()).unwrap().placement().bytes, 0);
    let error = start(blt).memory_budget(u64::MAX).build(key()).unwrap_err().to_string();
    assert!(error.starts_with("memory is 4000000000000000 bytes but must be available"), "{error}");
}
