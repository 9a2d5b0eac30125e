//! No solver panics or returns a number that is not finite, whatever is asked of it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use antinoise_input::BadInput;
use antinoise_mechanism::design::{CoefficientRule, Objective, StrategySpec};
use antinoise_mechanism::{Adjacency, Class, Participation, Problem, Workload};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

fn workload(n: usize) -> impl Strategy<Value = Workload> {
    prop_oneof![
        4 => Just(Workload::Prefix),
        1 => (0.0..1.0, 0.0..1.0)
            .prop_map(|(momentum, weight_decay)| Workload::Momentum { momentum, weight_decay }),
        1 => (0.0..1.0).prop_map(|momentum| Workload::Nesterov { momentum }),
        1 => (0.0..1.0).prop_map(|gamma| Workload::Decay { gamma }),
        1 => (1usize..20).prop_map(|width| Workload::Window { width }),
        1 => (0..n, 0.01..1.5).prop_map(|(start, last)| Workload::Cooldown { start, last }),
        1 => prop::collection::vec(-1.0..1.0, 0..6).prop_map(|mut coefficients| {
            coefficients.insert(0, 1.0);
            Workload::Toeplitz { coefficients }
        }),
    ]
}

fn participation(n: usize) -> impl Strategy<Value = Participation> {
    let pair = (1..=n).prop_flat_map(move |min_sep| (Just(min_sep), 1..=(n - 1) / min_sep + 1));
    prop_oneof![
        2 => Just(Participation::Single),
        1 => Just(Participation::FullBatch),
        2 => pair.clone().prop_map(|(min_sep, max_participations)| Participation::Cyclic { min_sep, max_participations }),
        2 => pair.prop_map(|(min_sep, max_participations)| Participation::MinSep { min_sep, max_participations }),
    ]
}

fn form() -> impl Strategy<Value = CoefficientRule> {
    prop_oneof![
        6 => Just(CoefficientRule::Optimized),
        2 => Just(CoefficientRule::SquareRoot),
        1 => (1e-6f64..0.999).prop_map(|damping| CoefficientRule::Damped { damping }),
        1 => Just(CoefficientRule::Harmonic),
        1 => (1usize..=14).prop_map(|from| CoefficientRule::Tapered { from }),
        1 => (1usize..=14).prop_map(|from| CoefficientRule::Averaged { from }),
    ]
}

/// The form, or the default where there are too few bands for it.
fn fitting(form: CoefficientRule, bands: usize) -> CoefficientRule {
    match form {
        CoefficientRule::Tapered { from } | CoefficientRule::Averaged { from } if from >= bands => {
            CoefficientRule::Optimized
        }
        form => form,
    }
}

fn spec(n: usize) -> impl Strategy<Value = StrategySpec> {
    let class = prop::sample::select(Class::ALL);
    (class, 1..=n, 1usize..=12, form(), any::<bool>(), prop::option::weighted(0.2, 1..=n)).prop_map(
        |(class, bands, order, form, column_normalize, restarts)| {
            let base = StrategySpec { column_normalize, restarts, ..StrategySpec::new(class) };
            match class {
                Class::Blt => StrategySpec { order: Some(order), ..base },
                Class::VaryingBlt | Class::Rational => StrategySpec { order: Some(order.min(5)), ..base },
                Class::BandedToeplitz => {
                    StrategySpec { bands: Some(bands), rule: fitting(form, bands), ..base }
                }
                Class::Banded | Class::BandedInverse => {
                    let form =
                        if form == CoefficientRule::SquareRoot { form } else { CoefficientRule::Optimized };
                    StrategySpec { bands: Some(bands), rule: form, ..base }
                }
                Class::Toeplitz => StrategySpec { rule: fitting(form, 1), ..base },
                _ => base,
            }
        },
    )
}

fn case() -> impl Strategy<Value = (StrategySpec, Problem)> {
    (1usize..=14).prop_flat_map(|steps| {
        let objective = prop::sample::select(vec![Objective::Max, Objective::Rms]);
        (spec(steps), workload(steps), participation(steps), objective).prop_map(
            move |(spec, workload, participation, objective)| {
                (spec, Problem { steps, workload, participation, objective })
            },
        )
    })
}

/// Problems that each class is asked for, of 10,000 in all, and the least share of them that has a design.
const ASKED: usize = 500;
const DESIGNED: f64 = 0.5;

#[test]
fn solvers_end_with_a_finite_loss_or_name_what_is_wrong() {
    let config = Config { cases: 10_000, failure_persistence: None, ..Config::default() };
    let seen = RefCell::new(BTreeMap::<_, (usize, usize)>::new());
    let done = TestRunner::new(config).run(&case(), |(spec, problem)| {
        let mut seen = seen.borrow_mut();
        let (asked, designed) = seen.entry(spec.class.name()).or_default();
        *asked += 1;
        match spec.design(&problem) {
            // What cannot be designed is refused by name: too many bands for a run's separation, say.
            Err(error) => prop_assert!(error.is_bad_input(), "{spec} {problem:?}: {error}"),
            Ok(found) => {
                *designed += 1;
                let cost = found.value.loss(&problem.workload, &problem.participation, Adjacency::ZeroOut);
                let cost =
                    cost.map_err(|error| TestCaseError::fail(format!("{spec} {problem:?}: {error}")))?;
                prop_assert!(
                    cost.max_loss.is_finite() && cost.max_loss > 0.0,
                    "{spec} {problem:?}: {cost:?}"
                );
                prop_assert!(found.gap.is_none_or(|gap| gap >= -1e-9), "{spec} {problem:?}: {:?}", found.gap);
            }
        }
        Ok(())
    });
    done.unwrap_or_else(|failure| panic!("{failure}"));
    let seen = seen.into_inner();
    println!("asked and designed: {seen:?}");
    assert_eq!(seen.len(), Class::ALL.len());
    for (class, (asked, designed)) in seen {
        assert!(
            asked >= ASKED && designed as f64 >= DESIGNED * asked as f64,
            "{class}: {designed} of {asked} have a design"
        );
    }
}

/// Optima found independently, at which solvers once stalled: workload, steps, schema, objective, strategy
/// and the loss to reach.
const REACHED: [(&str, usize, &str, Objective, &str, f64); 19] = [
    ("prefix", 1024, "min-sep:64,16", Objective::Rms, "banded-inverse:2", 20.005),
    ("prefix", 1024, "min-sep:64,16", Objective::Rms, "banded-inverse:8", 17.394),
    ("prefix", 256, "min-sep:16,16", Objective::Rms, "banded-inverse:4", 15.460),
    ("prefix", 256, "cyclic:2,8", Objective::Max, "banded-inverse:4", 22.839),
    ("window:10", 100, "single", Objective::Rms, "banded-inverse:16", 3.0903),
    ("prefix", 1_000_000, "single", Objective::Rms, "banded-inverse:16", 14.13653),
    ("prefix", 2000, "single", Objective::Rms, "banded:64", 5.058761),
    ("prefix", 64, "cyclic:4,16", Objective::Max, "banded-inverse:4", 18.010),
    ("prefix", 64, "cyclic:4,16", Objective::Max, "banded-inverse:8", 17.645),
    ("momentum:0.9", 2, "single", Objective::Max, "dense", 1.90000),
    ("momentum:0.9", 3, "single", Objective::Max, "dense", 2.7100),
    ("nesterov:0.95", 64, "cyclic:4,16", Objective::Max, "dense", 239.71),
    ("nesterov:0.95", 64, "cyclic:4,16", Objective::Max, "toeplitz", 240.58),
    ("prefix", 16, "min-sep:1,5", Objective::Max, "dense", 6.503),
    ("prefix", 16, "min-sep:1,5", Objective::Max, "toeplitz", 7.118),
    ("prefix", 1024, "cyclic:64,16", Objective::Rms, "toeplitz", 16.250),
    ("window:10", 100, "cyclic:25,4", Objective::Max, "toeplitz", 3.8679),
    ("window:10", 100, "cyclic:25,4", Objective::Max, "banded-toeplitz:16", 3.8680),
    ("momentum:0.9", 16, "cyclic:1,16", Objective::Max, "banded-toeplitz:8", 93.400),
];

#[test]
fn optima_that_were_missed_are_reached() {
    for (workload, steps, participation, objective, strategy, reach) in REACHED {
        let workload: Workload = workload.parse().unwrap();
        let participation: Participation = participation.parse().unwrap();
        let problem = Problem { steps, workload, participation, objective };
        let spec: StrategySpec = strategy.parse().unwrap();
        let found = spec.design(&problem).unwrap();
        let cost = found.value.loss(&problem.workload, &problem.participation, Adjacency::ZeroOut).unwrap();
        let cost = match objective {
            Objective::Max => cost.max_loss,
            Objective::Rms => cost.rms_loss,
        };
        assert!(cost <= reach * (1.0 + 2e-5), "{strategy}, {}: {cost} for {reach}", problem.workload);
    }
}
