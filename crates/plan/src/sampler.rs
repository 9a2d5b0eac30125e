//! Which examples take part in which step.
//!
//! A sampler draws no randomness of its own: it takes a secure generator from its caller, so that a run can
//! be resumed with the same batches.

use antinoise_input::InvalidParameter;
use rand_core::Rng;
use serde::{Deserialize, Serialize};

/// How batches are formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Sampler {
    /// Examples are shuffled once and cut into groups, whose sizes differ by at most one; step t takes group
    /// t mod groups.
    Cyclic {
        /// Steps in an epoch.
        groups: usize,
    },
    /// Block-cyclic Poisson: examples are shuffled once and cut into groups as for cyclic batches; step t takes
    /// every example of group t mod groups with probability groups batch_size / examples, on its own. One group
    /// is plain Poisson sampling.
    Poisson {
        /// Steps between two turns of an example.
        #[serde(default = "one")]
        groups: usize,
    },
    /// Balls in bins: every example is put in one of so many bins, uniformly and on its own, once for the whole run; step t
    /// takes bin t mod bins.
    BallsInBins {
        /// Steps between two turns of an example.
        bins: usize,
    },
    /// b-min-sep: an example that took part sits out the next `min_sep - 1` steps; else it joins with probability B / (N - (min_sep - 1) B),
    /// on its own. At first it sits out exactly j steps with probability B/N for each j below `min_sep` but 0, so that every batch has B
    /// examples on average.
    BMinSep {
        /// b: steps between two turns of an example, at least.
        min_sep: usize,
    },
    /// Examples are taken once, in their given order: step t takes those from t batch_size up to
    /// (t + 1) batch_size. Nothing is random.
    Stream,
    /// Units arrive by themselves; whoever runs the plan keeps the schema.
    External,
}

fn one() -> usize {
    1
}

impl Sampler {
    /// The expected number of examples in a batch, which the noisy sum is divided by.
    ///
    /// ```
    /// use antinoise_plan::Sampler;
    /// assert_eq!(Sampler::Cyclic { groups: 4 }.expected_batch_size(10, 2), 2.5);
    /// assert_eq!(Sampler::Poisson { groups: 3 }.expected_batch_size(10, 2), 2.0);
    /// ```
    pub fn expected_batch_size(self, examples: usize, batch_size: usize) -> f64 {
        match self {
            Self::Cyclic { groups } | Self::BallsInBins { bins: groups } => examples as f64 / groups as f64,
            Self::Poisson { .. } | Self::BMinSep { .. } | Self::Stream | Self::External => batch_size as f64,
        }
    }
}

/// The batches of one run, each made on its own: step t needs none of those before.
pub struct Batches {
    /// A permutation of 0..examples, cut into groups; of a stream, the numbers of all that it takes.
    order: Vec<usize>,
    /// Where each group begins in the order, and where the last one ends.
    starts: Vec<usize>,
    /// Whether groups take turns again and again; those of a stream have one.
    repeats: bool,
    /// An example of the group whose turn it is takes part when 64 random bits are below this.
    threshold: u128,
}

/// Above all 64 random bits.
const ALL: u128 = 1 << 64;

impl Batches {
    /// The batches of `sampler` in `steps` steps over `examples` examples, of expected size `batch_size` where it draws them, in an
    /// order drawn from `rng`.
    ///
    /// # Errors
    /// For [`Sampler::External`], whose batches are not formed here.
    pub fn new(
        sampler: Sampler,
        examples: usize,
        batch_size: usize,
        steps: usize,
        rng: &mut impl Rng,
    ) -> Result<Self, InvalidParameter> {
        match sampler {
            Sampler::Cyclic { groups } => Ok(Self::cyclic(examples, groups, rng)),
            Sampler::Poisson { groups } => Ok(Self::poisson(examples, batch_size, groups, rng)),
            Sampler::BallsInBins { bins } => Ok(Self::balls_in_bins(examples, bins, rng)),
            Sampler::BMinSep { min_sep } => Ok(Self::b_min_sep(examples, batch_size, min_sep, steps, rng)),
            Sampler::Stream => Ok(Self::stream(examples, batch_size)),
            Sampler::External => Err(InvalidParameter::new(
                "sampler of the plan",
                "external",
                "one that forms batches: whoever runs this plan forms its batches",
            )),
        }
    }

    /// Cyclic batches over `examples` examples in an order drawn from `rng` (Fisher-Yates).
    pub fn cyclic(examples: usize, groups: usize, rng: &mut impl Rng) -> Self {
        let mut order: Vec<usize> = (0..examples).collect();
        for last in (1..examples).rev() {
            order.swap(last, below(last as u64 + 1, rng) as usize);
        }
        let start = |g: usize| (g as u128 * examples as u128 / groups as u128) as usize;
        Self { order, starts: (0..=groups).map(start).collect(), repeats: true, threshold: ALL }
    }

    /// Balls in bins: every example in a bin drawn from `rng`.
    pub fn balls_in_bins(examples: usize, bins: usize, rng: &mut impl Rng) -> Self {
        let of: Vec<usize> = (0..examples).map(|_| below(bins as u64, rng) as usize).collect();
        let mut starts = vec![0; bins + 1];
        of.iter().for_each(|&bin| starts[bin + 1] += 1);
        (0..bins).for_each(|bin| starts[bin + 1] += starts[bin]);
        let (mut next, mut order) = (starts.clone(), vec![0; examples]);
        for (example, &bin) in of.iter().enumerate() {
            order[next[bin]] = example;
            next[bin] += 1;
        }
        Self { order, starts, repeats: true, threshold: ALL }
    }

    /// b-min-sep batches of expected size `batch_size` in `steps` steps, drawn from `rng` example by example: all of them at once, so that
    /// any step can be had. `min_sep` batches may have no more examples than there are.
    pub fn b_min_sep(
        examples: usize,
        batch_size: usize,
        min_sep: usize,
        steps: usize,
        rng: &mut impl Rng,
    ) -> Self {
        let free = examples - (min_sep - 1) * batch_size;
        let joins = Coin::new(batch_size, free);
        let mut of_step = vec![Vec::new(); steps];
        for example in 0..examples {
            // Each B of N numbers are a wait of one step more; the rest are none.
            let wait = 1 + below(examples as u64, rng) as usize / batch_size;
            let mut next = if wait < min_sep { wait } else { 0 };
            while next < steps {
                if joins.toss(rng) {
                    of_step[next].push(example);
                    next += min_sep;
                } else {
                    next += 1;
                }
            }
        }
        let starts = std::iter::once(0).chain(of_step.iter().scan(0, |end, batch| {
            *end += batch.len();
            Some(*end)
        }));
        Self { starts: starts.collect(), order: of_step.concat(), repeats: false, threshold: ALL }
    }

    /// Batches of `batch_size` examples in their given order, as many as there are; empty ones from there on.
    pub fn stream(examples: usize, batch_size: usize) -> Self {
        let steps = examples / batch_size;
        let starts = (0..=steps).map(|step| step * batch_size).collect();
        Self { order: (0..steps * batch_size).collect(), starts, repeats: false, threshold: ALL }
    }

    /// Block-cyclic Poisson batches of expected size `batch_size` from `groups` groups, drawn from `rng`.
    pub fn poisson(examples: usize, batch_size: usize, groups: usize, rng: &mut impl Rng) -> Self {
        let mut batches = Self::cyclic(examples, groups, rng);
        for ends in batches.starts.windows(2) {
            batches.order[ends[0]..ends[1]].sort_unstable();
        }
        // Rounded down: a smaller probability is never less private.
        let threshold = ((batch_size as u128 * groups as u128) << 64) / examples as u128;
        Self { threshold: threshold.min(ALL), ..batches }
    }

    /// The examples of step `step`, in increasing order but for cyclic batches; `rng` is the step's own generator,
    /// which others than Poisson batches do not use.
    ///
    /// ```
    /// use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
    /// use antinoise_plan::Batches;
    /// let (key, run) = (Key::from_seed_insecure(1), RunId::default());
    /// let mut rng = |purpose, step| KeyedRng::new(&key, &run, purpose, step);
    /// let batches = Batches::cyclic(10, 3, &mut rng(Purpose::DataOrder, 0));
    /// let epoch: Vec<usize> = (0..3).flat_map(|t| batches.at(t, &mut rng(Purpose::BatchSampling, t as u64))).collect();
    /// assert_eq!(epoch.len(), 10); // everyone once
    /// ```
    pub fn at(&self, step: usize, rng: &mut impl Rng) -> Vec<usize> {
        let group = self.turn(step);
        if self.threshold == ALL {
            return group.to_vec();
        }
        group.iter().copied().filter(|_| u128::from(rng.next_u64()) < self.threshold).collect()
    }

    /// The examples whose turn step `step` is: those of its batch, or from which its batch is drawn.
    pub fn turn(&self, step: usize) -> &[usize] {
        let groups = self.starts.len() - 1;
        if !self.repeats && step >= groups {
            return &[];
        }
        let group = step % groups;
        &self.order[self.starts[group]..self.starts[group + 1]]
    }
}

/// A coin with exactly this chance: 64 random bits decide unless they are those of the chance itself.
struct Coin {
    first_bits: u64,
    rest: u64,
    of: u64,
    is_certain: bool,
}

impl Coin {
    /// Of `chances` in `of`.
    fn new(chances: usize, of: usize) -> Self {
        let (bits, of) = ((chances as u128) << 64, of as u128);
        let is_certain = bits / of >= ALL;
        Self { first_bits: (bits / of) as u64, rest: (bits % of) as u64, of: of as u64, is_certain }
    }

    fn toss(&self, rng: &mut impl Rng) -> bool {
        if self.is_certain {
            return true;
        }
        match rng.next_u64().cmp(&self.first_bits) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => below(self.of, rng) < self.rest,
            std::cmp::Ordering::Greater => false,
        }
    }
}

/// A uniform number below `bound`, without bias: what falls in the last, incomplete stretch is drawn again.
fn below(bound: u64, rng: &mut impl Rng) -> u64 {
    let limit = u64::MAX - u64::MAX % bound;
    loop {
        let draw = rng.next_u64();
        if draw < limit {
            return draw % bound;
        }
    }
}

#[cfg(test)]
mod tests {
    use antinoise_noise::{Key, KeyedRng, Purpose, RunId};

    use super::*;

    fn rng(seed: u64, step: u64) -> KeyedRng {
        KeyedRng::new(&Key::from_seed_insecure(seed), &RunId::default(), Purpose::BatchSampling, step)
    }

    #[test]
    fn cyclic_batches_keep_their_schema() {
        let batches = Batches::cyclic(103, 10, &mut rng(3, 0));
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
            counts[Batches::cyclic(4, 2, &mut rng(seed, 0)).order[0]] += 1.0;
        }
        let chi_squared: f64 = counts.iter().map(|c| (c - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi_squared < 30.7, "{counts:?}");
    }

    #[test]
    fn poisson_batches_have_the_binomial_mean_and_variance() {
        // 2000 batches of Binomial(400 / groups, groups / 8): mean 50, variance 50 (1 - groups / 8). Six standard
        // errors: false alarm 1e-8.
        for groups in [1, 4] {
            let batches = Batches::poisson(400, 50, groups, &mut rng(6, 0));
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
        let batches = Batches::poisson(101, 5, 4, &mut rng(8, 0));
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
        // Where two examples are: chi-squared with 8 degrees of freedom over 4500 keys, false alarm 1e-6 (threshold 42.7).
        let mut counts = [0f64; 9];
        for seed in 0..4500 {
            let batches = Batches::balls_in_bins(101, 3, &mut rng(seed, 0));
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
            let make =
                |seed| Batches::new(Sampler::Stream, examples, batch_size, 9, &mut rng(seed, 0)).unwrap();
            let all = |batches: &Batches| -> Vec<usize> {
                (0..2 * examples).flat_map(|t| batches.at(t, &mut rng(t as u64, 0))).collect()
            };
            let whole = examples / batch_size;
            assert_eq!(all(&make(1)), (0..whole * batch_size).collect::<Vec<_>>());
            assert_eq!(all(&make(1)), all(&make(2)));
        }
    }

    /// Every step's batch is B of N on average, from the first one on; turns are b apart at least, and gaps geometric: chi-squared
    /// with 8 degrees of freedom, false alarm 1e-6 (threshold 42.7).
    #[test]
    fn b_min_sep_batches_keep_their_distance_and_their_mean_size() {
        let (examples, batch_size, min_sep, steps) = (300, 30, 4, 24);
        let runs = 400;
        let (mut sizes, mut gaps) = (vec![0.0; steps], [0f64; 9]);
        for seed in 0..runs {
            let batches = Batches::b_min_sep(examples, batch_size, min_sep, steps, &mut rng(seed, 0));
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
            // Whoever did not come again within the time.
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

    /// With as many steps between turns as there are batches, everyone comes exactly that often.
    #[test]
    fn b_min_sep_batches_of_everyone_are_bins_and_those_that_no_one_sits_out_are_poisson() {
        let bins = Batches::b_min_sep(120, 30, 4, 12, &mut rng(2, 0));
        for t in 0..8 {
            assert_eq!(bins.turn(t), bins.turn(t + 4));
        }
        let first: usize = (0..4).map(|t| bins.turn(t).len()).sum();
        assert_eq!(first, 120);
        let poisson = Batches::b_min_sep(100, 20, 1, 500, &mut rng(3, 0));
        let both =
            (1..500).filter(|&t| poisson.turn(t).contains(&7) && poisson.turn(t - 1).contains(&7)).count();
        // 499 chances of 0.04, six deviations: false alarm 1e-6 for such dependence.
        assert!((1..60).contains(&both), "{both}");
        assert!(Batches::b_min_sep(7, 7, 1, 3, &mut rng(4, 0)).turn(2).len() == 7);
    }

    #[test]
    fn probability_one_takes_everyone() {
        assert_eq!(
            Batches::poisson(9, 9, 1, &mut rng(1, 0)).at(0, &mut rng(1, 0)),
            (0..9).collect::<Vec<_>>()
        );
        let thirds = Batches::poisson(9, 3, 3, &mut rng(1, 0));
        let mut all: Vec<usize> = (0..3).flat_map(|t| thirds.at(t, &mut rng(1, t as u64))).collect();
        all.sort_unstable();
        assert_eq!(all, (0..9).collect::<Vec<_>>());
    }
}
