//! Batches: the examples that take part in each step.
//!
//! They are drawn by a secure random generator of the caller, so that a run can be resumed with the same
//! batches.

use antinoise_input::{InvalidParameter, at_least, between};
use rand_core::Rng;

use crate::Sampler;
use crate::sampler::start_of_group;

/// The batches of one run. The batch of a step does not depend on earlier steps.
pub struct Batches {
    /// The examples, group by group.
    order: Vec<usize>,
    /// The index in `order` at which each group begins, and that at which the last one ends.
    starts: Vec<usize>,
    /// Whether groups are used again and again in cyclic order, not only once.
    repeats: bool,
    /// An example of the step's group takes part if 64 random bits, as a number, are below this threshold.
    threshold: u128,
    /// The maximum size of a batch, if batches are cut.
    max_batch_size: Option<usize>,
}

/// The threshold for which every example takes part.
const ALL: u128 = 1 << 64;
/// Maximum number of examples of a run, and of entries in all batches that are drawn ahead.
const MAX_EXAMPLES: usize = 1 << 31;
/// Maximum number of steps whose batches are drawn ahead.
const MAX_STEPS: usize = 1 << 26;
const MEMORY_LIMIT: &str = "the memory limit";

impl Batches {
    /// Forms the batches of `sampler` in `steps` steps over `examples` examples, in an order drawn from
    /// `rng`. Sampled batches have the expected size `batch_size`.
    ///
    /// # Errors
    /// For [`Sampler::External`], whose batches are not formed here, and as the functions for the other
    /// samplers below.
    pub fn new(
        sampler: Sampler,
        examples: usize,
        batch_size: usize,
        steps: usize,
        rng: &mut impl Rng,
    ) -> Result<Self, InvalidParameter> {
        match sampler {
            Sampler::Cyclic { groups } => Self::cyclic(examples, groups, rng),
            Sampler::Shuffled { groups } => Self::shuffled(examples, groups, steps, rng),
            Sampler::Poisson { groups } => Self::poisson(examples, batch_size, groups, rng),
            Sampler::TruncatedPoisson { groups, max_batch_size } => {
                at_least("max_batch_size", max_batch_size, 1)?;
                let uncut = Self::poisson(examples, batch_size, groups, rng)?;
                Ok(Self { max_batch_size: Some(max_batch_size), ..uncut })
            }
            Sampler::BallsInBins { bins } => Self::balls_in_bins(examples, bins, rng),
            Sampler::BMinSep { min_sep } => Self::b_min_sep(examples, batch_size, min_sep, steps, rng),
            Sampler::Stream => Self::stream(examples, batch_size),
            Sampler::External => Err(InvalidParameter::new(
                "sampler of the plan",
                sampler.name(),
                "one that forms batches: the user of this plan forms its batches",
            )),
        }
    }

    /// Cyclic batches over `examples` examples in an order drawn from `rng` (Fisher-Yates).
    ///
    /// # Errors
    /// When there are no examples or more than 2^31, no groups, or more groups than examples.
    pub fn cyclic(examples: usize, groups: usize, rng: &mut impl Rng) -> Result<Self, InvalidParameter> {
        let examples = between("examples", examples, 1, MAX_EXAMPLES, MEMORY_LIMIT)?;
        between("groups", groups, 1, examples, "examples")?;
        let start = |g: usize| start_of_group(g, groups, examples);
        Ok(Self {
            order: shuffled(examples, rng),
            starts: (0..=groups).map(start).collect(),
            repeats: true,
            threshold: ALL,
            max_batch_size: None,
        })
    }

    /// Batches in `steps` steps over `examples` examples, whose order is drawn from `rng` anew in every epoch
    /// of `groups` steps. All orders are drawn here.
    ///
    /// # Errors
    /// When there are no examples, no groups, no steps, more groups than examples, or more than 2^31 examples
    /// in all epochs together.
    pub fn shuffled(
        examples: usize,
        groups: usize,
        steps: usize,
        rng: &mut impl Rng,
    ) -> Result<Self, InvalidParameter> {
        let examples = between("examples", examples, 1, MAX_EXAMPLES, MEMORY_LIMIT)?;
        between("groups", groups, 1, examples, "examples")?;
        let most = (MAX_EXAMPLES / examples).saturating_mul(groups).min(MAX_STEPS);
        let epochs = between("steps", steps, 1, most, MEMORY_LIMIT)?.div_ceil(groups);
        let start = |step: usize| step / groups * examples + start_of_group(step % groups, groups, examples);
        Ok(Self {
            order: (0..epochs).flat_map(|_| shuffled(examples, rng)).collect(),
            starts: (0..=steps).map(start).collect(),
            repeats: false,
            threshold: ALL,
            max_batch_size: None,
        })
    }

    /// Balls in bins: the bin of every example is drawn from `rng`.
    ///
    /// # Errors
    /// When there are no examples or more than 2^31, no bins, or more bins than examples.
    pub fn balls_in_bins(examples: usize, bins: usize, rng: &mut impl Rng) -> Result<Self, InvalidParameter> {
        let examples = between("examples", examples, 1, MAX_EXAMPLES, MEMORY_LIMIT)?;
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
        Ok(Self { order, starts, repeats: true, threshold: ALL, max_batch_size: None })
    }

    /// b-min-sep batches of expected size `batch_size` in `steps` steps. All batches are drawn from `rng`
    /// here, example by example.
    ///
    /// # Errors
    /// When there are no examples or more than 2^31, `min_sep` batches exceed the number of examples, a
    /// number is 0, or there are more than 2^26 steps or more than 2^31 expected examples in all batches.
    pub fn b_min_sep(
        examples: usize,
        batch_size: usize,
        min_sep: usize,
        steps: usize,
        rng: &mut impl Rng,
    ) -> Result<Self, InvalidParameter> {
        let examples = between("examples", examples, 1, MAX_EXAMPLES, MEMORY_LIMIT)?;
        between("batch_size", batch_size, 1, examples, "examples")?;
        between("min_sep", min_sep, 1, examples / batch_size, "examples / batch_size")?;
        between("steps", steps, 1, MAX_STEPS.min(MAX_EXAMPLES / batch_size), MEMORY_LIMIT)?;
        let joins = Coin::new(batch_size, examples - (min_sep - 1) * batch_size);
        let mut of_step = vec![Vec::new(); steps];
        for example in 0..examples {
            // Each delay from 1 to min_sep - 1 has probability B / N; otherwise there is no delay.
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
        Ok(Self {
            starts: starts.collect(),
            order: of_step.concat(),
            repeats: false,
            threshold: ALL,
            max_batch_size: None,
        })
    }

    /// Batches of `batch_size` examples in their given order, and empty batches after the last full one.
    ///
    /// # Errors
    /// When there are no examples or more than 2^31, or the batch size is 0 or more than the examples.
    pub fn stream(examples: usize, batch_size: usize) -> Result<Self, InvalidParameter> {
        let examples = between("examples", examples, 1, MAX_EXAMPLES, MEMORY_LIMIT)?;
        let steps = examples / between("batch_size", batch_size, 1, examples, "examples")?;
        let starts = (0..=steps).map(|step| step * batch_size).collect();
        Ok(Self {
            order: (0..steps * batch_size).collect(),
            starts,
            repeats: false,
            threshold: ALL,
            max_batch_size: None,
        })
    }

    /// Block-cyclic Poisson batches of expected size `batch_size` from `groups` groups, drawn from `rng`.
    ///
    /// # Errors
    /// When there are no examples or more than 2^31, no groups, or a batch is empty or larger than a group.
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
        // The probability is rounded down, since a smaller one is never less private.
        let threshold = ((batch_size as u128 * groups as u128) << 64) / examples as u128;
        Ok(Self { threshold, ..batches })
    }

    /// The examples of the batch of step `step`, in increasing order except for batches of shuffled examples.
    /// `rng` is a generator for this step alone, which only Poisson batches use.
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
        let mut batch: Vec<usize> = match self.threshold {
            ALL => group.to_vec(),
            _ => group.iter().copied().filter(|_| u128::from(rng.next_u64()) < self.threshold).collect(),
        };
        if let Some(most) = self.max_batch_size.filter(|&most| most < batch.len()) {
            cut(&mut batch, most, rng);
        }
        batch
    }

    /// The group of step `step`: its batch, or the examples from which its Poisson batch is drawn.
    pub fn turn(&self, step: usize) -> &[usize] {
        let groups = self.starts.len() - 1;
        if !self.repeats && step >= groups {
            return &[];
        }
        let group = step % groups;
        &self.order[self.starts[group]..self.starts[group + 1]]
    }
}

/// The numbers below `examples` in an order drawn from `rng` (Fisher-Yates).
fn shuffled(examples: usize, rng: &mut impl Rng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..examples).collect();
    for last in (1..examples).rev() {
        order.swap(last, below(last as u64 + 1, rng) as usize);
    }
    order
}

/// Keeps `most` of `batch`, drawn uniformly at random, in increasing order.
fn cut(batch: &mut Vec<usize>, most: usize, rng: &mut impl Rng) {
    for place in 0..most {
        let left = (batch.len() - place) as u64;
        batch.swap(place, place + below(left, rng) as usize);
    }
    batch.truncate(most);
    batch.sort_unstable();
}

/// A coin with exactly the probability `chances / of`. 64 random bits decide a toss, unless they equal the
/// first 64 bits of the probability.
struct Coin {
    first_bits: u64,
    rest: u64,
    of: u64,
    is_certain: bool,
}

impl Coin {
    /// The coin of probability `chances / of`, for 1 <= `chances` <= `of`.
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

/// Returns a uniform random number below `bound`, by rejection sampling.
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
