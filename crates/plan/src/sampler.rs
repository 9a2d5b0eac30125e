//! Which examples take part in which step.
//!
//! A sampler draws no randomness of its own: it takes a secure generator from its caller, so that a run can
//! be resumed with the same batches.

use antinoise_input::{InvalidParameter, between};
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
/// Most examples of a run, and in all batches that are drawn ahead; most steps that are drawn ahead. Two of either can be added in 32 bits.
const MOST: usize = 1 << 31;
const MOST_STEPS: usize = 1 << 26;
const HELD: &str = "the most that are held in memory";

impl Batches {
    /// The batches of `sampler` in `steps` steps over `examples` examples, of expected size `batch_size` where it draws them, in an
    /// order drawn from `rng`.
    ///
    /// # Errors
    /// For [`Sampler::External`], whose batches are not formed here, and those of the sampler's own function.
    pub fn new(
        sampler: Sampler,
        examples: usize,
        batch_size: usize,
        steps: usize,
        rng: &mut impl Rng,
    ) -> Result<Self, InvalidParameter> {
        match sampler {
            Sampler::Cyclic { groups } => Self::cyclic(examples, groups, rng),
            Sampler::Poisson { groups } => Self::poisson(examples, batch_size, groups, rng),
            Sampler::BallsInBins { bins } => Self::balls_in_bins(examples, bins, rng),
            Sampler::BMinSep { min_sep } => Self::b_min_sep(examples, batch_size, min_sep, steps, rng),
            Sampler::Stream => Self::stream(examples, batch_size),
            Sampler::External => Err(InvalidParameter::new(
                "sampler of the plan",
                "external",
                "one that forms batches: whoever runs this plan forms its batches",
            )),
        }
    }

    /// Cyclic batches over `examples` examples in an order drawn from `rng` (Fisher-Yates).
    ///
    /// # Errors
    /// When there are no examples or more than 2^31, no groups, or more groups than examples.
    pub fn cyclic(examples: usize, groups: usize, rng: &mut impl Rng) -> Result<Self, InvalidParameter> {
        let examples = between("examples", examples, 1, MOST, HELD)?;
        between("groups", groups, 1, examples, "examples")?;
        let mut order: Vec<usize> = (0..examples).collect();
        for last in (1..examples).rev() {
            order.swap(last, below(last as u64 + 1, rng) as usize);
        }
        let start = |g: usize| (g as u128 * examples as u128 / groups as u128) as usize;
        Ok(Self { order, starts: (0..=groups).map(start).collect(), repeats: true, threshold: ALL })
    }

    /// Balls in bins: every example in a bin drawn from `rng`.
    ///
    /// # Errors
    /// When there are no examples or more than 2^31, no bins, or more bins than examples.
    pub fn balls_in_bins(examples: usize, bins: usize, rng: &mut impl Rng) -> Result<Self, InvalidParameter> {
        let examples = between("examples", examples, 1, MOST, HELD)?;
        between("bins", bins, 1, examples, "examples")?;
        let of: Vec<usize> = (0..examples).map(|_| below(bins as u64, rng) as usize).collect();
        let mut starts = vec![0; bins + 1];
        of.iter().for_each(|&bin| starts[bin + 1] += 1);
        (0..bins).for_each(|bin| starts[bin + 1] += starts[bin]);
        let (mut next, mut order) = (starts.clone(), vec![0; examples]);
        for (example, &bin) in of.iter().enumerate() {
            order[next[bin]] = example;
            next[bin] += 1;
        }
        Ok(Self { order, starts, repeats: true, threshold: ALL })
    }

    /// b-min-sep batches of expected size `batch_size` in `steps` steps, drawn from `rng` example by example: all of them at once, so that
    /// any step can be had.
    ///
    /// # Errors
    /// When there are no examples or more than 2^31, `min_sep` batches have more examples than there are, a number is 0, or there are
    /// more than 2^26 steps, or so many that their batches have more than 2^31 examples on average.
    pub fn b_min_sep(
        examples: usize,
        batch_size: usize,
        min_sep: usize,
        steps: usize,
        rng: &mut impl Rng,
    ) -> Result<Self, InvalidParameter> {
        let examples = between("examples", examples, 1, MOST, HELD)?;
        between("batch_size", batch_size, 1, examples, "examples")?;
        between("min_sep", min_sep, 1, examples / batch_size, "examples / batch_size")?;
        between(
            "steps",
            steps,
            1,
            MOST_STEPS.min(MOST / batch_size),
            "the most whose batches are held in memory",
        )?;
        let joins = Coin::new(batch_size, examples - (min_sep - 1) * batch_size);
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
        Ok(Self { starts: starts.collect(), order: of_step.concat(), repeats: false, threshold: ALL })
    }

    /// Batches of `batch_size` examples in their given order, as many as there are; empty ones from there on.
    ///
    /// # Errors
    /// When there are no examples or more than 2^31, or the batch size is 0 or more than the examples.
    pub fn stream(examples: usize, batch_size: usize) -> Result<Self, InvalidParameter> {
        let examples = between("examples", examples, 1, MOST, HELD)?;
        let steps = examples / between("batch_size", batch_size, 1, examples, "examples")?;
        let starts = (0..=steps).map(|step| step * batch_size).collect();
        Ok(Self { order: (0..steps * batch_size).collect(), starts, repeats: false, threshold: ALL })
    }

    /// Block-cyclic Poisson batches of expected size `batch_size` from `groups` groups, drawn from `rng`.
    ///
    /// # Errors
    /// When there are no examples or more than 2^31, no groups, or the batches of all groups have none or more examples than there are.
    pub fn poisson(
        examples: usize,
        batch_size: usize,
        groups: usize,
        rng: &mut impl Rng,
    ) -> Result<Self, InvalidParameter> {
        let mut batches = Self::cyclic(examples, groups, rng)?;
        between("batch_size", batch_size, 1, examples / groups, "examples / groups")?;
        for ends in batches.starts.windows(2) {
            batches.order[ends[0]..ends[1]].sort_unstable();
        }
        // Rounded down: a smaller probability is never less private.
        let threshold = ((batch_size as u128 * groups as u128) << 64) / examples as u128;
        Ok(Self { threshold, ..batches })
    }

    /// The examples of step `step`, in increasing order but for cyclic batches; `rng` is the step's own generator,
    /// which others than Poisson batches do not use.
    ///
    /// ```
    /// use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
    /// use antinoise_plan::Batches;
    /// let (key, run) = (Key::from_seed_insecure(1), RunId::default());
    /// let mut rng = |purpose, step| KeyedRng::new(&key, &run, purpose, step);
    /// let batches = Batches::cyclic(10, 3, &mut rng(Purpose::DataOrder, 0)).unwrap();
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
mod tests;
