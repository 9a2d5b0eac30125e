//! b-min-sep sampling: what its accountant is asked for, and what is the same for all claims that are shown by sampling.

use antinoise_accounting::{BMinSep, BallsInBins};
use antinoise_input::{InvalidParameter, between};
use antinoise_mechanism::Encoder;

use crate::Result;
use crate::bins::lower_columns;

/// Most steps: a claim over 480 steps takes some seconds on two cores, and so does each reading of the plan.
const MOST_STEPS: usize = 2048;

/// C under sampling of `batch_size` of `examples`, with turns `min_sep` apart at least and noise of standard deviation `noise_std`, in clip
/// norms; its hypotheses are checked.
pub(crate) fn mechanism(
    encoder: &Encoder,
    min_sep: usize,
    (batch_size, examples): (usize, usize),
    noise_std: f64,
) -> Result<BMinSep> {
    between("steps", encoder.steps(), 1, MOST_STEPS, "the most that b-min-sep is accounted for")?;
    let bands = encoder.bandwidth();
    if bands > min_sep {
        let must_be = format!(
            "at most {min_sep}, the sampler's min_sep: with more, the columns of an example's turns overlap"
        );
        return Err(InvalidParameter::new("bands of the strategy", bands, must_be).into());
    }
    let columns = lower_columns(encoder, "b-min-sep needs")?;
    Ok(BMinSep::new(&columns, min_sep, batch_size as f64, examples, noise_std)?)
}

/// A mechanism whose claim is shown by sampling.
pub(crate) enum Simulated {
    Bins(BallsInBins),
    MinSep(BMinSep),
}

impl Simulated {
    /// The delta that is claimed at `epsilon`, not below the truth.
    pub fn claimed_delta_upper(&self, epsilon: f64) -> Result<f64> {
        Ok(match self {
            Self::Bins(bins) => bins.claimed_delta(epsilon)?.upper,
            Self::MinSep(min_sep) => min_sep.claimed_delta(epsilon)?.upper,
        })
    }

    /// delta at `epsilon`, not above the truth.
    pub fn claimed_delta_lower(&self, epsilon: f64) -> Result<f64> {
        Ok(match self {
            Self::Bins(bins) => bins.claimed_delta_lower(epsilon)?,
            Self::MinSep(min_sep) => min_sep.claimed_delta_lower(epsilon)?,
        })
    }
}
