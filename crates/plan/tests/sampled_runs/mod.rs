//! The laws of samplers by their definitions, and how far a million runs are from them.

use std::convert::Infallible;

use antinoise_noise::Purpose;
use antinoise_plan::Sampler;
use rand_core::{Rng, TryRng};
use rayon::prelude::*;

/// Steps of each run: two rounds of three groups, or room for three turns.
pub const STEPS: usize = 6;
const PATHS: usize = 1 << STEPS;
const RUNS: u64 = 1_000_000;

/// The batches of a run.
pub type Draw = [Vec<usize>; STEPS];

/// SplitMix64 from a run, purpose and step: no cipher, whose keys would take most of the time of a million
/// runs.
pub struct Seeded(u64);

impl Seeded {
    pub fn new(run: u64, purpose: Purpose, step: usize) -> Self {
        let of_run = Self(run ^ (purpose as u64) << 56).next_u64();
        Self(Self(of_run.wrapping_add(step as u64)).next_u64())
    }
}

impl TryRng for Seeded {
    type Error = Infallible;

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        Ok(mixed ^ mixed >> 31)
    }

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.try_next_u64().map(|bits| bits as u32)
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        out.chunks_mut(8).for_each(|part| part.copy_from_slice(&self.next_u64().to_le_bytes()[..part.len()]));
        Ok(())
    }
}

/// What a sampler's definition says. An example's path is the set of its steps, as bits.
pub struct Law {
    pub sampler: Sampler,
    pub examples: usize,
    pub batch_size: usize,
    /// The probability that two different examples have these paths.
    paths: Vec<[f64; PATHS]>,
    /// The size of each step's batch is a sum of this number of coins of this probability.
    sizes: [(usize, f64); STEPS],
    /// The size at which batches are cut.
    most: usize,
}

impl Law {
    /// Groups of a uniform order, in turn; each example of a group takes part with probability 1, or groups B
    /// / N.
    pub fn grouped(sampler: Sampler, examples: usize, batch_size: usize) -> Self {
        let (groups, coin) = match sampler {
            Sampler::Cyclic { groups } => (groups, 1.0),
            Sampler::Poisson { groups } => (groups, (groups * batch_size) as f64 / examples as f64),
            other => panic!("{other:?} has no groups"),
        };
        let size = |g: usize| (g + 1) * examples / groups - g * examples / groups;
        let path = |g: usize, path: usize| -> f64 {
            let step = |t: usize| match (t % groups == g, path >> t & 1 == 1) {
                (true, takes_part) => {
                    if takes_part {
                        coin
                    } else {
                        1.0 - coin
                    }
                }
                (false, takes_part) => f64::from(!takes_part),
            };
            (0..STEPS).map(step).product()
        };
        let ways = (examples * (examples - 1)) as f64;
        let both = |a: usize, b: usize| -> f64 {
            let of = |g: usize, h: usize| {
                (size(g) * (size(h) - usize::from(g == h))) as f64 / ways * path(g, a) * path(h, b)
            };
            (0..groups).map(|g| (0..groups).map(|h| of(g, h)).sum::<f64>()).sum()
        };
        let sizes = std::array::from_fn(|t| (size(t % groups), coin));
        Self { sampler, examples, batch_size, paths: table(both), sizes, most: examples }
    }

    /// In every epoch of `groups` steps the groups of a uniform order, each in one step.
    pub fn shuffled(examples: usize, groups: usize) -> Self {
        let size = |g: usize| (g + 1) * examples / groups - g * examples / groups;
        let ways = (examples * (examples - 1)) as f64;
        let both = |a: usize, b: usize| -> f64 {
            let of_epoch = |start: usize| {
                let steps = |path: usize| (path >> start) & ((1 << groups) - 1);
                let (a, b) = (steps(a), steps(b));
                if !a.is_power_of_two() || !b.is_power_of_two() {
                    return 0.0;
                }
                let (g, h) = (a.trailing_zeros() as usize, b.trailing_zeros() as usize);
                (size(g) * (size(h) - usize::from(g == h))) as f64 / ways
            };
            (0..STEPS).step_by(groups).map(of_epoch).product()
        };
        let sizes = std::array::from_fn(|t| (size(t % groups), 1.0));
        let sampler = Sampler::Shuffled { groups };
        Self { sampler, examples, batch_size: 1, paths: table(both), sizes, most: examples }
    }

    /// As for Poisson batches of `groups` groups; of a batch of more than `most` examples, each set of that
    /// many is kept with the same probability. The number that is kept varies less than a sum of coins.
    pub fn truncated(groups: usize, examples: usize, batch_size: usize, most: usize) -> Self {
        let uncut = Self::grouped(Sampler::Poisson { groups }, examples, batch_size);
        let coin = uncut.sizes[0].1;
        let size = |g: usize| uncut.sizes[g].0;
        // The mean of f(k) over the number k of heads among `coins` coins.
        let mean = |coins: usize, f: &dyn Fn(usize) -> f64| -> f64 {
            let (mut sum, mut ways) = (0.0, 1.0);
            for k in 0..=coins {
                sum += ways * coin.powi(k as i32) * (1.0 - coin).powi((coins - k) as i32) * f(k);
                ways *= (coins - k) as f64 / (k + 1) as f64;
            }
            sum
        };
        let kept = |of: usize| (most as f64 / of as f64).min(1.0);
        let one = |g: usize| coin * mean(size(g) - 1, &|k| kept(k + 1));
        let two = |g: usize| {
            coin * coin
                * mean(size(g) - 2, &|k| {
                    let both = |of: usize| (most * (most - 1)) as f64 / (of * (of - 1)) as f64;
                    both(k + 2).min(1.0)
                })
        };
        let alone = |g: usize, path: usize| -> f64 {
            let step = |t: usize| match (t % groups == g, path >> t & 1 == 1) {
                (true, true) => one(g),
                (true, false) => 1.0 - one(g),
                (false, takes_part) => f64::from(!takes_part),
            };
            (0..STEPS).map(step).product()
        };
        let together = |g: usize, a: usize, b: usize| -> f64 {
            let step = |t: usize| match (t % groups == g, a >> t & 1 == 1, b >> t & 1 == 1) {
                (true, true, true) => two(g),
                (true, false, false) => 1.0 - 2.0 * one(g) + two(g),
                (true, ..) => one(g) - two(g),
                (false, a, b) => f64::from(!a && !b),
            };
            (0..STEPS).map(step).product()
        };
        let ways = (examples * (examples - 1)) as f64;
        let of = |g: usize, h: usize, a: usize, b: usize| match g == h {
            true => (size(g) * (size(g) - 1)) as f64 / ways * together(g, a, b),
            false => (size(g) * size(h)) as f64 / ways * alone(g, a) * alone(h, b),
        };
        let both = |a: usize, b: usize| -> f64 {
            (0..groups).map(|g| (0..groups).map(|h| of(g, h, a, b)).sum::<f64>()).sum()
        };
        let sampler = Sampler::TruncatedPoisson { groups, max_batch_size: most };
        Self { sampler, paths: table(both), most, ..uncut }
    }

    /// Each example in one bin for the run, uniformly and on its own.
    pub fn bins(examples: usize, bins: usize) -> Self {
        let turns = |bin: usize| (0..STEPS).filter(|t| t % bins == bin).fold(0, |path, t| path | 1 << t);
        let path = |path: usize| (0..bins).filter(|&bin| turns(bin) == path).count() as f64 / bins as f64;
        let sizes = [(examples, 1.0 / bins as f64); STEPS];
        let sampler = Sampler::BallsInBins { bins };
        let paths = table(|a, b| path(a) * path(b));
        Self { sampler, examples, batch_size: 1, paths, sizes, most: examples }
    }

    /// Each example waits 1 to b - 1 steps with probability B / N each, else none; then it joins with
    /// probability B / (N - (b - 1) B) at each step, and waits b - 1 steps whenever it has.
    pub fn b_min_sep(examples: usize, batch_size: usize, min_sep: usize) -> Self {
        let share = batch_size as f64 / examples as f64;
        let joins = share / (1.0 - (min_sep - 1) as f64 * share);
        let after = |wait: usize, path: usize| -> f64 {
            let (mut probability, mut free) = (1.0, wait);
            for t in 0..STEPS {
                let takes_part = path >> t & 1 == 1;
                probability *= match (t >= free, takes_part) {
                    (true, true) => joins,
                    (true, false) => 1.0 - joins,
                    (false, _) => f64::from(!takes_part),
                };
                free = if takes_part { t + min_sep } else { free };
            }
            probability
        };
        let path = |path: usize| -> f64 {
            let waits: f64 = (1..min_sep).map(|wait| share * after(wait, path)).sum();
            waits + (1.0 - (min_sep - 1) as f64 * share) * after(0, path)
        };
        let single: Vec<f64> = (0..PATHS).map(path).collect();
        let (sampler, sizes) = (Sampler::BMinSep { min_sep }, [(examples, share); STEPS]);
        let paths = table(|a, b| single[a] * single[b]);
        Self { sampler, examples, batch_size, paths, sizes, most: examples }
    }

    /// A run of b-min-sep in the words of its definition: first waits below `first`, then turns `wait` apart
    /// at least.
    pub fn by_definition(&self, rng: &mut impl Rng, first: usize, wait: usize) -> Draw {
        let Sampler::BMinSep { min_sep } = self.sampler else { panic!("{:?} does not wait", self.sampler) };
        let mut uniform = || rng.next_u64() as f64 / 2f64.powi(64);
        let share = self.batch_size as f64 / self.examples as f64;
        let joins = share / (1.0 - (min_sep - 1) as f64 * share);
        let mut draw: Draw = Default::default();
        for example in 0..self.examples {
            let drawn = 1 + (uniform() / share) as usize;
            let mut free = if drawn < first { drawn } else { 0 };
            for (t, batch) in draw.iter_mut().enumerate() {
                if t >= free && uniform() < joins {
                    batch.push(example);
                    free = t + wait;
                }
            }
        }
        draw
    }
}

fn table(both: impl Fn(usize, usize) -> f64) -> Vec<[f64; PATHS]> {
    (0..PATHS).map(|a| std::array::from_fn(|b| both(a, b))).collect()
}

/// How often each two examples had each two paths, and each step's batch each size, in [`RUNS`] runs.
pub struct Runs {
    examples: usize,
    /// At (i, j) with i < j, row by row; `PATHS` squared each.
    pairs: Vec<u32>,
    /// `examples` + 1 for each step.
    sizes: Vec<u32>,
}

/// What was tested, and what of it does not hold.
pub struct Found {
    pub tested: usize,
    pub departures: Vec<String>,
}

impl Runs {
    pub fn new(examples: usize, draw: impl Fn(u64) -> Draw + Sync) -> Self {
        const PART: u64 = RUNS / 4;
        let none = || Self {
            examples,
            pairs: vec![0; examples * (examples - 1) / 2 * PATHS * PATHS],
            sizes: vec![0; STEPS * (examples + 1)],
        };
        let part = |part: u64| {
            let mut runs = none();
            (part * PART..(part + 1) * PART).for_each(|run| runs.add(&draw(run)));
            runs
        };
        (0..RUNS / PART).into_par_iter().map(part).reduce(none, Self::sum)
    }

    fn add(&mut self, draw: &Draw) {
        let mut paths = vec![0; self.examples];
        for (t, batch) in draw.iter().enumerate() {
            self.sizes[t * (self.examples + 1) + batch.len()] += 1;
            for &example in batch {
                assert_eq!(paths[example] >> t & 1, 0, "an example is twice in one batch");
                paths[example] |= 1 << t;
            }
        }
        let pairs = (0..self.examples).flat_map(|i| (i + 1..self.examples).map(move |j| (i, j)));
        for ((i, j), counts) in pairs.zip(self.pairs.chunks_exact_mut(PATHS * PATHS)) {
            counts[paths[i] * PATHS + paths[j]] += 1;
        }
    }

    fn sum(mut self, other: Self) -> Self {
        self.pairs.iter_mut().zip(other.pairs).for_each(|(sum, count)| *sum += count);
        self.sizes.iter_mut().zip(other.sizes).for_each(|(sum, count)| *sum += count);
        self
    }

    /// Each example's path, each two of its steps, each two examples at each two steps, and the batches'
    /// sizes.
    pub fn against(&self, law: &Law, alpha: f64) -> Found {
        let mut figures = Vec::new();
        let counted = self.paths();
        let path: Vec<f64> = law.paths.iter().map(|row| row.iter().sum()).collect();
        let sum = |over: &[f64], bits: usize| -> f64 {
            (0..PATHS).filter(|path| path & bits == bits).map(|path| over[path]).sum()
        };
        for (i, counted) in counted.iter().enumerate() {
            for a in 0..PATHS {
                figures.push((format!("path {a:06b} of {i}"), counted[a], RUNS as f64, path[a]));
            }
            for (s, t) in steps() {
                let bits = 1 << s | 1 << t;
                let name = format!("{i} at steps {s} and {t}");
                figures.push((name, sum(counted, bits), RUNS as f64, sum(&path, bits)));
            }
        }
        let everyone: Vec<f64> = (0..PATHS).map(|a| counted.iter().map(|of| of[a]).sum()).collect();
        for (s, t) in steps() {
            // Anyone who can take part at step s does so on its own, and at step t too.
            let bits = 1 << s | 1 << t;
            let can = law.sizes[s].0 as f64;
            let probability = law.examples as f64 * sum(&path, bits) / can;
            figures.push((
                format!("all at steps {s} and {t}"),
                sum(&everyone, bits),
                RUNS as f64 * can,
                probability,
            ));
        }
        self.add_pairs(law, &mut figures);
        self.add_sizes(law, &mut figures);
        let least = alpha / figures.len() as f64;
        let tested = figures.len();
        let departures = figures.into_iter().filter(|(_, count, trials, p)| {
            let tail = tail(*count, *trials, *p);
            tail < least || tail.is_nan()
        });
        let said = |(name, count, trials, p): (String, f64, f64, f64)| {
            format!("{name}: {count} of {trials}, not {}", p * trials)
        };
        Found { tested, departures: departures.map(said).collect() }
    }

    /// How often each example had each path.
    fn paths(&self) -> Vec<Vec<f64>> {
        let mut counted = vec![vec![0.0; PATHS]; self.examples];
        for j in 1..self.examples {
            // Of the pair (0, j).
            let counts = &self.pairs[(j - 1) * PATHS * PATHS..][..PATHS * PATHS];
            for (at, &count) in counts.iter().enumerate() {
                counted[j][at % PATHS] += f64::from(count);
                counted[0][at / PATHS] += if j == 1 { f64::from(count) } else { 0.0 };
            }
        }
        counted
    }

    fn add_pairs(&self, law: &Law, figures: &mut Vec<(String, f64, f64, f64)>) {
        for (pair, counts) in self.pairs.chunks_exact(PATHS * PATHS).enumerate() {
            let (mut counted, mut wanted) = ([[0.0; STEPS]; STEPS], [[0.0; STEPS]; STEPS]);
            for (at, &count) in counts.iter().enumerate() {
                let (a, b) = (at / PATHS, at % PATHS);
                let probability = law.paths[a][b];
                if count == 0 && probability == 0.0 {
                    continue;
                }
                for s in (0..STEPS).filter(|s| a >> s & 1 == 1) {
                    for t in (0..STEPS).filter(|t| b >> t & 1 == 1) {
                        counted[s][t] += f64::from(count);
                        wanted[s][t] += probability;
                    }
                }
            }
            for s in 0..STEPS {
                for t in 0..STEPS {
                    let name = format!("pair {pair} at steps {s} and {t}");
                    figures.push((name, counted[s][t], RUNS as f64, wanted[s][t]));
                }
            }
        }
    }

    fn add_sizes(&self, law: &Law, figures: &mut Vec<(String, f64, f64, f64)>) {
        for (t, (&(coins, coin), counts)) in
            law.sizes.iter().zip(self.sizes.chunks_exact(self.examples + 1)).enumerate()
        {
            let (mut ways, mut fewer) = (1.0, 0.0);
            for (size, &count) in counts.iter().enumerate() {
                let rest = coins as i32 - size as i32;
                let uncut =
                    if rest < 0 { 0.0 } else { ways * coin.powi(size as i32) * (1.0 - coin).powi(rest) };
                let probability = match size.cmp(&law.most) {
                    std::cmp::Ordering::Less => uncut,
                    std::cmp::Ordering::Equal => 1.0 - fewer,
                    std::cmp::Ordering::Greater => 0.0,
                };
                fewer += uncut;
                figures.push((
                    format!("size {size} at step {t}"),
                    f64::from(count),
                    RUNS as f64,
                    probability,
                ));
                ways *= f64::from(rest.max(0)) / (size + 1) as f64;
            }
        }
    }
}

/// Each step with itself and those after it.
fn steps() -> impl Iterator<Item = (usize, usize)> {
    (0..STEPS).flat_map(|s| (s..STEPS).map(move |t| (s, t)))
}

/// An upper bound on the probability of a count as far from its mean, in n trials of probability p:
/// Chernoff's.
fn tail(count: f64, trials: f64, p: f64) -> f64 {
    let part = |share: f64, p: f64| if share > 0.0 { share * (share / p).ln() } else { 0.0 };
    let share = count / trials;
    // Probabilities that are 0 or 1 are so but for the rounding of their sums.
    let p = if p < 1e-12 {
        0.0
    } else if p > 1.0 - 1e-12 {
        1.0
    } else {
        p
    };
    if share == p { 1.0 } else { 2.0 * (-trials * (part(share, p) + part(1.0 - share, 1.0 - p))).exp() }
}
