//! The loss by number of bands, with and without amplification by sampling.

use antinoise_mechanism::design::StrategySpec;
use antinoise_mechanism::{Class, Participation};
use rayon::prelude::*;

use super::candidate::{Candidate, design};
use super::trials::powers_up_to;
use crate::{Request, Result, Schedule, Setting};

/// The candidates with one number of bands for one privacy target.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Bands {
    /// Number of bands of C.
    pub bands: usize,
    /// C under block-cyclic Poisson sampling, with as many groups as bands. Its relative loss is relative to
    /// one band, which is DP-SGD with Poisson sampling.
    pub amplified: Candidate,
    /// C under cyclic batches, without amplification.
    pub unamplified: Candidate,
}

/// Largest default number of bands.
const MAX_BANDS: usize = 4096;

/// The default numbers of bands: powers of 2 up to the number of disjoint batches, and that number itself; at
/// most 4096.
///
/// # Errors
/// When the request is not valid.
///
/// ```
/// use antinoise_plan::{Length, Request, Setting, default_bands};
/// let request = Request::new(1000, 100, Length::Epochs(4), Setting::Poisson);
/// assert_eq!(default_bands(&request)?, [1, 2, 4, 8, 10]);
/// # Ok::<(), antinoise_plan::Error>(())
/// ```
pub fn default_bands(request: &Request) -> Result<Vec<usize>> {
    let steps = request.schedule()?.steps;
    let most = (request.examples / request.batch_size).min(steps).min(MAX_BANDS);
    Ok(powers_up_to(1, most).collect())
}

/// Designs a banded Toeplitz strategy for each number in `bands`, and calibrates it for each request with and
/// without amplification.
///
/// Returns one list for each request. `requests` share everything but batch size and privacy target; their
/// setting is ignored. A number of bands whose groups would be smaller than a batch is omitted.
///
/// # Errors
/// When a request is not valid, or a number of bands is 0 or above the steps.
///
/// # Source
/// The choice of b in (amplified) banded matrix factorization: Choquette-Choo et al. (2023); McKenna (2024),
/// figures 1 and 2.
///
/// ```
/// use antinoise_plan::{Length, Request, Setting, sweep_bands};
/// let mut request = Request::new(1000, 50, Length::Epochs(4), Setting::Poisson);
/// request.epsilon = 4.0;
/// let found = sweep_bands(&[request], &[1, 4, 20])?;
/// // A number of bands between those of DP-SGD and of the multi-epoch mechanism is better than both.
/// assert!(found[0][1].amplified.rms_loss < found[0][0].amplified.rms_loss);
/// assert!(found[0][1].amplified.rms_loss < found[0][2].amplified.rms_loss);
/// # Ok::<(), antinoise_plan::Error>(())
/// ```
pub fn sweep_bands(requests: &[Request], bands: &[usize]) -> Result<Vec<Vec<Bands>>> {
    let Some(first) = requests.first() else { return Ok(Vec::new()) };
    let steps = first.schedule()?.steps;
    let designs = bands
        .par_iter()
        .map(|&bands| {
            let spec = StrategySpec { bands: Some(bands), ..StrategySpec::new(Class::BandedToeplitz) };
            Ok((spec, design(first, steps, Participation::Single, spec)?))
        })
        .collect::<Result<Vec<_>>>()?;
    requests
        .iter()
        .map(|request| {
            let fitting = bands.iter().zip(&designs).filter(|(bands, _)| fits(request, **bands));
            let mut rows = fitting
                .collect::<Vec<_>>()
                .into_par_iter()
                .map(|(&bands, (spec, design))| {
                    let calibrated =
                        |schedule: Schedule| Candidate::calibrated(request, schedule, *spec, design.clone());
                    let poisson = request.sampled(&request.under(Setting::Poisson).schedule()?, bands)?;
                    let cyclic = request.under(Setting::Cyclic).schedule()?;
                    Ok(Bands { bands, amplified: calibrated(poisson)?, unamplified: calibrated(cyclic)? })
                })
                .collect::<Result<Vec<_>>>()?;
            compare(request, &mut rows)?;
            Ok(rows)
        })
        .collect()
}

fn fits(request: &Request, bands: usize) -> bool {
    bands.saturating_mul(request.batch_size) <= request.examples
}

fn compare(request: &Request, rows: &mut [Bands]) -> Result<()> {
    let identity = StrategySpec::new(Class::Identity);
    let schedule = request.under(Setting::Poisson).schedule()?;
    let independent = Candidate::with_poisson(request, &schedule, identity)?;
    for row in rows {
        for candidate in [&mut row.amplified, &mut row.unamplified] {
            candidate.relative_to(&independent, request.objective);
        }
    }
    Ok(())
}

/// Candidates of other mechanisms for the same request under cyclic batches, without amplification.
///
/// # Errors
/// As [`crate::choose`].
pub fn unamplified_candidates(request: &Request, specs: &[StrategySpec]) -> Result<Vec<Candidate>> {
    let request = request.under(Setting::Cyclic);
    let schedule = request.schedule()?;
    specs.par_iter().map(|&spec| Candidate::designed(&request, schedule.clone(), spec)).collect()
}

#[cfg(test)]
mod tests {
    use antinoise_accounting::{calibrate, gaussian_noise_multiplier_upper};

    use super::*;
    use crate::Length;

    #[test]
    fn one_band_is_dp_sgd_and_all_bands_are_the_multi_epoch_mechanism() {
        let mut request = Request::new(1200, 60, Length::Epochs(5), Setting::Poisson);
        (request.epsilon, request.delta) = (2.0, 1e-6);
        let rows = sweep_bands(&[request.clone()], &[1, 5, 20]).unwrap().remove(0);
        let dp_sgd = calibrate::noise_multiplier_upper(0.05, 100, 2.0, 1e-6).unwrap();
        // Independent noise: the RMS, over all t, of the standard deviation of a sum of t noises, divided by
        // the batch size.
        let rms = (101.0f64 / 2.0).sqrt() * dp_sgd / 60.0;
        assert!((rows[0].amplified.rms_loss / rms - 1.0).abs() < 3e-4);
        let gdp = gaussian_noise_multiplier_upper(2.0, 1e-6).unwrap();
        assert!((rows[2].unamplified.noise_multiplier - gdp).abs() < 1e-12);
        let (all, none) = (&rows[2].amplified, &rows[2].unamplified);
        assert!((all.rms_loss / none.rms_loss - 1.0).abs() < 1e-9, "{} {}", all.rms_loss, none.rms_loss);
        // Sampling only helps.
        assert!(rows.iter().all(|row| row.amplified.rms_loss <= row.unamplified.rms_loss * (1.0 + 1e-9)));
    }

    #[test]
    fn bands_that_leave_groups_smaller_than_a_batch_are_omitted() {
        let request = Request::new(100, 30, Length::Steps(12), Setting::Poisson);
        let rows = sweep_bands(&[request], &[1, 3, 4]).unwrap().remove(0);
        assert_eq!(rows.iter().map(|row| row.bands).collect::<Vec<_>>(), [1, 3]);
    }
}
