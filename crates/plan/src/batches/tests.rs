use std::convert::Infallible;

use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use rand_core::TryRng;

use super::*;

fn rng(seed: u64, step: u64) -> KeyedRng {
    KeyedRng::new(&Key::from_seed_insecure(seed), &RunId::default(), Purpose::BatchSampling, step)
}

#[test]
fn cyclic_batches_keep_their_schema() {
    let batches = Batches::cyclic(103, 10, &mut rng(3, 0)).unwrap();
    let all: Vec<Vec<usize>> = (0..30).map(|t| batches.at(t, &mut rng(0, 0))).collect();
    for example in 0..103 {
        let turns: Vec<usize> = (0..30).filter(|&t| all[t].contains(&example)).collect();
        assert_eq!(turns.len(), 3);
        assert!(turns.windows(2).all(|pair| pair[1] - pair[0] == 10), "exactly b apart");
    }
    assert!(all.iter().all(|batch| batch.len() == 10 || batch.len() == 11));
}

#[test]
fn orders_differ_with_the_key_and_are_uniform() {
    // The first place goes to each of 4 examples with probability 1/4: chi-squared with 3 degrees of
    // freedom over 4000 seeds, false alarm 1e-6 (threshold 30.7).
    let mut counts = [0f64; 4];
    for seed in 0..4000 {
        counts[Batches::cyclic(4, 2, &mut rng(seed, 0)).unwrap().order[0]] += 1.0;
    }
    let chi_squared: f64 = counts.iter().map(|c| (c - 1000.0).powi(2) / 1000.0).sum();
    assert!(chi_squared < 30.7, "{counts:?}");
}

#[test]
fn poisson_batches_have_the_binomial_mean_and_variance() {
    // 2000 batches of Binomial(400 / groups, groups / 8): mean 50, variance 50 (1 - groups / 8). Six standard
    // errors: false alarm 1e-8.
    for groups in [1, 4] {
        let batches = Batches::poisson(400, 50, groups, &mut rng(6, 0)).unwrap();
        let sizes: Vec<f64> =
            (0..2000).map(|t| batches.at(t as usize, &mut rng(5, t)).len() as f64).collect();
        let mean = sizes.iter().sum::<f64>() / 2000.0;
        let variance = sizes.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1999.0;
        let expected = 50.0 * (1.0 - groups as f64 / 8.0);
        assert!((mean - 50.0).abs() < 6.0 * (expected / 2000.0).sqrt(), "{mean}");
        assert!((variance - expected).abs() < 6.0 * expected * (2.0f64 / 2000.0).sqrt(), "{variance}");
    }
}

#[test]
fn block_cyclic_batches_keep_their_groups() {
    let batches = Batches::poisson(101, 5, 4, &mut rng(8, 0)).unwrap();
    let mut group_of = [None; 101];
    for t in 0..400 {
        for example in batches.at(t, &mut rng(9, t as u64)) {
            assert_eq!(*group_of[example].get_or_insert(t % 4), t % 4, "example {example} at step {t}");
        }
    }
    assert!(group_of.iter().all(Option::is_some), "everyone's turn comes");
}

#[test]
fn bins_are_uniform_independent_and_fixed_for_the_run() {
    let of = |batches: &Batches, from: usize, bins: usize| -> Vec<usize> {
        let mut of = vec![usize::MAX; 101];
        for t in from..from + bins {
            let batch = batches.at(t, &mut rng(t as u64, 0));
            assert!(batch.is_sorted());
            for example in batch {
                assert_eq!(of[example], usize::MAX, "one bin each");
                of[example] = t % bins;
            }
        }
        of
    };
    // Where two examples are: chi-squared with 8 degrees of freedom over 4500 keys, false alarm 1e-6
    // (threshold 42.7).
    let mut counts = [0f64; 9];
    for seed in 0..4500 {
        let batches = Batches::balls_in_bins(101, 3, &mut rng(seed, 0)).unwrap();
        let found = of(&batches, 0, 3);
        assert!(found.iter().all(|&bin| bin < 3), "everyone has a bin");
        if seed % 100 == 0 {
            assert_eq!(found, of(&batches, 3000, 3), "the same in every round");
        }
        counts[3 * found[0] + found[100]] += 1.0;
    }
    let chi_squared: f64 = counts.iter().map(|c| (c - 500.0).powi(2) / 500.0).sum();
    assert!(chi_squared < 42.7, "{counts:?}");
}

#[test]
fn a_stream_is_read_once_in_its_order_whatever_the_key() {
    for (examples, batch_size) in [(103, 10), (7, 7), (9, 2), (5, 1)] {
        let make = |seed| Batches::new(Sampler::Stream, examples, batch_size, 9, &mut rng(seed, 0)).unwrap();
        let all = |batches: &Batches| -> Vec<usize> {
            (0..2 * examples).flat_map(|t| batches.at(t, &mut rng(t as u64, 0))).collect()
        };
        let whole = examples / batch_size;
        assert_eq!(all(&make(1)), (0..whole * batch_size).collect::<Vec<_>>());
        assert_eq!(all(&make(1)), all(&make(2)));
    }
}

/// Every step's batch is B of N on average, from the first one on; turns are b apart at least, and gaps
/// geometric: chi-squared with 8 degrees of freedom, false alarm 1e-6 (threshold 42.7).
#[test]
fn b_min_sep_batches_keep_their_distance_and_their_mean_size() {
    let (examples, batch_size, min_sep, steps) = (300, 30, 4, 24);
    let runs = 400;
    let (mut sizes, mut gaps) = (vec![0.0; steps], [0f64; 9]);
    for seed in 0..runs {
        let batches = Batches::b_min_sep(examples, batch_size, min_sep, steps, &mut rng(seed, 0)).unwrap();
        let mut last = vec![None; examples];
        for (t, size) in sizes.iter_mut().enumerate() {
            let batch = batches.at(t, &mut rng(1, t as u64));
            assert!(batch.is_sorted());
            *size += batch.len() as f64;
            for example in batch {
                if let Some(before) = last[example].replace(t) {
                    assert!(t - before >= min_sep, "{example}: {before} and {t}");
                    // Those that had time for any of these gaps.
                    if before + min_sep + 8 < steps {
                        gaps[(t - before - min_sep).min(8)] += 1.0;
                    }
                }
            }
        }
        // Examples without another participation within the run.
        for before in last.into_iter().flatten().filter(|before| before + min_sep + 8 < steps) {
            let _: usize = before;
            gaps[8] += 1.0;
        }
    }
    let deviation = (runs as f64 * 30.0).sqrt();
    for (t, size) in sizes.iter().enumerate() {
        assert!((size - runs as f64 * 30.0).abs() < 6.0 * deviation, "step {t}: {size}");
    }
    let (p, all): (f64, f64) = (30.0 / (300.0 - 90.0), gaps.iter().sum());
    let chance = |gap: usize| if gap < 8 { p * (1.0 - p).powi(gap as i32) } else { (1.0 - p).powi(8) };
    let term = |(gap, count): (usize, &f64)| (count - all * chance(gap)).powi(2) / (all * chance(gap));
    let chi_squared: f64 = gaps.iter().enumerate().map(term).sum();
    assert!(chi_squared < 42.7, "{chi_squared}: {gaps:?}");
}

/// If the minimum separation is the number of batches in an epoch, each example takes part exactly once per
/// epoch, as in bins. With a minimum separation of 1 the samples are Poisson.
#[test]
fn b_min_sep_batches_of_everyone_are_bins_and_those_that_no_one_sits_out_are_poisson() {
    let bins = Batches::b_min_sep(120, 30, 4, 12, &mut rng(2, 0)).unwrap();
    for t in 0..8 {
        assert_eq!(bins.turn(t), bins.turn(t + 4));
    }
    let first: usize = (0..4).map(|t| bins.turn(t).len()).sum();
    assert_eq!(first, 120);
    let poisson = Batches::b_min_sep(100, 20, 1, 500, &mut rng(3, 0)).unwrap();
    let both = (1..500).filter(|&t| poisson.turn(t).contains(&7) && poisson.turn(t - 1).contains(&7)).count();
    // 499 chances of 0.04, six deviations: false alarm 1e-6 for such dependence.
    assert!((1..60).contains(&both), "{both}");
    assert!(Batches::b_min_sep(7, 7, 1, 3, &mut rng(4, 0)).unwrap().turn(2).len() == 7);
}

#[test]
fn probability_one_takes_everyone() {
    assert_eq!(
        Batches::poisson(9, 9, 1, &mut rng(1, 0)).unwrap().at(0, &mut rng(1, 0)),
        (0..9).collect::<Vec<_>>()
    );
    let thirds = Batches::poisson(9, 3, 3, &mut rng(1, 0)).unwrap();
    let mut all: Vec<usize> = (0..3).flat_map(|t| thirds.at(t, &mut rng(1, t as u64))).collect();
    all.sort_unstable();
    assert_eq!(all, (0..9).collect::<Vec<_>>());
}

const EVERY_KIND: [Sampler; 7] = [
    Sampler::Cyclic { groups: 7 },
    Sampler::Poisson { groups: 3 },
    Sampler::TruncatedPoisson { groups: 3, max_batch_size: 17 },
    Sampler::BallsInBins { bins: 4 },
    Sampler::BMinSep { min_sep: 3 },
    Sampler::Stream,
    Sampler::External,
];

#[test]
fn the_name_of_a_sampler_is_that_of_files() {
    for sampler in EVERY_KIND {
        assert_eq!(toml::Value::try_from(sampler).unwrap()["kind"].as_str(), Some(sampler.name()));
    }
}

#[test]
fn batch_sizes_follow_their_stated_law() {
    let (examples, batch_size, steps, runs) = (50, 5, 9, 400);
    for sampler in EVERY_KIND {
        let Some((n, p)) = sampler.batch_size_law(1, examples, batch_size) else {
            assert_eq!(sampler, Sampler::External);
            continue;
        };
        let sizes: Vec<usize> = (0..runs)
            .map(|seed| {
                let made = Batches::new(sampler, examples, batch_size, steps, &mut rng(seed, 0)).unwrap();
                made.at(1, &mut rng(seed, 1)).len()
            })
            .collect();
        let (mean, variance) = (n as f64 * p, n as f64 * p * (1.0 - p));
        let found = sizes.iter().sum::<usize>() as f64 / runs as f64;
        let square = sizes.iter().map(|&size| (size as f64 - mean).powi(2)).sum::<f64>() / runs as f64;
        assert!((found - mean).abs() <= 5.0 * (variance / runs as f64).sqrt(), "{sampler:?}: {found} {mean}");
        // Five standard deviations of the estimate of a normal's variance.
        assert!((square - variance).abs() <= 0.36 * variance, "{sampler:?}: {square} {variance}");
    }
}

/// Words that were given, one after another.
struct Words(Vec<u64>);

impl TryRng for Words {
    type Error = Infallible;

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.remove(0))
    }

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.try_next_u64().map(|word| word as u32)
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        out.chunks_mut(8)
            .for_each(|part| part.copy_from_slice(&self.0.remove(0).to_le_bytes()[..part.len()]));
        Ok(())
    }
}

/// For a third, 0.0101... in binary: a word below its first 64 bits is heads, and a word equal to them leaves
/// a toss of a third.
#[test]
fn a_coin_is_exact_beyond_its_first_bits() {
    let (coin, own) = (Coin::new(1, 3), u64::MAX / 3);
    let toss = |words: &[u64]| coin.toss(&mut Words(words.to_vec()));
    assert!(toss(&[0]) && toss(&[own - 1]) && !toss(&[own + 1]) && !toss(&[u64::MAX]));
    assert_eq!([0, 1, 2].map(|rest| toss(&[own, rest])), [true, false, false]);
    assert!(Coin::new(3, 3).toss(&mut Words(vec![])));
}
