//! Laws of every stream: in every way to run it, it is the recursion of its own seed noise.

mod common;

use antinoise_input::BadInput;
use antinoise_mechanism::Recursion;
use antinoise_noise::{Cipher, Error, Grid, Key, NoiseStream, Shard, State, StreamBuilder};
use common::{STEPS, cases, seed_noise};

/// More tiles than steps of a window, so that tiles are due at different steps.
const DIM: usize = 14_000;
const NOISE_STD: f64 = 1.5;

fn builder(recursion: &Recursion) -> StreamBuilder {
    NoiseStream::builder(recursion.clone(), STEPS, DIM, NOISE_STD).threads(1)
}

fn rows(mut stream: NoiseStream) -> Vec<Vec<f32>> {
    (stream.step()..stream.steps())
        .map(|_| {
            let mut row = vec![f32::NAN; stream.len()];
            stream.next_into(&mut row).unwrap();
            row
        })
        .collect()
}

fn key() -> Key {
    Key::from_seed_insecure(5)
}

#[test]
fn every_stream_is_its_recursion_of_its_seed_noise() {
    for (name, recursion) in cases() {
        for cipher in [Cipher::Aes256Ctr, Cipher::ChaCha20] {
            let builder = builder(&recursion).cipher(cipher);
            let noise = rows(builder.clone().build(key()).unwrap());
            let z = seed_noise(builder, key(), recursion.seeds(STEPS), DIM);
            for j in (0..DIM).step_by(37) {
                let column: Vec<f64> = z.iter().map(|z| f64::from(z[j])).collect();
                for (t, exact) in recursion.apply(STEPS, &column).iter().enumerate() {
                    let error = (f64::from(noise[t][j]) - NOISE_STD * exact).abs();
                    assert!(error < 4e-6, "{name}: step {t}, coordinate {j} is off by {error:e}");
                }
            }
        }
    }
}

#[test]
fn threads_shards_and_memory_change_no_bit() {
    let cuts = [0, 1, 33, 1000, 1024, 1025, 2047, DIM as u64];
    for (name, recursion) in cases() {
        let whole = rows(builder(&recursion).build(key()).unwrap());
        assert_eq!(rows(builder(&recursion).threads(2).build(key()).unwrap()), whole, "{name}: two threads");
        assert_eq!(rows(builder(&recursion).threads(5).build(key()).unwrap()), whole, "{name}: five threads");
        for budget in [0, 4 * DIM as u64, 3 * 4 * DIM as u64] {
            let stream = builder(&recursion).memory_budget(budget).build(key()).unwrap();
            let placement = stream.placement();
            assert!(placement.bytes <= budget, "{name}: {placement}");
            assert_eq!(rows(stream), whole, "{name}: {placement}");
        }
        for cut in cuts.windows(2) {
            let shard = Shard::of_range(cut[0]..cut[1]);
            let part = rows(builder(&recursion).shard(shard).build(key()).unwrap());
            for (part, whole) in part.iter().zip(&whole) {
                assert_eq!(part[..], whole[cut[0] as usize..cut[1] as usize], "{name}: shard {cut:?}");
            }
        }
    }
}

#[test]
fn a_shard_of_several_ranges_and_padding_is_their_concatenation() {
    let (_, recursion) = &cases()[7];
    let whole = rows(builder(recursion).build(key()).unwrap());
    let shard =
        Shard::of_range(2000..2100).and_padding(1500).and_range(0..1).and_range(5..5).and_range(7..1500);
    let stream = builder(recursion).shard(shard).threads(2).build(key()).unwrap();
    assert_eq!(stream.len(), 100 + 1500 + 1 + 1493);
    for (part, whole) in rows(stream).iter().zip(&whole) {
        let expected = [&whole[2000..2100], &[0.0; 1500], &whole[0..1], &whole[7..1500]].concat();
        assert_eq!(part, &expected);
    }
}

/// The noise of a step hides one sum. To generate it again for another sum takes a name that nobody types by
/// mistake: for streams of either mode, resumed or not.
#[test]
fn noise_that_was_handed_out_is_not_made_again_but_under_a_name_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("noise.safetensors");
    let (sum, other) = (vec![0.25; DIM], vec![-1.5; DIM]);
    let refused = |stream: &mut NoiseStream, step: usize, least: usize| {
        let at = stream.step();
        let error = stream.seek(step).unwrap_err();
        let wanted =
            format!("step is {step} but must be at least {least}: the noise of earlier steps was handed out");
        assert!(error.is_bad_input() && error.to_string().starts_with(&wanted), "{error}");
        assert!(error.to_string().contains("seek_and_reuse_noise_unprotected") && stream.step() == at);
    };
    let mut modes = 0;
    for grid in [None, Some(Grid::for_clip_norm(100.0, DIM, 1e-3).unwrap())] {
        for (name, recursion) in cases() {
            let build = || builder(&recursion).grid(grid).build(key()).unwrap();
            let mut out = vec![0.0; DIM];
            let mut stream = build();
            // A stream that has handed out nothing may go anywhere.
            for step in [4, 0, 9, 2] {
                stream.seek(step).unwrap();
            }
            stream.add_to_sum(&sum, &mut out).unwrap();
            let first = out.clone();
            (0..=2).for_each(|step| refused(&mut stream, step, 3));
            stream.seek(3).unwrap();
            stream.seek(5).unwrap();
            stream.seek(3).unwrap();
            // A noisy sum that is refused is none: its step is still to come, and no other one.
            let refuses = |_| Err(Error::Exhausted { steps: 0 });
            assert!(stream.add_to_sum_slices_if(&[&other], &mut [&mut out], refuses).is_err());
            let mut in_place = other.clone();
            assert!(stream.add_to_sum_in_place_if(&mut [&mut in_place], refuses).is_err());
            in_place[1] = f64::NAN;
            assert!(stream.add_to_sum_in_place_if(&mut [&mut in_place], |_| Ok::<(), Error>(())).is_err());
            assert_eq!(in_place, vec![0.0; DIM]);
            stream.seek(3).unwrap();
            stream.next_into(&mut out).unwrap();
            refused(&mut stream, 3, 4);
            stream.save(&path).unwrap();
            let mut resumed = builder(&recursion).grid(grid).resume(&path).unwrap();
            (0..4).for_each(|step| refused(&mut resumed, step, 4));
            resumed.seek(7).unwrap();
            resumed.seek(4).unwrap();
            // The name says that nobody sees the earlier noisy sums.
            stream.seek_and_reuse_noise_unprotected(2).unwrap();
            stream.add_to_sum(&sum, &mut out).unwrap();
            assert_eq!(out, first, "{name}");
            refused(&mut stream, 2, 3);
            stream.seek(3).unwrap();
            let error = stream.seek_and_reuse_noise_unprotected(STEPS + 1).unwrap_err();
            assert!(error.to_string().starts_with("step is 14"), "{error}");
            modes += 1;
        }
    }
    assert_eq!(modes, 2 * cases().len());
}

#[test]
fn seeking_changes_no_bit() {
    for (name, recursion) in cases() {
        let whole = rows(builder(&recursion).build(key()).unwrap());
        for budget in [0, u64::MAX] {
            let mut stream = builder(&recursion).memory_budget(budget).build(key()).unwrap();
            let mut row = vec![0.0; DIM];
            for step in [7, 3, 3, 4, 12, 0, 5, 8, 9, 11, 2, 10] {
                stream.seek_and_reuse_noise_unprotected(step).unwrap();
                stream.next_into(&mut row).unwrap();
                assert_eq!(row, whole[step], "{name}: step {step} with {}", stream.placement());
            }
            stream.seek(STEPS).unwrap();
            assert!(matches!(stream.next_into(&mut row), Err(Error::Exhausted { steps: STEPS })));
        }
    }
}

#[test]
fn adding_is_the_fused_sum() {
    for (name, recursion) in cases() {
        let noise = rows(builder(&recursion).build(key()).unwrap());
        let mut stream = builder(&recursion).build(key()).unwrap();
        for (t, noise) in noise.iter().enumerate() {
            let mut gradient: Vec<f32> = (0..DIM).map(|j| j as f32).collect();
            stream.add_next_into(&mut gradient, 0.25).unwrap();
            for (j, (sum, noise)) in gradient.iter().zip(noise).enumerate() {
                let exact = j as f64 + 0.25 * f64::from(*noise);
                assert!((f64::from(*sum) - exact).abs() <= 1e-6 * (1.0 + exact.abs()), "{name}: step {t}");
            }
        }
    }
}

/// A gradient that is not finite is refused before its step is used, and later rows have the bits that they
/// would have had.
#[test]
fn noise_is_not_added_to_a_gradient_that_is_not_finite() {
    let mut refused = 0;
    for (name, recursion) in cases() {
        let build = || builder(&recursion).build(key()).unwrap();
        let (mut calm, mut stream) = (build(), build());
        for step in 0..STEPS {
            let mut gradient = vec![1.0; DIM];
            gradient[step * 97 % DIM] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY][step % 3];
            let message = stream.add_next_into(&mut gradient, 0.5).unwrap_err().to_string();
            assert!(message.starts_with("sum is not finite"), "{message}");
            assert!(stream.step() == step && gradient.iter().all(|&x| x == 0.0), "{name}");
            let (mut expected, mut found) = (vec![1.0; DIM], vec![1.0; DIM]);
            calm.add_next_into(&mut expected, 0.5).unwrap();
            stream.add_next_into(&mut found, 0.5).unwrap();
            assert_eq!(found, expected, "{name}: step {step}");
            refused += 1;
        }
    }
    assert!(refused >= 10 * STEPS, "{refused}");
}

#[test]
fn operations_of_one_mode_are_refused_by_name_in_the_other() {
    let builder = || builder(&Recursion::Independent);
    let mut plain = builder().build(key()).unwrap();
    let refused = plain.next_points_into(&mut vec![0; DIM]).unwrap_err();
    assert!(refused.is_bad_input() && refused.to_string().starts_with("stream is plain but"), "{refused}");
    let mut on_grid = builder().grid(Grid::new(2f64.powi(-20)).unwrap()).build(key()).unwrap();
    let mut gradient = vec![1.0; DIM];
    let refused = on_grid.add_next_into(&mut gradient, 1.0).unwrap_err();
    assert!(
        refused.is_bad_input() && refused.to_string().starts_with("stream is on a grid but"),
        "{refused}"
    );
    assert!(gradient.iter().all(|&x| x == 1.0), "the gradient was changed");
    assert_eq!((plain.step(), on_grid.step()), (0, 0));
}

#[test]
fn a_stream_stops_after_its_last_step_and_leaves_the_output_alone() {
    let mut stream = NoiseStream::new(Recursion::Independent, 2, 3, 1.0, key()).unwrap();
    let mut out = [0.0; 3];
    stream.next_into(&mut out).unwrap();
    stream.next_into(&mut out).unwrap();
    out = [7.0; 3];
    assert!(matches!(stream.next_into(&mut out), Err(Error::Exhausted { steps: 2 })));
    assert!(matches!(stream.add_next_into(&mut out, 1.0), Err(Error::Exhausted { steps: 2 })));
    assert_eq!((out, stream.step()), ([7.0; 3], 2));
}

#[test]
fn budgets_choose_the_placements_that_they_should() {
    let auto = Recursion::AutoRegressive { taps: vec![1.0, 0.5, 0.25, 0.1] };
    let place = |recursion: &Recursion, budget| {
        builder(recursion).memory_budget(budget).build(key()).unwrap().placement()
    };
    assert_eq!(place(&auto, u64::MAX).state, State::Stored);
    assert_eq!(place(&auto, 1000).state, State::Replayed);
    assert_eq!(place(&cases()[18].1, u64::MAX).state, State::Regenerated);
}

#[test]
fn bad_parameters_are_named() {
    let refused = |recursion: Recursion, steps, dim, noise_std| {
        NoiseStream::new(recursion, steps, dim, noise_std, key()).unwrap_err().to_string()
    };
    let independent = Recursion::Independent;
    for noise_std in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-39, 1e39] {
        assert!(refused(independent.clone(), 1, 1, noise_std).starts_with("noise_std is"));
    }
    assert!(refused(independent.clone(), 0, 1, 1.0).starts_with("steps is 0"));
    assert!(refused(independent.clone(), 1, 0, 1.0).starts_with("dim is 0"));
    assert!(refused(independent.clone(), 1, usize::MAX, 1.0).starts_with("dim is"));
    let taps = |taps: &[f64]| Recursion::AutoRegressive { taps: taps.to_vec() };
    assert!(refused(taps(&[]), 1, 1, 1.0).starts_with("taps is 0"));
    assert!(refused(taps(&[0.0, 1.0]), 2, 1, 1.0).starts_with("taps[0] is 0"));
    assert!(refused(taps(&[1.0, f64::NAN]), 2, 1, 1.0).starts_with("taps is NaN"));
    let blt = |scale: &[f64], decay: &[f64]| Recursion::Blt { scale: scale.to_vec(), decay: decay.to_vec() };
    assert!(refused(blt(&[1.0], &[]), 2, 1, 1.0).starts_with("scale is 1"));
    assert!(refused(blt(&[1.0], &[1.0]), 2, 1, 1.0).starts_with("decay is 1"));
    let rational = |gain: &[f64]| Recursion::Rational { gain: gain.to_vec(), feedback: vec![0.5] };
    assert!(refused(rational(&[]), 2, 1, 1.0).starts_with("gain is 0"));
    assert!(refused(rational(&[f64::INFINITY]), 2, 1, 1.0).starts_with("gain is inf"));
    let banded = |bands, rows: &[f64]| Recursion::Banded { bands, rows: rows.to_vec() };
    assert!(refused(banded(0, &[]), 1, 1, 1.0).starts_with("bands is 0"));
    assert!(refused(banded(2, &[1.0, 0.0]), 2, 1, 1.0).starts_with("rows is 1"));
    assert!(refused(Recursion::SeedCombination { rows: vec![] }, 1, 1, 1.0).starts_with("rows is 0"));
    let scaled = Recursion::Scaled { inner: Box::new(Recursion::Independent), factors: vec![1.0, 0.0] };
    assert!(refused(scaled.clone(), 2, 1, 1.0).starts_with("factors is 0"));
    assert!(refused(scaled, 3, 1, 1.0).starts_with("factors is 2"));
    let restarted = Recursion::Restarted { inner: Box::new(Recursion::Independent), period: 0 };
    assert!(refused(restarted, 3, 1, 1.0).starts_with("period is 0"));
    let shard = |shard| builder(&Recursion::Independent).shard(shard).build(key()).unwrap_err().to_string();
    assert!(shard(Shard::of_range(0..DIM as u64 + 1)).starts_with("shard is"));
    assert!(shard(Shard::of_range(0..9).and_range(8..10)).contains("do not overlap"));
    assert!(Shard::part(7, 7, 10).unwrap_err().to_string().starts_with("shard index is 7"));
    let mut stream = builder(&Recursion::Independent).build(key()).unwrap();
    assert!(stream.next_into(&mut [0.0; 3]).unwrap_err().to_string().starts_with("output length is 3"));
    assert!(stream.seek(STEPS + 1).unwrap_err().to_string().starts_with("step is 14"));
    assert!(builder(&Recursion::Independent).threads(0).build(key()).is_err());
}

/// Processes that make parts of one stream compare its description: a change of anything that determines the
/// noise, apart from key and run, changes it, and nothing else does.
#[test]
fn descriptions_differ_where_the_noise_does() {
    let (_, recursion) = cases().swap_remove(0);
    let of = |builder: StreamBuilder| builder.build(key()).unwrap().description();
    let described = of(builder(&recursion));
    let sharded = builder(&recursion).shard(Shard::of_range(3..7)).build(Key::from_seed_insecure(6)).unwrap();
    assert_eq!(sharded.description(), described);
    let mut others: Vec<_> =
        cases().into_iter().skip(1).map(|(_, recursion)| of(builder(&recursion))).collect();
    others.extend([
        of(builder(&recursion).cipher(Cipher::ChaCha20)),
        of(NoiseStream::builder(recursion.clone(), STEPS - 1, DIM, NOISE_STD)),
        of(NoiseStream::builder(recursion.clone(), STEPS, DIM + 1, NOISE_STD)),
        of(NoiseStream::builder(recursion.clone(), STEPS, DIM, 2.0 * NOISE_STD)),
    ]);
    let compared = others.len();
    others.push(described);
    others.sort_unstable();
    others.dedup();
    assert!(compared > 8 && others.len() == compared + 1, "{compared} {}", others.len());
}

#[test]
fn a_shard_is_empty_where_it_has_no_coordinate() {
    let (_, recursion) = cases().swap_remove(0);
    let of = |range| builder(&recursion).shard(Shard::of_range(range)).build(key()).unwrap();
    let (none, some) = (of(5..5), of(5..6));
    assert_eq!([(none.is_empty(), none.len()), (some.is_empty(), some.len())], [(true, 0), (false, 1)]);
}
