//! How likely an example is to take part.

use antinoise_input::{InvalidParameter, at_least, positive};

use crate::Result;

/// b-min-sep sampling of B of N examples a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chances {
    /// b.
    pub min_sep: usize,
    /// B/N: that an example takes part in a step, and that it at first sits out exactly so many steps as a number below b says.
    pub rate: f64,
    /// That it at first sits out none.
    pub free: f64,
    /// p: that it joins a step where it does not sit out.
    pub join: f64,
    /// 1 - p.
    pub stay: f64,
}

impl Chances {
    pub fn new(min_sep: usize, batch_size: f64, examples: usize) -> Result<Self> {
        at_least("min_sep", min_sep, 1)?;
        let examples = at_least("examples", examples, 1)? as f64;
        let batch_size = positive("batch_size", batch_size)?;
        let left = examples - min_sep as f64 * batch_size;
        let fits = left >= 0.0;
        if !fits {
            let most = format!(
                "at most examples / batch_size = {}: so many batches share no example",
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
