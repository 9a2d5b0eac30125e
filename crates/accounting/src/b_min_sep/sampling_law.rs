//! Probabilities of participation under b-min-sep sampling.

use antinoise_input::{InvalidParameter, at_least, positive};

use crate::Result;

/// The probabilities of b-min-sep sampling, which takes B of N examples a step on average; after a
/// participation an example sits out b - 1 steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SamplingLaw {
    /// b: the minimum number of steps from one participation of an example to the next.
    pub min_sep: usize,
    /// B/N: the probability of participation in a given step, and of each initial delay of 1, ..., b - 1
    /// steps.
    pub rate: f64,
    /// 1 - (b - 1) B/N: the probability of no initial delay.
    pub free: f64,
    /// p = B / (N - (b - 1) B): the probability that an example which does not sit out joins a step.
    pub join: f64,
    /// 1 - p: the probability that an example does not join a step.
    pub stay: f64,
}

impl SamplingLaw {
    pub fn new(min_sep: usize, batch_size: f64, examples: usize) -> Result<Self> {
        at_least("min_sep", min_sep, 1)?;
        let examples = at_least("examples", examples, 1)? as f64;
        let batch_size = positive("batch_size", batch_size)?;
        let left = examples - min_sep as f64 * batch_size;
        let fits = left >= 0.0;
        if !fits {
            let most = format!(
                "at most examples / batch_size = {}, the largest number of disjoint batches",
                examples / batch_size
            );
            return Err(InvalidParameter::new("min_sep", min_sep, most).into());
        }
        let free = left + batch_size;
        Ok(Self {
            min_sep,
            rate: batch_size / examples,
            free: free / examples,
            join: batch_size / free,
            stay: left / free,
        })
    }
}
