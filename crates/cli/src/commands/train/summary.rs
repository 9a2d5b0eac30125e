//! Summary of the runs of a study: one row for each mechanism, and the report.

use antinoise_input::printable;
use antinoise_mechanism::Workload;
use antinoise_plan::{Plan, VerifiedPlan};
use antinoise_train::clip::Groups;
use antinoise_train::data::Dataset;

use super::audit::Audited;
use super::clip_by::norms;
use super::folder::Folder;
use super::named::{Baseline, WITHOUT_NOISE};
use super::report::{Report, Row};
use super::results::{Finished, Results, Unprotected, best_rate, mean_and_error};
use super::statement::statement;
use super::study::Study;
use crate::failure::Result;
use crate::report::{self, Accuracy};

/// Number of steps at which a report shows the epsilon so far.
const SPENT: usize = 24;

/// Averages the repeats, keeps each mechanism's best learning rate, and writes the report.
pub fn summarize(
    study: &Study,
    (model, groups): (&str, Option<&Groups>),
    dataset: &Dataset,
    (results, audits): (&Results, &[Option<Audited>]),
    folder: &Folder,
) -> Result<Report> {
    // The name of a folder may hold anything.
    let title = printable(&format!("{model} on {}", dataset.name)).replace('\n', " ");
    let (mut rows, mut runs) = (Vec::new(), Vec::new());
    for (index, named) in study.plans().iter().enumerate() {
        let of_plan: Vec<&Finished> = results.finished.iter().filter(|run| run.plan == index).collect();
        let (rate, by_learning_rate) = best_rate(&results.of_plan(index));
        let best: Vec<&Finished> =
            of_plan.iter().copied().filter(|run| run.rule.learning_rate() == rate).collect();
        let plan = &named.plan;
        let cost = study.released().cost(study, plan)?;
        let prefix_errors = prefix_errors(plan)?;
        let test_accuracies: Vec<f64> = best.iter().map(|run| run.rate_and_accuracy().1).collect();
        let (test_accuracy, standard_error) = mean_and_error(&test_accuracies);
        let accuracies =
            by_step(&best.iter().map(|run| &run.results.history.accuracies[..]).collect::<Vec<_>>());
        rows.push(Row {
            mechanism: named.mechanism.clone(),
            baseline: named.baseline,
            test_accuracy,
            standard_error,
            epsilon: cost.epsilon,
            delta: plan.privacy.delta,
            steps: plan.steps,
            seconds: mean(&best, |run| run.results.history.seconds),
            seconds_in_noise: mean(&best, |run| run.results.history.seconds_in_noise),
            learning_rate: rate,
            test_accuracies,
            accuracy_by_step: accuracies.clone(),
            by_learning_rate,
            rms_loss: rms(&prefix_errors),
            models_trained: of_plan.len(),
            models_released: cost.models,
            release: Some(plan.release.kind().name()),
            clip_by: Some(study.clip_by()),
            clip_norms: norms(groups, plan.clip_norm),
            insecure_seed: study.insecure_seed(),
            audit: audits[index].clone(),
        });
        let statement = statement(study, (plan, groups), &cost, (index, results), dataset)?;
        let audit = audits[index].as_ref().map(|audit| audit.epsilon_lower);
        let told = Told { accuracies, epsilon: cost.epsilon, audit, statement };
        runs.push(report_run(&named.mechanism, plan, &best, prefix_errors, told)?);
    }
    if !results.references.is_empty() {
        let (row, run) = without_noise(results, rows[0].steps);
        rows.push(row);
        runs.push(run);
    }
    let html = report::Report { title: title.clone(), runs }.to_html()?;
    let report = folder.save_report(&html)?;
    Ok(Report { runs: rows, report, title, uncovered: study.uncovered() })
}

fn rms(values: &[f64]) -> f64 {
    (values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64).sqrt()
}

/// The row and the curve of training without privacy.
fn without_noise(results: &Results, steps: usize) -> (Row, report::Run) {
    let references = &results.references;
    let (rate, by_learning_rate) = best_rate(&results.without_privacy());
    let best: Vec<&Unprotected> = references.iter().filter(|run| run.rule.learning_rate() == rate).collect();
    let test_accuracies: Vec<f64> = best.iter().map(|run| run.rate_and_accuracy().1).collect();
    let (test_accuracy, standard_error) = mean_and_error(&test_accuracies);
    let seconds = best.iter().map(|run| run.measured.seconds).sum::<f64>() / best.len() as f64;
    let accuracies = by_step(&best.iter().map(|run| &run.measured.accuracies[..]).collect::<Vec<_>>());
    let row = Row {
        mechanism: WITHOUT_NOISE.into(),
        baseline: Some(Baseline::None),
        test_accuracy,
        standard_error,
        epsilon: f64::INFINITY,
        delta: 0.0,
        steps,
        seconds,
        seconds_in_noise: 0.0,
        learning_rate: rate,
        test_accuracies,
        accuracy_by_step: accuracies.clone(),
        by_learning_rate,
        rms_loss: 0.0,
        models_trained: references.len(),
        models_released: 0,
        release: None,
        clip_by: None,
        clip_norms: Vec::new(),
        insecure_seed: false,
        audit: None,
    };
    let run = report::Run {
        mechanism: WITHOUT_NOISE.into(),
        accuracies,
        prefix_errors: Vec::new(),
        strategy: Vec::new(),
        noise_correlating: Vec::new(),
        epsilon: f64::INFINITY,
        audit: None,
        spent: Vec::new(),
        delta: 0.0,
        noise_multiplier: 0.0,
        sensitivity: f64::INFINITY,
        statement: "Not private: neither clipping nor noise. This run is a baseline for readers who may see the data; its \
                    models were not kept."
            .into(),
        learning_rate: rate,
        steps,
        seconds,
        seconds_in_noise: 0.0,
    };
    (row, run)
}

/// Standard deviation, in a coordinate, of the noise in the sum of the mean gradients up to each step.
fn prefix_errors(plan: &Plan) -> Result<Vec<f64>> {
    let scale = plan.noise_std() / plan.expected_batch_size();
    let rows = plan.strategy.row_errors(&Workload::Prefix)?;
    Ok(rows.into_iter().map(|row| row * scale).collect())
}

/// Epsilon of the plan's first steps; empty if it cannot be computed.
fn spent(plan: &VerifiedPlan) -> Vec<(usize, f64)> {
    let apart = plan.steps.div_ceil(SPENT);
    let after: Vec<usize> = (1..plan.steps).step_by(apart).chain([plan.steps]).collect();
    plan.epsilon_by_step(&after).map_or_else(|_| Vec::new(), |spent| after.into_iter().zip(spent).collect())
}

/// The parts of a mechanism's report that do not follow from its plan and its runs.
struct Told {
    accuracies: Vec<Accuracy>,
    epsilon: f64,
    /// Lower bound on epsilon from an audit.
    audit: Option<f64>,
    statement: String,
}

fn report_run(
    mechanism: &str,
    plan: &VerifiedPlan,
    repeats: &[&Finished],
    prefix_errors: Vec<f64>,
    Told { accuracies, epsilon, audit, statement }: Told,
) -> Result<report::Run> {
    let strategy = &*plan.strategy;
    let recursion = strategy.recursion()?;
    let mut unit = vec![0.0; recursion.seeds(plan.steps)];
    unit[0] = 1.0;
    Ok(report::Run {
        mechanism: mechanism.into(),
        accuracies,
        prefix_errors,
        strategy: strategy.encoder()?.column(0),
        noise_correlating: recursion.apply(plan.steps, &unit),
        epsilon,
        audit,
        spent: spent(plan),
        delta: plan.privacy.delta,
        noise_multiplier: plan.noise_multiplier,
        sensitivity: plan.sensitivity.value,
        statement,
        learning_rate: repeats[0].rule.learning_rate(),
        steps: plan.steps,
        seconds: mean(repeats, |run| run.results.history.seconds),
        seconds_in_noise: mean(repeats, |run| run.results.history.seconds_in_noise),
    })
}

fn mean(runs: &[&Finished], of: impl Fn(&Finished) -> f64) -> f64 {
    runs.iter().map(|run| of(run)).sum::<f64>() / runs.len() as f64
}

/// The mean over repeats after each step that was tested, with its standard error; all repeats are tested
/// after the same steps.
fn by_step(repeats: &[&[(usize, f64)]]) -> Vec<Accuracy> {
    let at = |(i, &(step, _)): (usize, &(usize, f64))| {
        let (mean, standard_error) = mean_and_error(&repeats.iter().map(|run| run[i].1).collect::<Vec<_>>());
        Accuracy { step, mean, standard_error }
    };
    repeats[0].iter().enumerate().map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tested_step_has_its_mean_and_standard_error() {
        let runs: [&[(usize, f64)]; 3] =
            [&[(5, 0.2), (10, 0.7)], &[(5, 0.4), (10, 0.7)], &[(5, 0.6), (10, 0.7)]];
        let found = by_step(&runs);
        assert_eq!((found[0].step, found[1].step), (5, 10));
        // The standard deviation of 0.2, 0.4, 0.6 is 0.2, that of their mean 0.2 / sqrt(3).
        assert!((found[0].mean - 0.4).abs() < 1e-15);
        assert!((found[0].standard_error.unwrap() - 0.2 / 3f64.sqrt()).abs() < 1e-15);
        assert!(found[1].standard_error.unwrap() < 1e-15);
        assert_eq!(by_step(&runs[..1])[0], Accuracy { step: 5, mean: 0.2, standard_error: None });
    }
}
