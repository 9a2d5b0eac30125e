//! The sensitivity of any C where a unit takes part once in each epoch, at any step of it.
//!
//! sens^2 is at most the sum over pairs of epochs e, f of the largest |(C^T C)\[t, tau\]| with t in e and tau
//! in f, where e = f counts t = tau alone. It is exact if columns of different epochs are orthogonal, as with
//! a restart in each epoch: the worst step of each epoch can be chosen by itself.

use antinoise_input::{larger, largest};

use super::value::Sensitivity;
use crate::{Encoder, Participation, Result};

/// Maximum number of entries of C^T C that are read, and of pairs of epochs; beyond them the bound of min-sep
/// is taken.
const MAX_ENTRIES: usize = 1 << 28;
const MAX_PAIRS: usize = 1 << 24;

/// Maximum number of steps for which a BLT is compared by epochs; beyond it, its closed form under min-sep is
/// taken.
pub(crate) const MAX_BLT_STEPS_BY_EPOCHS: usize = 1 << 14;

/// Returns sens(C, Pi) for epochs of `epoch_steps` < n steps: the sum over pairs of epochs, or the
/// sensitivity under min-sep with as many participations and no separation, which `of` returns, if it is
/// smaller.
pub(super) fn of_epochs(
    encoder: &Encoder,
    epoch_steps: usize,
    of: impl FnOnce(&Participation) -> Result<Sensitivity>,
) -> Result<Sensitivity> {
    let n = encoder.steps();
    // Between restarts that are within epochs, or at their ends, no columns overlap.
    let lags = match encoder {
        Encoder::BlockDiagonal { period, .. } if epoch_steps.is_multiple_of(*period) => 1,
        _ => encoder.bandwidth().min(n),
    };
    let epochs = n.div_ceil(epoch_steps);
    let free = Participation::MinSep { min_sep: 1, max_participations: epochs };
    let among_epochs = pairs(encoder, epoch_steps, lags);
    if let Some((within, 0.0)) = among_epochs {
        return Sensitivity::exact(within.sqrt(), "orthogonal epochs, largest column of each");
    }
    let by_pairs = among_epochs.map(|(within, across)| {
        let source = "largest inner products of columns of each pair of epochs";
        Sensitivity::upper_bound((within + across).sqrt(), source)
    });
    match (by_pairs, of(&free)) {
        (Some(pairs), Ok(free)) if pairs.as_ref().is_ok_and(|pairs| pairs.value < free.value) => pairs,
        (Some(pairs), Err(_)) => pairs,
        (_, free) => Sensitivity::upper_bound(free?.value, "as many participations at any steps"),
    }
}

/// Returns the sums of the largest entries within epochs and across them, where entries of `lags` diagonals
/// and more are 0; `None` if there are too many entries.
fn pairs(encoder: &Encoder, epoch_steps: usize, lags: usize) -> Option<(f64, f64)> {
    let n = encoder.steps();
    let epochs = n.div_ceil(epoch_steps);
    // At most this many epochs apart are two steps that are a lag below `lags` apart.
    let reach = ((lags + epoch_steps - 2) / epoch_steps).min(epochs - 1);
    if n.saturating_mul(lags) > MAX_ENTRIES || epochs.saturating_mul(reach) > MAX_PAIRS {
        return None;
    }
    let diagonal = encoder.gram_lag(0);
    let within = diagonal.chunks(epoch_steps).map(|epoch| largest(epoch.iter().copied())).sum();
    let mut largest_of_pair = vec![0.0; epochs * reach];
    for lag in 1..lags {
        for (t, x) in encoder.gram_lag(lag).into_iter().enumerate() {
            let (one, other) = (t / epoch_steps, (t + lag) / epoch_steps);
            if other > one {
                let largest = &mut largest_of_pair[one * reach + other - one - 1];
                *largest = larger(*largest, x.abs());
            }
        }
    }
    Some((within, 2.0 * largest_of_pair.iter().sum::<f64>()))
}
