//! Tests that the batches of a run are those for which its plan accounts.

use antinoise_input::largest;
use antinoise_mechanism::{Participation, Separation};
use antinoise_plan::{Sampler, Spacing, VerifiedPlan};

use super::contract::StepRecord;
use crate::report::Test;
use crate::stats::deviation;

/// Number of [`tests`] whose outcome is random.
pub(super) const TESTS_BY_CHANCE: usize = 2;
/// Number of steps whose batches are compared with those of another run.
const COMPARED: usize = 64;

/// The tests of the batches of two runs; each random test has false-alarm probability `alpha`.
pub(super) fn tests(plan: &VerifiedPlan, runs: [&[StepRecord]; 2], alpha: f64) -> Vec<Test> {
    let batches = runs.map(|run| run.iter().map(|step| &step.batch[..]).collect::<Vec<_>>());
    let count = |violations: fn(&VerifiedPlan, &[&[usize]]) -> usize| {
        batches.iter().map(|batches| violations(plan, batches)).sum::<usize>() as f64
    };
    let at_chance = |name: &str, deviations: Vec<f64>| {
        let threshold = (2.0 * deviations.len().max(1) as f64 / alpha).ln();
        Test::new(name, largest(deviations), threshold)
    };
    let sizes = batches.iter().flat_map(|batches| sizes(plan, batches)).collect();
    let mut tests = vec![
        Test::new("batches: participations that the schema does not allow", count(forbidden), 0.0),
        at_chance("batches: how many take part", sizes),
    ];
    if round(plan).is_some() {
        tests.push(Test::new("batches: participations outside of an example's group", count(outside), 0.0));
    }
    if plan.sampler != Sampler::Stream {
        tests.push(at_chance(
            "batches: who takes part, compared with other runs and rounds",
            overlaps(plan, &batches),
        ));
    }
    tests
}

/// Number of participations that are too few steps after the example's previous one, exceed its maximum
/// number, exceed the maximum size of a batch, or are duplicates in a batch.
fn forbidden(plan: &VerifiedPlan, batches: &[&[usize]]) -> usize {
    let (apart, most) = match (plan.dp_sgd_groups(), &plan.participation) {
        // An example participates at most once in a round.
        (Some(groups), _) => (groups, plan.steps.div_ceil(groups)),
        (None, Participation::Single) => (plan.steps, 1),
        (None, schema) => {
            let Separation { min_sep, max_participations } = schema.separation(plan.steps);
            (min_sep, max_participations)
        }
    };
    let epoch = plan.participation.epoch_steps();
    let mut turns: Vec<(usize, Option<usize>)> = vec![(0, None); plan.examples];
    let mut found = 0;
    for (step, batch) in batches.iter().enumerate() {
        found += plan.sampler.max_batch_size().map_or(0, |most| batch.len().saturating_sub(most));
        for &example in *batch {
            let Some((count, last)) = turns.get_mut(example) else {
                found += 1;
                continue;
            };
            let is_same_epoch = |last: usize| epoch.is_some_and(|epoch| last / epoch == step / epoch);
            let is_too_soon = |last: usize| step - last < apart.max(1) || is_same_epoch(last);
            found += usize::from(*count == most || last.is_some_and(is_too_soon));
            (*count, *last) = (*count + 1, Some(step));
        }
    }
    found
}

/// Number of steps from one turn of a group or bin to its next turn.
fn round(plan: &VerifiedPlan) -> Option<usize> {
    plan.sampler.spacing().filter(|spacing| spacing.is_exact).map(|spacing| spacing.steps)
}

/// Number of participations in a turn of a group or bin other than that of the example's first participation.
fn outside(plan: &VerifiedPlan, batches: &[&[usize]]) -> usize {
    let Some(round) = round(plan) else { return 0 };
    let mut places = vec![None; plan.examples];
    let mut found = 0;
    for (step, batch) in batches.iter().enumerate() {
        for &example in batch.iter().filter(|&&example| example < plan.examples) {
            found += usize::from(*places[example].get_or_insert(step % round) != step % round);
        }
    }
    found
}

/// The numbers (n, p) for which the size of the step's batch is Binomial(n, p) under the plan.
fn trials(plan: &VerifiedPlan, step: usize) -> (usize, f64) {
    plan.batch_size_law(step).expect("the plan forms batches: TrainingInputs::new")
}

/// Deviations of batch sizes from their distribution: for each step, and for groups of steps whose total size
/// has a known distribution.
fn sizes(plan: &VerifiedPlan, batches: &[&[usize]]) -> Vec<f64> {
    let far = |n: usize, k: usize, p: f64| deviation(n as f64, k as f64, p);
    let each = |(step, batch): (usize, &&[usize])| {
        let (n, p) = trials(plan, step);
        match plan.sampler.max_batch_size() {
            Some(most) if batch.len() >= most && batch.len() as f64 <= n as f64 * p => 0.0,
            _ => far(n, batch.len(), p),
        }
    };
    let mut found: Vec<f64> = batches.iter().enumerate().map(each).collect();
    let total = |batches: &[&[usize]]| batches.iter().map(|batch| batch.len()).sum::<usize>();
    match plan.sampler {
        // Each round contains every example once.
        Sampler::Cyclic { groups } | Sampler::BallsInBins { bins: groups } if groups <= batches.len() => {
            found.push(far(plan.examples, total(&batches[..groups]), 1.0));
        }
        Sampler::Poisson { .. } | Sampler::TruncatedPoisson { .. } => {
            let n: usize = (0..batches.len()).map(|step| trials(plan, step).0).sum();
            let (total, p) = (total(batches), trials(plan, 0).1);
            // A cut makes batches smaller: too many examples are as unlikely as without it, too few are not.
            let is_explained = plan.sampler.max_batch_size().is_some() && total as f64 <= n as f64 * p;
            found.push(if is_explained { 0.0 } else { far(n, total, p) });
        }
        // Each example has at most this number of turns, independently of other examples.
        other => {
            if let Some(Spacing { steps, is_exact: false }) = other.spacing() {
                let most = batches.len().div_ceil(steps) as f64;
                let mean = batches.len() as f64 * trials(plan, 0).1;
                found.push(deviation(plan.examples as f64, total(batches) as f64 / most, mean / most));
            }
        }
    }
    found
}

/// Deviations of the number of examples that two batches share from its distribution for independent batches,
/// which are drawn without replacement, given their sizes. The two are batches of the same step of two runs,
/// or of two turns of one group that is sampled at each turn.
fn overlaps(plan: &VerifiedPlan, [batches, others]: &[Vec<&[usize]>; 2]) -> Vec<f64> {
    let shared = |x: &[usize], y: &[usize], of: usize| {
        let mut is_in = vec![false; plan.examples];
        y.iter().filter(|&&example| example < plan.examples).for_each(|&example| is_in[example] = true);
        let both = x.iter().filter(|&&example| is_in.get(example) == Some(&true)).count();
        deviation(x.len() as f64, both as f64, y.len() as f64 / of as f64)
    };
    let compared = batches.len().min(COMPARED);
    let mut found: Vec<f64> =
        (0..compared).map(|step| shared(batches[step], others[step], plan.examples)).collect();
    if let Sampler::Poisson { groups } | Sampler::TruncatedPoisson { groups, .. } = plan.sampler {
        let of_round = |step: usize| shared(batches[step + groups], batches[step], trials(plan, step).0);
        found.extend((0..batches.len().saturating_sub(groups).min(COMPARED)).map(of_round));
    }
    found
}
