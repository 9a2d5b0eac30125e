//! The input of Monte Carlo accountants: strategies under balls-in-bins and b-min-sep sampling, within limits
//! on the time of a computation.

use antinoise_accounting::MonteCarloMechanism;
use antinoise_input::{InvalidParameter, between};
use antinoise_mechanism::Encoder;

use crate::{Result, Sampler};

/// Maximum numbers of bins and of steps under balls-in-bins sampling. Each time a plan is made or read, its
/// claim is computed: 2.5 s on two idle cores for 120 bins, and four times that for 256 bins.
const MAX_BINS: usize = 256;
const MAX_BINS_STEPS: usize = 4096;
/// Maximum number of steps under b-min-sep sampling. Computing a claim over 480 steps takes a few seconds on
/// two cores.
const MAX_MIN_SEP_STEPS: usize = 2048;

/// Whether balls-in-bins sampling is within the limits.
pub(crate) fn is_affordable(bins: usize, steps: usize) -> bool {
    (2..=MAX_BINS.min(steps)).contains(&bins) && steps <= MAX_BINS_STEPS
}

/// The input of the Monte Carlo accountant: C, noise of standard deviation `noise_std` in clip norms, and
/// `sampler`, which forms batches of `batch_size` out of `examples` examples. The conditions of its theorem
/// are checked. `None` for samplers without a Monte Carlo accountant.
pub(crate) fn mechanism(
    encoder: &Encoder,
    sampler: Sampler,
    (batch_size, examples): (usize, usize),
    noise_std: f64,
) -> Result<Option<MonteCarloMechanism>> {
    let steps = encoder.steps();
    Ok(match sampler {
        Sampler::BallsInBins { bins } => {
            between("steps", steps, 1, MAX_BINS_STEPS, "the limit of the accountant for balls in bins")?;
            let limit = "the steps, and the limit of the accountant for balls in bins";
            between("bins", bins, 1, MAX_BINS.min(steps), limit)?;
            let columns = lower_columns(encoder, "balls in bins need")?;
            Some(MonteCarloMechanism::balls_in_bins(&columns, bins, noise_std)?)
        }
        Sampler::BMinSep { min_sep } => {
            between("steps", steps, 1, MAX_MIN_SEP_STEPS, "the limit of the accountant for b-min-sep")?;
            let bands = encoder.bandwidth();
            if bands > min_sep {
                let must_be = format!(
                    "at most {min_sep}, the sampler's min_sep: the columns of an example's steps must not overlap"
                );
                return Err(InvalidParameter::new("bands of the strategy", bands, must_be).into());
            }
            let columns = lower_columns(encoder, "b-min-sep needs")?;
            Some(MonteCarloMechanism::b_min_sep(&columns, min_sep, batch_size as f64, examples, noise_std)?)
        }
        Sampler::Cyclic { .. }
        | Sampler::Shuffled { .. }
        | Sampler::Poisson { .. }
        | Sampler::TruncatedPoisson { .. }
        | Sampler::Stream
        | Sampler::External => None,
    })
}

/// The columns of a square lower-triangular C, each from the diagonal down. `needed` is the end of the error
/// message for another C.
fn lower_columns(encoder: &Encoder, needed: &str) -> Result<Vec<Vec<f64>>> {
    let (dense, steps) = (encoder.to_dense(), encoder.steps());
    let lower = |t: usize| {
        let mut column = dense.column(t).to_vec();
        let lower = column.split_off(t.min(column.len()));
        (column.iter().all(|&x| x == 0.0) && t + lower.len() == steps).then_some(lower)
    };
    (0..dense.ncols()).map(lower).collect::<Option<_>>().ok_or_else(|| {
        let must_be = format!("one with a square lower-triangular C, which {needed}");
        InvalidParameter::new("strategy", "one with another C", must_be).into()
    })
}
