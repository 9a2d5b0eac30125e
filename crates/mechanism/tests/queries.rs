//! Batches of queries: workloads with any number of rows.

#[expect(dead_code, reason = "the laws use the rest of it")]
mod oracle;

use std::cell::Cell;

use antinoise_input::BadInput;
use antinoise_mechanism::design::Objective::{self, Max, Rms};
use antinoise_mechanism::design::StrategySpec;
use antinoise_mechanism::{Adjacency, Class, Participation, Problem, Workload};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

type Rows = Vec<Vec<f64>>;

fn problem(rows: Rows, participation: Participation, objective: Objective) -> Problem {
    Problem { steps: rows[0].len(), workload: Workload::Queries { rows }, participation, objective }
}

/// The objective's loss of the class's design, and the gap that certifies it.
fn designed(spec: &str, problem: &Problem) -> (f64, Option<f64>) {
    let found = spec.parse::<StrategySpec>().unwrap().design(problem).unwrap();
    let cost = found.value.loss(&problem.workload, &problem.participation, Adjacency::ZeroOut).unwrap();
    (if problem.objective == Max { cost.max_loss } else { cost.rms_loss }, found.gap)
}

fn rows(queries: std::ops::RangeInclusive<usize>, steps: usize) -> impl Strategy<Value = Rows> {
    let entry = prop_oneof![2 => Just(0.0), 3 => Just(1.0), 1 => -2.0f64..2.0];
    let row = prop::collection::vec(entry, steps);
    prop::collection::vec(row, queries)
        .prop_filter("a query", |rows| rows.iter().flatten().any(|&x| x != 0.0))
}

fn case() -> impl Strategy<Value = (Rows, Participation)> {
    (1usize..=8).prop_flat_map(|n| {
        let schema = prop_oneof![
            Just(Participation::Single),
            Just(Participation::FullBatch),
            Just(Participation::Cyclic { min_sep: n.div_ceil(2), max_participations: 2.min(n) }),
            Just(Participation::MinSep { min_sep: n.div_ceil(3), max_participations: 2.min(n) }),
        ];
        (rows(1..=2 * n, n), schema.prop_filter("fits", move |schema| schema.check(n).is_ok()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// The errors of every class are the row norms of A C^-1 written out, N rows of them.
    #[test]
    fn errors_are_those_of_the_dense_decoder((rows, participation) in case(), max in any::<bool>()) {
        let problem = problem(rows.clone(), participation, if max { Max } else { Rms });
        for &class in Class::ALL.iter().filter(|&&class| class != Class::OutputPerturbation) {
            let strategy = StrategySpec::new(class).design(&problem).unwrap().value;
            let mechanism = &*strategy;
            let b = oracle::product(&rows, &oracle::of_recursion(&mechanism.recursion().unwrap(), problem.steps));
            let norms: Vec<f64> = b.iter().map(|row| row.iter().map(|x| x * x).sum::<f64>().sqrt()).collect();
            let found = mechanism.row_errors(&problem.workload).unwrap();
            prop_assert_eq!(found.len(), rows.len());
            for (found, want) in found.iter().zip(&norms) {
                prop_assert!((found - want).abs() <= 1e-8 * (1.0 + want), "{class:?}: {found} {want}");
            }
            let error = mechanism.error(&problem.workload).unwrap();
            prop_assert!((error.rms / oracle::rms(&b) - 1.0).abs() < 1e-8, "{class:?}");
            prop_assert!((error.max / oracle::max_row_norm(&b) - 1.0).abs() < 1e-8, "{class:?}");
        }
    }

    /// Asking every query twice, or in another order, changes neither loss.
    #[test]
    fn queries_asked_twice_cost_the_same((rows, participation) in case(), max in any::<bool>()) {
        let objective = if max { Max } else { Rms };
        let once = problem(rows.clone(), participation.clone(), objective);
        let twice = problem(rows.iter().rev().chain(&rows).cloned().collect(), participation, objective);
        for spec in ["identity", "banded:1", "toeplitz", "dense"] {
            let ((x, of_x), (y, of_y)) = (designed(spec, &once), designed(spec, &twice));
            // Dense designs are solved to a gap; without one they may end in different minima.
            let gap = |gap: Option<f64>| if spec == "dense" { gap.unwrap_or(0.02) } else { 0.0 };
            let tolerance = 1e-6 + gap(of_x) + gap(of_y);
            prop_assert!((x / y - 1.0).abs() < tolerance, "{spec} {objective}: {x} against {y}");
        }
    }

    /// A lower-triangular workload costs the same as a batch of its rows.
    #[test]
    fn a_triangular_batch_is_its_matrix(n in 1usize..8, max in any::<bool>(), seed in 0u32..1000) {
        let entry = |i: usize, j: usize| 1.0 + ((i * 7 + j * 3 + seed as usize) % 5) as f64 / 3.0;
        let lower: Rows = (0..n).map(|i| (0..=i).map(|j| entry(i, j)).collect()).collect();
        let padded = lower.iter().map(|row| [&row[..], &vec![0.0; n - row.len()]].concat()).collect();
        let objective = if max { Max } else { Rms };
        let batch = problem(padded, Participation::Single, objective);
        let matrix = Problem { workload: Workload::Matrix { rows: lower }, ..batch.clone() };
        for spec in ["dense", "toeplitz", "banded:2", "blt:2"] {
            if objective == Max && spec != "dense" || spec == "banded:2" && n < 2 {
                continue;
            }
            let ((x, _), (y, _)) = (designed(spec, &batch), designed(spec, &matrix));
            prop_assert!((x / y - 1.0).abs() < 1e-4, "{spec} {objective} n={n}: {x} against {y}");
        }
    }
}

/// Four queries on six steps under min-sep: the order of the queries once led to losses 4% apart.
#[test]
fn the_order_of_queries_that_span_few_directions_does_not_matter() {
    let rows = vec![
        vec![1.58, 0.0, 1.0, 0.0, 1.0, 0.0],
        vec![0.0, 0.0, 0.0, 1.0, -0.22, -1.176],
        vec![0.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        vec![1.0, 1.0, 1.0, 0.0, 1.0, -1.848],
    ];
    let loss = |rows| {
        designed("dense", &problem(rows, Participation::MinSep { min_sep: 2, max_participations: 2 }, Rms)).0
    };
    let twice = rows.iter().rev().chain(&rows).cloned().collect();
    let losses = [loss(rows.iter().rev().cloned().collect()), loss(twice), loss(rows)];
    assert!(losses.iter().all(|x| (x / losses[2] - 1.0).abs() < 5e-3), "{losses:?}");
}

/// No design beats the bound that certifies the dense one.
#[test]
fn nothing_is_below_the_certified_bound() {
    let config = Config { cases: 200, failure_persistence: None, ..Config::default() };
    let certified = Cell::new(0);
    let done = TestRunner::new(config).run(&(case(), any::<bool>()), |((rows, participation), max)| {
        let problem = problem(rows, participation, if max { Max } else { Rms });
        let (dense, gap) = designed("dense", &problem);
        if let Some(gap) = gap {
            certified.set(certified.get() + 1);
            let bound = dense / (1.0 + gap).sqrt();
            for spec in ["identity", "toeplitz", "blt:1", "banded:1", "smooth-tree", "honaker-full"] {
                let found = designed(spec, &problem).0;
                prop_assert!(found >= bound * (1.0 - 1e-6), "{spec}: {found} below {bound}");
            }
        }
        Ok(())
    });
    done.unwrap_or_else(|failure| panic!("{failure}"));
    println!("{} of 200 are certified", certified.get());
    assert!(certified.get() >= 100, "{certified:?} of 200 are certified");
}

/// Every range of 16 bins: the dense design is certified, and beats noise on the bins and on the answers.
#[test]
fn ranges_are_answered_together() {
    let n = 16;
    let range =
        |i: usize, j: usize| (0..n).map(|t| f64::from(u8::from(i <= t && t <= j))).collect::<Vec<_>>();
    let rows: Rows = (0..n).flat_map(|i| (i..n).map(move |j| (i, j))).map(|(i, j)| range(i, j)).collect();
    for objective in [Rms, Max] {
        let problem = problem(rows.clone(), Participation::Single, objective);
        let (dense, gap) = designed("dense", &problem);
        let (bins, tree) = (designed("identity", &problem).0, designed("honaker-full", &problem).0);
        assert!(gap.unwrap() < 1e-4, "{objective}: {gap:?}");
        assert!(dense < 0.98 * tree.min(bins), "{objective}: {dense}, {tree}, {bins}");
    }
}

#[test]
fn batches_are_refused_by_name() {
    let of = |rows: Rows, steps| Workload::Queries { rows }.check_steps(steps).unwrap_err().to_string();
    for (rows, steps, named) in [
        (vec![], 2, "number of queries is 0"),
        (vec![vec![]], 2, "length of a query is 0"),
        (vec![vec![1.0, 2.0], vec![1.0]], 2, "query 1 is 1 numbers"),
        (vec![vec![1.0, f64::NAN]], 2, "query 0 is NaN at index 1"),
        (vec![vec![0.0, 0.0]], 2, "queries is 0 everywhere"),
        (vec![vec![1.0, 0.0]], 3, "length of a query is 2"),
    ] {
        assert!(of(rows, steps).starts_with(named), "{named}");
    }
    let rows = vec![vec![1.0, 1.0], vec![0.0, 1.0], vec![1.0, 0.0]];
    let refused = StrategySpec::new(Class::OutputPerturbation)
        .design(&problem(rows, Participation::Single, Rms))
        .unwrap_err();
    assert!(refused.is_bad_input() && refused.to_string().starts_with("workload"), "{refused}");
}

/// Beyond 512 steps, squared errors are summed row by row. Designs for a batch are as good as those for the
/// same rows as a lower-triangular matrix, whose errors are summed column by column.
#[test]
fn long_batches_are_designed_as_their_matrix_is() {
    let n = 520;
    let entry = |i: usize, j: usize| (1.0 + (i % 7) as f64) / (1.0 + (i - j) as f64).sqrt();
    let lower: Rows = (0..n).map(|i| (0..=i).map(|j| entry(i, j)).collect()).collect();
    let padded = lower.iter().map(|row| [&row[..], &vec![0.0; n - row.len()]].concat()).collect();
    let batch = problem(padded, Participation::Cyclic { min_sep: 52, max_participations: 10 }, Rms);
    let matrix = Problem { workload: Workload::Matrix { rows: lower }, ..batch.clone() };
    for spec in ["banded-toeplitz:8", "blt:2", "banded-inverse:4"] {
        let (found, known) = (designed(spec, &batch).0, designed(spec, &matrix).0);
        assert!((found / known - 1.0).abs() < 1e-3, "{spec}: {found}, by columns {known}");
    }
}

/// Few queries over many steps, which no triangular workload of this size could replace in time.
#[test]
fn few_queries_over_thousands_of_steps_are_designed() {
    let n = 4000;
    let query = |i: usize| (0..n).map(|t| f64::from(u8::from(t % (3 + i) < 2)) / (1.0 + i as f64)).collect();
    let rows: Rows = (0..5).map(query).collect();
    let participation = Participation::Cyclic { min_sep: 400, max_participations: 10 };
    let batch = problem(rows, participation, Rms);
    let prefix = Problem { workload: Workload::Prefix, ..batch.clone() };
    let independent = designed("identity", &batch).0;
    for spec in ["banded-toeplitz:16", "blt:2", "banded:4", "rational:2", "banded-inverse:4"] {
        let found = designed(spec, &batch).0;
        let for_prefix = spec.parse::<StrategySpec>().unwrap().design(&prefix).unwrap().value;
        let of_prefix = for_prefix.loss(&batch.workload, &batch.participation, Adjacency::ZeroOut).unwrap();
        assert!(found <= of_prefix.rms_loss * (1.0 + 1e-6), "{spec}: {found}, {}", of_prefix.rms_loss);
        assert!(found <= independent * (1.0 + 1e-6), "{spec}: {found}, {independent}");
    }
}
