//! Balls in bins: what its accountant is asked for.

use antinoise_accounting::BallsInBins;
use antinoise_input::{InvalidParameter, between};
use antinoise_mechanism::Encoder;

use crate::Result;

/// Most bins, and most steps, whose C is written out. A claim of 120 bins takes 2.5 s on two idle cores, one of 256 bins four times
/// that; so does each reading of the plan.
const MOST_BINS: usize = 256;
const MOST_STEPS: usize = 4096;

/// Whether plans try so many bins.
pub(crate) fn is_affordable(bins: usize, steps: usize) -> bool {
    (2..=MOST_BINS.min(steps)).contains(&bins) && steps <= MOST_STEPS
}

/// C in so many bins with noise of standard deviation `noise_std`, in clip norms; its hypotheses are checked.
pub(crate) fn mechanism(encoder: &Encoder, bins: usize, noise_std: f64) -> Result<BallsInBins> {
    let steps = between("steps", encoder.steps(), 1, MOST_STEPS, "the most whose bins are accounted for")?;
    between("bins", bins, 1, MOST_BINS.min(steps), "the steps, and the most bins that are accounted for")?;
    let columns = lower_columns(encoder, "balls in bins need")?;
    Ok(BallsInBins::new(&columns, bins, noise_std)?)
}

/// The columns of C from the diagonal down, where it is lower triangular, as `needed` says who wants it.
pub(crate) fn lower_columns(encoder: &Encoder, needed: &str) -> Result<Vec<Vec<f64>>> {
    let (dense, steps) = (encoder.to_dense(), encoder.steps());
    let lower = |t: usize| {
        let mut column = dense.column(t).to_vec();
        let lower = column.split_off(t.min(column.len()));
        (column.iter().all(|&x| x == 0.0) && t + lower.len() == steps).then_some(lower)
    };
    (0..dense.ncols()).map(lower).collect::<Option<_>>().ok_or_else(|| {
        let must_be = format!("one with a square and lower-triangular C, which {needed}");
        InvalidParameter::new("strategy", "one whose C is not square or not lower triangular", must_be).into()
    })
}
