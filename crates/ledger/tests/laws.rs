//! Random schedules against a naive oracle: a list of all participations that is searched each time.

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use antinoise_ledger::{Ledger, NoisySum};
use antinoise_plan::VerifiedPlan;
use proptest::prelude::*;

/// All participations as a list.
#[derive(Default)]
struct Naive {
    all: Vec<(String, usize)>,
    step: usize,
}

impl Naive {
    fn may(&self, user: &str, (min_sep, most): (usize, usize)) -> bool {
        let steps: Vec<usize> =
            self.all.iter().filter(|(name, _)| name == user).map(|&(_, step)| step).collect();
        steps.len() < most && steps.iter().all(|&step| self.step.abs_diff(step) >= min_sep)
    }

    fn in_step(&self, step: usize) -> Vec<String> {
        let mut users: Vec<String> =
            self.all.iter().filter(|&&(_, t)| t == step).map(|(name, _)| name.clone()).collect();
        users.sort();
        users
    }
}

#[derive(Debug, Clone)]
enum Action {
    Charge(Vec<u8>),
    Record,
    Reopen,
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = prop_oneof![
        6 => prop::collection::vec(0u8..7, 0..4).prop_map(Action::Charge),
        5 => Just(Action::Record),
        1 => Just(Action::Reopen),
    ];
    prop::collection::vec(action, 1..40)
}

/// A file system in memory.
fn memory() -> Option<&'static Path> {
    Some(Path::new("/dev/shm")).filter(|folder| folder.is_dir())
}

fn held(plan: &VerifiedPlan, actions: &[Action]) {
    let folder = match memory() {
        Some(memory) => tempfile::tempdir_in(memory).unwrap(),
        None => tempfile::tempdir().unwrap(),
    };
    let path = folder.path().join("ledger.db");
    let limits = plan.participation_limits().unwrap();
    let everybody: Vec<String> = (0..7).map(|user| format!("user {user}")).collect();
    let mut ledger = Ledger::open(&path, plan, "0").unwrap();
    let (mut naive, mut charged) = (Naive::default(), None);
    for action in actions {
        let may: Vec<&str> = everybody
            .iter()
            .map(String::as_str)
            .filter(|user| naive.step < plan.steps && naive.may(user, limits))
            .collect();
        assert_eq!(ledger.eligible(everybody.iter().map(String::as_str)), may);
        match action {
            Action::Charge(users) => {
                let users: Vec<String> = users.iter().map(|user| format!("user {user}")).collect();
                let mut once = users.clone();
                once.sort();
                once.dedup();
                let allowed = naive.step < plan.steps
                    && once.len() == users.len()
                    && users.iter().all(|user| naive.may(user, limits));
                let found = ledger.charge(&users);
                assert_eq!(found.is_ok(), allowed, "{users:?} in step {}: {found:?}", naive.step);
                if let Ok(token) = found {
                    naive.all.extend(users.into_iter().map(|user| (user, naive.step)));
                    charged = Some(token);
                }
            }
            Action::Record => {
                if let Some(token) = charged.take() {
                    ledger
                        .record_noisy_sum(token, &format!("of {}", naive.step), &[naive.step as u8])
                        .unwrap();
                    naive.step += 1;
                }
            }
            Action::Reopen => {
                drop(ledger);
                ledger = Ledger::open(&path, plan, "0").unwrap();
                let mut before = naive.in_step(naive.step);
                charged = ledger.charged_before().unwrap().map(|(token, users)| {
                    assert_eq!(users, std::mem::take(&mut before));
                    token
                });
                assert!(before.is_empty());
            }
        }
        assert_eq!(ledger.step(), naive.step);
        let took_part: BTreeSet<&String> = naive.all.iter().map(|(user, _)| user).collect();
        assert_eq!(ledger.users(), took_part.len());
    }
    for step in 0..plan.steps {
        assert_eq!(ledger.participants(step).unwrap(), naive.in_step(step));
        let base = (step < naive.step).then(|| format!("of {step}"));
        assert_eq!(ledger.base(step).unwrap(), base);
    }
    let last = naive.step.checked_sub(1).map(|step| NoisySum {
        step,
        base: format!("of {step}"),
        noisy_sum: Some(vec![step as u8]),
    });
    assert_eq!(ledger.last_noisy_sum().unwrap(), last);
    let mut all = naive.all;
    all.sort();
    assert_eq!(ledger.participations().unwrap(), all);
    let recorded: Vec<(String, usize)> = all.into_iter().filter(|&(_, step)| step < naive.step).collect();
    let observed = ledger.observed().unwrap();
    assert_eq!(observed.participations, recorded.len());
    let mut patterns: Vec<Vec<usize>> = everybody
        .iter()
        .map(|user| recorded.iter().filter(|(name, _)| name == user).map(|&(_, step)| step).collect())
        .filter(|pattern: &Vec<usize>| !pattern.is_empty())
        .collect();
    assert_eq!(observed.users, patterns.len());
    patterns.sort();
    patterns.dedup();
    assert_eq!(observed.patterns, patterns);
    if !patterns.is_empty() {
        assert!(plan.observed(&patterns).unwrap().noise_multiplier >= plan.noise_multiplier);
    }
}

/// Thousands of schedules if a folder in memory makes changes fast.
#[test]
fn schedules_are_those_of_a_naive_list() {
    let plans = [(8, 3, 2), (12, 1, 12), (12, 4, 3), (6, 6, 1)]
        .map(|(steps, min_sep, most)| common::plan_of(steps, min_sep, most, 4));
    let cases = if memory().is_some() { 3000 } else { 100 };
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let drawn = runner.run(&(0..plans.len(), actions()), |(plan, actions)| {
        held(&plans[plan], &actions);
        Ok(())
    });
    drawn.unwrap();
}

/// A user who is named in two ways, in one round or in two, before and after the ledger is opened again.
#[test]
fn a_user_takes_part_under_one_name() {
    let plan = common::plan(2);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let mut ledger = Ledger::open(&path, &plan, "0").unwrap();
    let refused = |ledger: &mut Ledger, users: &[&str], named: &str| {
        let error = ledger.charge(users).unwrap_err().to_string();
        assert!(error.starts_with("name of a user is ") && error.contains(named), "{users:?}: {error}");
    };
    refused(&mut ledger, &["7", "7.0"], "\"7.0\" but must be \"7\", as which");
    refused(&mut ledger, &["ada", " ada"], "must be \" ada\", as which");
    let charged = ledger.charge(&["007", "ada"]).unwrap();
    ledger.record_noisy_sum(charged, "", &[]).unwrap();
    let all = ["007", "7", "7.0", "+7", "ada", "ada ", "Ada", "8"];
    for reopened in [false, true] {
        if reopened {
            drop(ledger);
            ledger = Ledger::open(&path, &plan, "0").unwrap();
        }
        assert_eq!(ledger.eligible(all), ["Ada", "8"]);
        for (other, first) in [("7", "007"), ("7e0", "007"), ("ada\t", "ada")] {
            refused(&mut ledger, &[other], &format!("must be {first:?}, as which"));
        }
    }
    for _ in 0..2 {
        let charged = ledger.charge::<&str>(&[]).unwrap();
        ledger.record_noisy_sum(charged, "", &[]).unwrap();
    }
    assert_eq!(ledger.eligible(all), ["007", "ada", "Ada", "8"]);
}
