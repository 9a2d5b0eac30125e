//! What came of the runs, and of each learning rate.

use antinoise_train::optimizer::Rule;
use antinoise_train::reference::Measured;
use antinoise_train::trainer;

/// What came of all runs of a study.
pub struct Results {
    /// The private runs.
    pub finished: Vec<Finished>,
    /// Those without privacy.
    pub references: Vec<Unprotected>,
}

impl Results {
    /// Learning rate and accuracy of each run of a plan.
    pub fn of_plan(&self, plan: usize) -> Vec<(f64, f64)> {
        let runs = self.finished.iter().filter(|run| run.plan == plan);
        runs.map(Finished::rate_and_accuracy).collect()
    }

    /// Learning rate and accuracy of each run without privacy.
    pub fn without_privacy(&self) -> Vec<(f64, f64)> {
        self.references.iter().map(Unprotected::rate_and_accuracy).collect()
    }
}

/// One finished run.
pub struct Finished {
    /// Index of its plan.
    pub plan: usize,
    /// How it learned.
    pub rule: Rule,
    /// What was measured, and when.
    pub results: trainer::Finished,
}

/// One run without privacy.
pub struct Unprotected {
    /// How it learned.
    pub rule: Rule,
    /// What was measured.
    pub measured: Measured,
}

impl Finished {
    /// How it learned, and what came of it.
    pub fn rate_and_accuracy(&self) -> (f64, f64) {
        (self.rule.learning_rate(), last(&self.results.history.accuracies))
    }
}

impl Unprotected {
    /// How it learned, and what came of it.
    pub fn rate_and_accuracy(&self) -> (f64, f64) {
        (self.rule.learning_rate(), last(&self.measured.accuracies))
    }
}

fn last(accuracies: &[(usize, f64)]) -> f64 {
    accuracies.last().map_or(f64::NAN, |&(_, accuracy)| accuracy)
}

/// The mean and its standard error, which a single number has not.
pub fn mean_and_error(values: &[f64]) -> (f64, Option<f64>) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, (values.len() > 1).then(|| (squares / (count - 1.0) / count).sqrt()))
}

/// Standard deviations of a test by which a learning rate is far behind.
const FAR: f64 = 4.0;

/// The learning rate of the highest mean accuracy among those that were run most often, and the mean at each, of runs by
/// learning rate and accuracy.
pub fn best_rate(runs: &[(f64, f64)]) -> (f64, Vec<(f64, f64)>) {
    let rates = by_rate(runs);
    let most = rates.iter().map(|rate| rate.runs).max();
    let compared = rates.iter().filter(|rate| Some(rate.runs) == most);
    let best = compared.max_by(|x, y| x.mean.total_cmp(&y.mean)).map_or(f64::NAN, |best| best.rate);
    (best, rates.iter().map(|of| (of.rate, of.mean)).collect())
}

/// What came of a learning rate.
struct OfRate {
    rate: f64,
    runs: usize,
    mean: f64,
}

fn by_rate(runs: &[(f64, f64)]) -> Vec<OfRate> {
    let mut rates: Vec<f64> = runs.iter().map(|&(rate, _)| rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let of = |rate: f64| {
        let of_rate: Vec<f64> =
            runs.iter().filter(|run| run.0 == rate).map(|&(_, accuracy)| accuracy).collect();
        OfRate { rate, runs: of_rate.len(), mean: mean_and_error(&of_rate).0 }
    };
    rates.into_iter().map(of).collect()
}

/// A learning rate that was run less than `repeats` times and may be the best: the best so far, or one that is behind it by no
/// more than four standard deviations of an accuracy on `tests` examples.
pub fn may_be_best(runs: &[(f64, f64)], repeats: usize, tests: usize) -> Option<f64> {
    let rates = by_rate(runs);
    let best = rates.iter().find(|of| of.rate == best_rate(runs).0)?;
    if best.runs < repeats {
        return Some(best.rate);
    }
    let reach = FAR * (best.mean * (1.0 - best.mean) / tests as f64).sqrt();
    let open = rates.iter().filter(|of| of.runs < repeats && of.mean >= best.mean - reach);
    open.max_by(|x, y| x.mean.total_cmp(&y.mean)).map(|of| of.rate)
}

/// The learning rate to try next: twice or half of the best one, where that is the largest or the least of several.
pub fn edge(runs: &[(f64, f64)]) -> Option<f64> {
    let (best, means) = best_rate(runs);
    match (means.first()?.0, means.last()?.0) {
        (least, most) if least == most => None,
        (least, _) if best == least => Some(best / 2.0),
        (_, most) if best == most => Some(2.0 * best),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the rates whose accuracies are given, one a repeat, in the order in which they are asked for.
    fn search(rates: &[(f64, [f64; 3])], tests: usize) -> Vec<(f64, f64)> {
        let mut runs: Vec<(f64, f64)> = rates.iter().map(|&(rate, [first, ..])| (rate, first)).collect();
        while let Some(next) = may_be_best(&runs, 3, tests) {
            let (_, accuracies) = rates.iter().find(|rate| rate.0 == next).unwrap();
            runs.extend(accuracies[1..].iter().map(|&accuracy| (next, accuracy)));
        }
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
