//! The summary of a study's runs: one result for each mechanism, the report, and the model to give away.

use antinoise_input::printable;
use antinoise_mechanism::Workload;
use antinoise_plan::VerifiedPlan;
use antinoise_train::clip::Groups;
use antinoise_train::trainer::mean_gradient_noise;

use crate::audit::Audited;
use crate::clip_by::norms;
use crate::error::Result;
use crate::folder::Folder;
use crate::model_folder;
use crate::named::{Baseline, WITHOUT_NOISE};
use crate::page::study_page;
use crate::result::{Accuracy, MechanismFigures, MechanismResult, PrivateResult, StudyResult};
use crate::results::{Finished, Results, Unprotected, best_rate, mean_and_error};
use crate::statement::statement;
use crate::study::Study;
use crate::task::Task;

/// Number of steps for which a report shows the epsilon up to the step.
const SPENT: usize = 24;

/// Averages the repeats, keeps each mechanism's best learning rate, and writes the report and the folder of
/// the model to give away.
pub fn summarize(
    study: &Study,
    task: &Task,
    (results, audits): (&Results, &[Option<Audited>]),
    folder: &Folder,
) -> Result<StudyResult> {
    let groups = task.groups(study.clip_by())?;
    let mut runs = Vec::new();
    for (index, audit) in audits.iter().enumerate() {
        runs.push(mechanism(study, index, results, (groups.as_ref(), task), audit.clone())?);
    }
    let given = model_folder::save(study, task, results, &runs, folder)?;
    if !results.references.is_empty() {
        runs.push(without_noise(results, runs[0].steps, task));
    }
    let mut result = StudyResult {
        runs,
        report: folder.report(),
        model: given.folder,
        largest_class_share: task.largest_class_share(),
        model_is: given.is,
        // The name of a folder may hold anything.
        title: printable(&format!("{} on {}", task.model_name(), task.name())).replace('\n', " "),
        default_learning_rate: study.default_rate(),
        uncovered: study.uncovered(),
        tested: task.tested(),
        is_of_table: study.is_of_table(),
    };
    result.report = folder.save_report(&study_page(&result)?)?;
    Ok(result)
}

/// The result of the mechanism of this index.
fn mechanism(
    study: &Study,
    index: usize,
    results: &Results,
    (groups, task): (Option<&Groups>, &Task),
    audit: Option<Audited>,
) -> Result<MechanismResult> {
    let (named, (rate, by_learning_rate)) = (&study.plans()[index], best_rate(&results.of_plan(index)));
    let of_plan = results.finished.iter().filter(|run| run.plan == index);
    let best: Vec<&Finished> = of_plan.clone().filter(|run| run.rule.learning_rate() == rate).collect();
    let plan = &named.plan;
    let cost = study.published().cost(study, plan)?;
    let figures = figures(plan)?;
    let private = PrivateResult {
        epsilon: cost.epsilon,
        delta: plan.privacy.delta,
        workload: plan.workload.to_string(),
        rms_loss: match plan.workload {
            Workload::Prefix => rms(&figures.prefix_errors),
            _ => rms(&mean_gradient_noise(plan, &plan.workload)?),
        },
        unit: plan.privacy.unit,
        epsilon_by_examples: plan.stated_epsilon_by_examples()?,
        models_published: cost.models,
        release: plan.arithmetic.kind().name(),
        clip_by: study.clip_by(),
        clip_norms: norms(groups, plan.clip_norm),
        audit,
        insecure_seed: study.insecure_seed(),
        figures,
        statement: statement(study, (plan, groups), &cost, (index, results), task)?,
    };
    let test_accuracies: Vec<f64> = best.iter().map(|run| run.rate_and_accuracy().1).collect();
    let (test_accuracy, standard_error) = mean_and_error(&test_accuracies);
    Ok(MechanismResult {
        mechanism: named.mechanism.clone(),
        baseline: named.baseline,
        test_accuracy,
        standard_error,
        tested: task.tested(),
        private: Some(private),
        steps: plan.steps,
        seconds: mean(&best, |run| run.results.history.seconds),
        seconds_in_noise: mean(&best, |run| run.results.history.seconds_in_noise),
        learning_rate: rate,
        test_accuracies,
        accuracy_by_step: by_step(
            &best.iter().map(|run| &run.results.history.accuracies[..]).collect::<Vec<_>>(),
        ),
        by_learning_rate,
        models_trained: of_plan.count(),
    })
}

fn rms(values: &[f64]) -> f64 {
    (values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64).sqrt()
}

/// The result of training without privacy.
fn without_noise(results: &Results, steps: usize, task: &Task) -> MechanismResult {
    let references = &results.references;
    let (rate, by_learning_rate) = best_rate(&results.without_privacy());
    let best: Vec<&Unprotected> = references.iter().filter(|run| run.rule.learning_rate() == rate).collect();
    let test_accuracies: Vec<f64> = best.iter().map(|run| run.rate_and_accuracy().1).collect();
    let (test_accuracy, standard_error) = mean_and_error(&test_accuracies);
    let accuracies: Vec<_> = best.iter().map(|run| &run.measured.accuracies[..]).collect();
    MechanismResult {
        mechanism: WITHOUT_NOISE.into(),
        baseline: Some(Baseline::None),
        test_accuracy,
        standard_error,
        tested: task.tested(),
        private: None,
        steps,
        seconds: best.iter().map(|run| run.measured.seconds).sum::<f64>() / best.len() as f64,
        seconds_in_noise: 0.0,
        learning_rate: rate,
        test_accuracies,
        accuracy_by_step: by_step(&accuracies),
        by_learning_rate,
        models_trained: references.len(),
    }
}

/// Epsilon of the plan's first steps; empty if it cannot be computed.
fn spent(plan: &VerifiedPlan) -> Vec<(usize, f64)> {
    let apart = plan.steps.div_ceil(SPENT);
    let after: Vec<usize> = (1..plan.steps).step_by(apart).chain([plan.steps]).collect();
    plan.epsilon_by_step(&after).map_or_else(|_| Vec::new(), |spent| after.into_iter().zip(spent).collect())
}

/// The curves that a report draws for a plan.
fn figures(plan: &VerifiedPlan) -> Result<MechanismFigures> {
    let strategy = &*plan.strategy;
    let recursion = strategy.recursion()?;
    let mut unit = vec![0.0; recursion.seeds(plan.steps)];
    unit[0] = 1.0;
    Ok(MechanismFigures {
        prefix_errors: mean_gradient_noise(plan, &Workload::Prefix)?,
        strategy: strategy.encoder()?.column(0),
        noise_correlating: recursion.apply(plan.steps, &unit),
        spent: spent(plan),
        noise_multiplier: plan.noise_multiplier,
        sensitivity: plan.sensitivity.value,
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
