//! The progress of a search, in expected seconds of two cores: how much work is done, and how much is known.

use std::sync::{Mutex, MutexGuard, PoisonError};

use antinoise_mechanism::Class;
use antinoise_mechanism::design::StrategySpec;

use crate::verified::Progress;

/// Expected seconds for the noise of one candidate under balls-in-bins sampling, by Monte Carlo.
pub(super) const CERTIFICATE: f64 = 2.0;
/// Expected seconds for the noise of one candidate under b-min-sep sampling, by Monte Carlo.
pub(super) const B_MIN_SEP: f64 = 10.0;
/// Expected seconds for a design that closed forms or a few parameters describe.
const SHORT: f64 = 0.05;

/// The work of a search, which all threads report.
pub(super) struct Work<'a> {
    /// Seconds done, and seconds expected in all.
    seconds: Mutex<(f64, f64)>,
    report: &'a (dyn Fn(f64, f64) + Sync),
}

impl<'a> Work<'a> {
    pub(super) fn new(report: &'a (dyn Fn(f64, f64) + Sync)) -> Self {
        Self { seconds: Mutex::new((0.0, 0.0)), report }
    }

    /// Adds work to come.
    pub(super) fn expect(&self, seconds: f64) {
        self.seconds().1 += seconds;
    }

    /// Counts expected work as done.
    pub(super) fn did(&self, seconds: f64) {
        self.seconds().0 += seconds;
        self.show(0.0);
    }

    /// Returns the result of a simulation that is expected to take `seconds`. `simulate` gets a function to
    /// call with the number of samples drawn so far, and of all.
    pub(super) fn sampled<R>(&self, seconds: f64, simulate: impl FnOnce(&Progress<'_>) -> R) -> R {
        let drawn = |drawn: usize, of: usize| self.show(seconds * drawn as f64 / of.max(1) as f64);
        let result = simulate(&drawn);
        self.did(seconds);
        result
    }

    /// Reports the work done, with the seconds of a simulation under way, and the work expected.
    fn show(&self, under_way: f64) {
        let seconds = *self.seconds();
        (self.report)(seconds.0 + under_way, seconds.1);
    }

    fn seconds(&self) -> MutexGuard<'_, (f64, f64)> {
        self.seconds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Expected seconds for the design of `spec` over this number of steps, to a factor of a few: n^3 for dense
/// strategies, n^2 x bands for free entries and scaled columns, n x bands for Toeplitz bands, n x buffers for
/// weights that vary by step.
pub(super) fn expected(spec: StrategySpec, steps: usize) -> f64 {
    let n = (steps / spec.restarts.unwrap_or(1).max(1)) as f64;
    let bands = spec.bands.unwrap_or(1) as f64;
    SHORT
        + match spec.class {
            Class::Dense => 15.0 * (n / 1280.0).powi(3),
            Class::Banded | Class::BandedInverse => 10.0 * n * n * bands / 2e8,
            Class::BandedToeplitz if spec.column_normalize => 10.0 * n * n * bands / 2e8,
            Class::BandedToeplitz => 30.0 * n * bands / 4e8,
            Class::VaryingBlt => 4.0 * n * spec.order.unwrap_or(4) as f64 / 8192.0,
            _ => 0.0,
        }
}

#[cfg(test)]
mod tests {
    use crate::{Length, Request, Setting, choose_with};

    #[test]
    fn the_work_that_is_expected_is_done_and_none_is_taken_back() {
        let mut reports = 0;
        for setting in [Setting::Poisson, Setting::Cyclic, Setting::Single, Setting::BMinSep] {
            for specs in
                [None, Some(["identity", "banded-toeplitz:2"].map(|spec| spec.parse().unwrap()).to_vec())]
            {
                let epochs = if setting == Setting::Single { 1 } else { 3 };
                let mut request = Request::new(160, 20, Length::Epochs(epochs), setting);
                request.specs = specs;
                let seen = std::sync::Mutex::new(vec![(0.0, 0.0)]);
                choose_with(&request, &|done, expected| seen.lock().unwrap().push((done, expected))).unwrap();
                let seen = seen.into_inner().unwrap();
                assert!(seen.iter().all(|(done, expected)| *done <= expected * (1.0 + 1e-9)), "{setting:?}");
                let last = seen.last().unwrap();
                assert!(last.0 > 0.0 && (last.0 - last.1).abs() < 1e-9, "{setting:?}: {last:?}");
                reports += seen.len();
            }
        }
        assert!(reports > 30, "{reports}");
    }
}
