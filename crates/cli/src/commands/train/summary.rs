//! What the runs of a study add up to: one row a mechanism, and the report.

use antinoise_input::printable;
use antinoise_mechanism::Workload;
use antinoise_plan::Plan;
use antinoise_train::data::Dataset;
use antinoise_train::report;

use super::folder::Folder;
use super::statement::statement;
use super::study::{Finished, Study, learning_rate};
use super::{Report, Row};
use crate::failure::Result;

/// Averages the repeats, keeps each mechanism's best learning rate, and writes the report.
pub fn summarize(
    study: &Study,
    model: &str,
    dataset: &Dataset,
    finished: &[Finished],
    folder: &Folder,
) -> Result<Report> {
    // The name of a folder may hold anything.
    let title = printable(&format!("{model} on {}", dataset.name)).replace('\n', " ");
    let (mut rows, mut runs) = (Vec::new(), Vec::new());
    for (index, named) in study.plans().iter().enumerate() {
        let of_plan: Vec<&Finished> = finished.iter().filter(|run| run.plan == index).collect();
        let (rate, by_learning_rate) = best_rate(&of_plan);
        let best: Vec<&Finished> =
            of_plan.iter().copied().filter(|run| learning_rate(&run.rule) == rate).collect();
        let plan = &named.plan;
        let cost = study.released().cost(study, plan)?;
        let prefix_errors = prefix_errors(plan)?;
        rows.push(Row {
            mechanism: named.mechanism.clone(),
            test_accuracy: mean(&best, last_accuracy),
            epsilon: cost.epsilon,
            delta: plan.privacy.delta,
            steps: plan.steps,
            seconds: mean(&best, |run| run.results.history.seconds),
            seconds_in_noise: mean(&best, |run| run.results.history.seconds_in_noise),
            learning_rate: rate,
            test_accuracies: best.iter().map(|run| last_accuracy(run)).collect(),
            by_learning_rate,
            rms_loss: rms(&prefix_errors),
            models_trained: of_plan.len(),
            models_released: cost.models,
            release: plan.release.kind().name(),
            insecure_seed: study.insecure_seed(),
        });
        let statement = statement(study, plan, &cost, &of_plan, dataset);
        runs.push(report_run(&named.mechanism, plan, &best, prefix_errors, (cost.epsilon, statement))?);
    }
    let html = report::Report { title: title.clone(), runs }.to_html()?;
    let report = folder.save_report(&html)?;
    Ok(Report { runs: rows, report, title })
}

fn last_accuracy(run: &Finished) -> f64 {
    run.results.history.accuracies.last().map_or(f64::NAN, |&(_, accuracy)| accuracy)
}

fn rms(values: &[f64]) -> f64 {
    (values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64).sqrt()
}

/// The learning rate of the highest mean accuracy, and the mean at each.
fn best_rate(runs: &[&Finished]) -> (f64, Vec<(f64, f64)>) {
    let mut rates: Vec<f64> = runs.iter().map(|run| learning_rate(&run.rule)).collect();
    rates.dedup();
    let at = |rate: f64| {
        let of_rate: Vec<&Finished> =
            runs.iter().copied().filter(|run| learning_rate(&run.rule) == rate).collect();
        mean(&of_rate, last_accuracy)
    };
    let means: Vec<(f64, f64)> = rates.into_iter().map(|rate| (rate, at(rate))).collect();
    let best = means.iter().max_by(|x, y| x.1.total_cmp(&y.1)).map_or(f64::NAN, |&(rate, _)| rate);
    (best, means)
}

/// Standard deviation, in a coordinate, of the noise in the sum of the mean gradients up to each step.
fn prefix_errors(plan: &Plan) -> Result<Vec<f64>> {
    let scale = plan.noise_std() / plan.expected_batch_size();
    let rows = plan.strategy.mechanism().row_errors(&Workload::Prefix)?;
    Ok(rows.into_iter().map(|row| row * scale).collect())
}

fn report_run(
    mechanism: &str,
    plan: &Plan,
    repeats: &[&Finished],
    prefix_errors: Vec<f64>,
    (epsilon, statement): (f64, String),
) -> Result<report::Run> {
    let strategy = plan.strategy.mechanism();
    let recursion = strategy.recursion()?;
    let mut unit = vec![0.0; recursion.seeds(plan.steps)];
    unit[0] = 1.0;
    Ok(report::Run {
        mechanism: mechanism.into(),
        accuracies: mean_accuracies(repeats),
        prefix_errors,
        strategy: strategy.encoder()?.column(0),
        noise_correlating: recursion.apply(plan.steps, &unit),
        epsilon,
        delta: plan.privacy.delta,
        noise_multiplier: plan.noise_multiplier,
        sensitivity: plan.sensitivity.value,
        statement,
        steps: plan.steps,
        seconds: mean(repeats, |run| run.results.history.seconds),
        seconds_in_noise: mean(repeats, |run| run.results.history.seconds_in_noise),
    })
}

fn mean(runs: &[&Finished], of: impl Fn(&Finished) -> f64) -> f64 {
    runs.iter().map(|run| of(run)).sum::<f64>() / runs.len() as f64
}

/// Repeats are tested after the same steps.
fn mean_accuracies(repeats: &[&Finished]) -> Vec<(usize, f64)> {
    let steps = repeats[0].results.history.accuracies.iter().map(|&(step, _)| step);
    steps
        .enumerate()
        .map(|(i, step)| (step, mean(repeats, |run| run.results.history.accuracies[i].1)))
        .collect()
}
