//! The search for a mechanism's best learning rate.

use crate::results::{best_rate, by_rate, edge};

/// Number of standard deviations of a test accuracy by which a rate counts as far behind the best one.
const FAR: f64 = 4.0;

/// Learning rates, and the number of runs at each.
pub struct Search<'a> {
    /// Learning rates that are always run.
    pub rates: &'a [f64],
    /// Number of runs at the best learning rate.
    pub repeats: usize,
    /// Whether every learning rate is run `repeats` times, not only the best.
    pub repeats_all: bool,
    /// Number of examples on which an accuracy is measured.
    pub tests: usize,
}

impl Search<'_> {
    /// Calls `run`, which returns the accuracy of a repeat at a learning rate. Rates that are far behind
    /// after their first run are not repeated, unless `repeats_all`. While the best rate is the smallest or
    /// the largest, the search also tries a rate beyond it, if `further(rate, tried)` allows it. Everything
    /// follows from the accuracies, so a stopped search can be resumed.
    ///
    /// Returns the learning rate and accuracy of each run, and the number of rates.
    pub fn all<E>(
        &self,
        further: impl Fn(f64, usize) -> bool,
        mut run: impl FnMut(f64, usize) -> Result<f64, E>,
    ) -> Result<(Vec<(f64, f64)>, usize), E> {
        let all_repeats = if self.repeats_all { self.repeats } else { 1 };
        let mut rates = self.rates.to_vec();
        let (mut runs, mut begun) = (Vec::new(), 0);
        loop {
            for &rate in &rates[begun..] {
                for repeat in 0..all_repeats {
                    runs.push((rate, run(rate, repeat)?));
                }
            }
            begun = rates.len();
            while let Some(rate) = self.may_be_best(&runs) {
                for repeat in all_repeats..self.repeats {
                    runs.push((rate, run(rate, repeat)?));
                }
            }
            match edge(&runs) {
                Some(rate) if further(rate, begun) => rates.push(rate),
                _ => return Ok((runs, begun)),
            }
        }
    }

    /// A learning rate that was run fewer than `repeats` times and may be the best: the best so far, or one
    /// that is behind it by at most four standard deviations of an accuracy on this number of test examples.
    fn may_be_best(&self, runs: &[(f64, f64)]) -> Option<f64> {
        let rates = by_rate(runs);
        let best = rates.iter().find(|of| of.rate == best_rate(runs).0)?;
        if best.runs < self.repeats {
            return Some(best.rate);
        }
        let reach = FAR * (best.mean * (1.0 - best.mean) / self.tests as f64).sqrt();
        let open = rates.iter().filter(|of| of.runs < self.repeats && of.mean >= best.mean - reach);
        open.max_by(|x, y| x.mean.total_cmp(&y.mean)).map(|of| of.rate)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Runs of rates whose accuracies are given, one a repeat; none beyond them is tried.
    fn search(given: &[(f64, [f64; 3])], tests: usize) -> Vec<(f64, f64)> {
        let rates: Vec<f64> = given.iter().map(|of| of.0).collect();
        let run = |rate, repeat: usize| {
            let (_, accuracies) = given.iter().find(|of| of.0 == rate).unwrap();
            Ok::<_, Infallible>(accuracies[repeat])
        };
        let Ok((runs, _)) =
            Search { rates: &rates, repeats: 3, repeats_all: false, tests }.all(|_, _| false, run);
        runs
    }

    #[test]
    fn only_rates_that_may_be_best_are_repeated() {
        // Four deviations of 10,000 tests are 1.4 to 1.6 points here.
        let rates = [(0.1, [0.79; 3]), (0.2, [0.82, 0.84, 0.84]), (0.4, [0.83; 3]), (0.8, [0.81, 0.8, 0.8])];
        let runs = search(&rates, 10_000);
        assert_eq!(runs.iter().filter(|run| run.0 == 0.4).count(), 3);
        assert_eq!(runs.iter().filter(|run| run.0 == 0.1).count(), 1);
        assert_eq!(best_rate(&runs).0, 0.2);
        // Fewer tests tell less.
        assert_eq!(search(&rates, 300).len(), 12);
    }

    #[test]
    fn a_best_first_run_that_was_luck_gives_way_to_others() {
        let rates = [(0.1, [0.5; 3]), (0.2, [0.9, 0.1, 0.1]), (0.4, [0.6; 3])];
        let runs = search(&rates, 10_000);
        assert_eq!(runs.len(), 7);
        assert_eq!(best_rate(&runs).0, 0.4);
    }

    #[test]
    fn rates_are_tried_until_the_best_is_not_on_an_edge() {
        for peak in -6..=6 {
            let accuracy = |rate: f64| 1.0 / (1.0 + (rate.log2() - f64::from(peak)).abs());
            let run = |rate, _| Ok::<_, Infallible>(accuracy(rate));
            for most in [3, 4, 30] {
                let search =
                    Search { rates: &[0.5, 1.0, 2.0], repeats: 2, repeats_all: false, tests: 10_000 };
                let Ok((runs, tried)) = search.all(|_, tried| tried < most, run);
                let beyond = usize::try_from(i32::abs(peak)).unwrap();
                // One beyond the peak shows that it is one.
                assert_eq!(tried, (3 + beyond).min(most));
                if tried == 3 + beyond {
                    assert_eq!((best_rate(&runs).0, edge(&runs)), (f64::from(peak).exp2(), None));
                }
            }
        }
    }

    #[test]
    fn no_search_ends_before_its_best_is_known_or_repeats_forever() {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as f64 / (1 << 24) as f64
        };
        for _ in 0..2000 {
            let rates: Vec<_> = (0..6)
                .map(|i| (f64::from(i), [next(), next(), if i == 5 { f64::NAN } else { next() }]))
                .collect();
            let runs = search(&rates, 100);
            let best = best_rate(&runs).0;
            assert!(runs.len() <= 18 && runs.iter().filter(|run| run.0 == best).count() == 3);
        }
    }
}
