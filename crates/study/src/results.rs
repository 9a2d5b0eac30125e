//! Results of the runs, and of each learning rate.

use antinoise_train::checkpoint;
use antinoise_train::data::Examples;
use antinoise_train::optimizer::UpdateRule;
use antinoise_train::reference::Measured;

/// Results of all runs of a study.
pub struct Results {
    /// The private runs.
    pub finished: Vec<Finished>,
    /// Results without privacy.
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
    /// Index of the plan.
    pub plan: usize,
    /// Update rule and learning rate.
    pub rule: UpdateRule,
    /// The measurements and the date of the run.
    pub results: checkpoint::Finished,
}

/// One run without privacy.
pub struct Unprotected {
    /// Update rule and learning rate.
    pub rule: UpdateRule,
    /// Measurements of the run.
    pub measured: Measured,
}

impl Finished {
    /// Learning rate, and accuracy after the last step.
    pub fn rate_and_accuracy(&self) -> (f64, f64) {
        (self.rule.learning_rate(), last(&self.results.history.accuracies))
    }

    /// Whether a parameter is infinite or NaN after the last step.
    pub fn diverged(&self) -> bool {
        !self.results.parameters.iter().all(|x| x.is_finite())
    }
}

impl Unprotected {
    /// Learning rate, and accuracy after the last step.
    pub fn rate_and_accuracy(&self) -> (f64, f64) {
        (self.rule.learning_rate(), last(&self.measured.accuracies))
    }
}

fn last(accuracies: &[(usize, f64)]) -> f64 {
    accuracies.last().map_or(f64::NAN, |&(_, accuracy)| accuracy)
}

/// The mean and its standard error; `None` for a single value.
pub fn mean_and_error(values: &[f64]) -> (f64, Option<f64>) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, (values.len() > 1).then(|| (squares / (count - 1.0) / count).sqrt()))
}

/// Share of the examples with the most frequent label.
pub fn largest_class_share(examples: &Examples, classes: usize) -> f64 {
    let mut counts = vec![0usize; classes];
    examples.labels().iter().for_each(|&label| counts[label as usize] += 1);
    counts.into_iter().max().unwrap_or(0) as f64 / examples.len() as f64
}

/// The standard error of a share of `count` examples.
pub fn accuracy_error(share: f64, count: usize) -> f64 {
    (share * (1.0 - share) / count as f64).sqrt()
}

/// The learning rate of highest mean accuracy among those with the most runs, and the mean accuracy at each
/// rate. `runs` holds the learning rate and accuracy of each run.
pub fn best_rate(runs: &[(f64, f64)]) -> (f64, Vec<(f64, f64)>) {
    let rates = by_rate(runs);
    let most = rates.iter().map(|rate| rate.runs).max();
    let compared = rates.iter().filter(|rate| Some(rate.runs) == most);
    let best = compared.max_by(|x, y| x.mean.total_cmp(&y.mean)).map_or(f64::NAN, |best| best.rate);
    (best, rates.iter().map(|of| (of.rate, of.mean)).collect())
}

/// Results at a learning rate.
pub struct OfRate {
    pub rate: f64,
    pub runs: usize,
    pub mean: f64,
}

/// Results at each learning rate, in increasing order of the rates.
pub fn by_rate(runs: &[(f64, f64)]) -> Vec<OfRate> {
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

/// The learning rate to try next: half of the best rate if it is the smallest of several, twice the best rate
/// if it is the largest, else `None`.
pub fn edge(runs: &[(f64, f64)]) -> Option<f64> {
    let (best, means) = best_rate(runs);
    match (means.first()?.0, means.last()?.0) {
        (least, most) if least == most => None,
        (least, _) if best == least => Some(best / 2.0),
        (_, most) if best == most => Some(2.0 * best),
        _ => None,
    }
}
