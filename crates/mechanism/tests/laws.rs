//! Laws that hold for every class of mechanism, on one table of cases.

mod oracle;
mod sweeps;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock};

use antinoise_input::BadInput;
use antinoise_mechanism::design::{CoefficientRule, Objective, StrategySpec};
use antinoise_mechanism::sensitivity::Kind;
use antinoise_mechanism::{Adjacency, AnyStrategy, Class, Participation, Problem, Workload};
use rayon::prelude::*;
use sweeps::is_whole;

fn workloads(n: usize) -> Vec<Workload> {
    vec![
        Workload::Prefix,
        Workload::Momentum { momentum: 0.9, weight_decay: 0.0 },
        Workload::Momentum { momentum: 0.5, weight_decay: 0.1 },
        Workload::Nesterov { momentum: 0.9 },
        Workload::Decay { gamma: 0.8 },
        Workload::Window { width: 3 },
        Workload::Cooldown { start: n / 2, last: 0.2 },
        Workload::Schedule { rates: (0..n).map(|t| 1.0 / (1.0 + t as f64)).collect(), momentum: 0.9 },
        Workload::Toeplitz { coefficients: vec![2.0, -0.5, 1.0] },
        Workload::Matrix {
            rows: (0..n).map(|i| (0..=i).map(|j| 1.0 + ((i * j) % 3) as f64).collect()).collect(),
        },
    ]
}

fn schemas(n: usize) -> Vec<Participation> {
    let (b, k) = (n.div_ceil(3), 3);
    let mut all = vec![Participation::Single, Participation::FullBatch];
    for (min_sep, max_participations) in [(1, n), (2, 2), (b, k), (b, 2), (n, 1)] {
        all.push(Participation::Cyclic { min_sep, max_participations });
        all.push(Participation::MinSep { min_sep, max_participations });
    }
    all.push(Participation::Patterns {
        patterns: vec![(0..n).step_by(2).take(4).collect(), (n / 2..n).step_by(3).take(3).collect()],
    });
    all.retain(|schema| schema.check(n).is_ok());
    all
}

/// The sizes that a class is tried with, then the class normalised, restarted and both.
fn specs(class: Class, n: usize) -> Vec<StrategySpec> {
    let base = StrategySpec::new(class);
    let mut all = match class {
        Class::BandedToeplitz | Class::BandedInverse => {
            let sizes = [1, 2, n.div_ceil(3), n];
            let of = |form| sizes.map(|bands| StrategySpec { bands: Some(bands.min(n)), rule: form, ..base });
            [of(CoefficientRule::SquareRoot), of(CoefficientRule::Optimized)].concat()
        }
        Class::Blt | Class::VaryingBlt | Class::Rational => {
            [1, 2, 4].map(|order| StrategySpec { order: Some(order), ..base }).to_vec()
        }
        Class::Toeplitz | Class::Banded => {
            vec![base, StrategySpec { rule: CoefficientRule::SquareRoot, ..base }]
        }
        _ => vec![base],
    };
    all.extend([
        StrategySpec { column_normalize: true, ..base },
        StrategySpec { restarts: Some(2.min(n)), ..base },
        StrategySpec { restarts: Some(n.div_ceil(3)), column_normalize: true, ..base },
    ]);
    all
}

struct Case {
    problem: Problem,
    spec: StrategySpec,
    strategy: AnyStrategy,
    gap: Option<f64>,
}

impl Case {
    fn designed_for_its_workload(&self) -> bool {
        self.spec.design_workload(&self.problem.workload, self.problem.steps) == self.problem.workload
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let p = &self.problem;
        write!(f, "{:?} n={} {} {} {}", self.spec, p.steps, p.workload, p.participation, p.objective)
    }
}

/// Every problem of `steps` steps with the strategy of every spec; of 33 steps or more, unless sweeps are
/// whole, one problem in eight, so that every workload and every schema is there.
fn cases(steps: usize) -> Vec<Case> {
    let objective = if steps.is_multiple_of(2) { Objective::Max } else { Objective::Rms };
    let problems: Vec<Problem> = workloads(steps)
        .iter()
        .flat_map(|a| schemas(steps).into_iter().map(move |participation| (a.clone(), participation)))
        .map(|(workload, participation)| Problem { steps, workload, participation, objective })
        .collect();
    let of_problem = |problem: &Problem| {
        let design = |spec: StrategySpec| {
            let found = spec.design(problem).expect("a valid problem has a strategy");
            Case { problem: problem.clone(), spec, gap: found.gap, strategy: found.value }
        };
        Class::ALL.iter().flat_map(|&class| specs(class, steps)).map(design).collect::<Vec<_>>()
    };
    let share = if steps >= 33 && !is_whole() { 8 } else { 1 };
    problems.par_iter().step_by(share).flat_map_iter(of_problem).collect()
}

/// The cases, designed once for all laws.
fn each_case(steps: &[usize], law: impl FnMut(&Case)) {
    static DESIGNED: Mutex<BTreeMap<usize, Arc<OnceLock<Vec<Case>>>>> = Mutex::new(BTreeMap::new());
    let of = |&steps: &usize| {
        let slot = DESIGNED.lock().unwrap().entry(steps).or_default().clone();
        slot.get_or_init(|| cases(steps));
        slot
    };
    let slots: Vec<Arc<OnceLock<Vec<Case>>>> = steps.iter().map(of).collect();
    slots.iter().filter_map(|slot| slot.get()).flatten().for_each(law);
}

/// Each strategy once, however many problems lead to it: for laws on C alone.
fn each_strategy(steps: &[usize], mut law: impl FnMut(&Case)) {
    let mut seen: Vec<AnyStrategy> = Vec::new();
    each_case(steps, |case| {
        if !seen.contains(&case.strategy) {
            seen.push(case.strategy.clone());
            law(case);
        }
    });
}

fn close(got: f64, want: f64, relative: f64) -> bool {
    (got - want).abs() <= relative * want.abs().max(1e-300)
}

fn encoder(case: &Case) -> oracle::Matrix {
    let c = case.strategy.encoder().unwrap().to_dense();
    (0..c.nrows()).map(|i| (0..c.ncols()).map(|j| c[(i, j)]).collect()).collect()
}

/// N C = I: what is released is A (G + N Z) and what is private C G + Z. For square C this is C C^-1 = I.
#[test]
fn the_streaming_recursion_inverts_the_strategy() {
    each_strategy(&[1, 2, 3, 7, 8, 33], |case| {
        let inverse = oracle::of_recursion(&case.strategy.recursion().unwrap(), case.problem.steps);
        let identity = oracle::product(&inverse, &encoder(case));
        for (i, row) in identity.iter().enumerate() {
            for (j, x) in row.iter().enumerate() {
                assert!((x - f64::from(i == j)).abs() < 1e-9, "{case}: C^-1 C [{i}, {j}] = {x}");
            }
        }
    });
}

#[test]
fn errors_are_the_norms_of_the_dense_decoder() {
    each_case(&[1, 2, 3, 7, 8, 33], |case| {
        let n = case.problem.steps;
        let mechanism = &*case.strategy;
        let a = oracle::workload(&case.problem.workload, n);
        let b = oracle::product(&a, &oracle::of_recursion(&mechanism.recursion().unwrap(), n));
        let error = mechanism.error(&case.problem.workload).unwrap();
        assert!(
            close(error.max, oracle::max_row_norm(&b), 1e-9),
            "{case}: {} {}",
            error.max,
            oracle::max_row_norm(&b)
        );
        let rows = mechanism.row_errors(&case.problem.workload).unwrap();
        for (row, b) in rows.iter().zip(&b) {
            assert!(close(*row, b.iter().map(|x| x * x).sum::<f64>().sqrt(), 1e-9), "{case}");
        }
        assert!(close(error.rms, oracle::rms(&b), 1e-9), "{case}: {} {}", error.rms, oracle::rms(&b));
    });
}

#[test]
fn sensitivity_is_the_brute_force_one_or_bounds_it() {
    let mut exact = 0;
    each_strategy(&[1, 2, 3, 5, 8, 10], |case| {
        // Every strategy is measured under every schema, not only the one it was designed for.
        for schema in schemas(case.problem.steps) {
            let fast = case.strategy.sensitivity(&schema).unwrap();
            let brute = oracle::sensitivity(&encoder(case), &schema);
            match fast.kind {
                Kind::Exact => {
                    exact += 1;
                    assert!(
                        close(fast.value, brute, 1e-9),
                        "{case} under {schema}: {fast:?} against {brute}"
                    );
                }
                Kind::UpperBound => {
                    assert!(
                        fast.value >= brute * (1.0 - 1e-9),
                        "{case} under {schema}: {fast:?} against {brute}"
                    );
                }
            }
        }
    });
    assert!(exact > 10_000, "exactness must not be claimed away: {exact}");
}

fn objective_loss(spec: &StrategySpec, strategy: &AnyStrategy, problem: &Problem) -> f64 {
    let cost = strategy.loss(&problem.workload, &problem.participation, Adjacency::ZeroOut).unwrap();
    let found = match problem.objective {
        Objective::Max => cost.max_loss,
        Objective::Rms => cost.rms_loss,
    };
    assert!(found.is_finite() && found > 0.0, "{spec:?} {problem:?}");
    found
}

#[test]
fn optimising_never_costs_more_than_the_formula() {
    let mut compared = 0;
    each_case(&[2, 7, 8, 33], |case| {
        let plain = !case.spec.column_normalize && case.spec.restarts.is_none();
        let optimised =
            [Class::BandedToeplitz, Class::BandedInverse, Class::Banded].contains(&case.spec.class);
        if !plain
            || !optimised
            || case.spec.rule != CoefficientRule::Optimized
            || !case.designed_for_its_workload()
        {
            return;
        }
        let fixed = StrategySpec { rule: CoefficientRule::SquareRoot, ..case.spec };
        let formula = fixed.design(&case.problem).unwrap().value;
        if formula.sensitivity(&case.problem.participation).unwrap().kind == Kind::Exact {
            let found = objective_loss(&case.spec, &case.strategy, &case.problem);
            let formula = objective_loss(&fixed, &formula, &case.problem);
            assert!(found <= formula * (1.0 + 1e-9), "{case}: {found} against {formula}");
            compared += 1;
        }
    });
    assert!(compared > 300, "{compared}");
}

#[test]
fn a_blt_never_costs_more_for_another_buffer() {
    let (mut below, mut compared) = (f64::INFINITY, 0);
    each_case(&[2, 7, 8, 33], |case| {
        let is_blt = case.spec.class == Class::Blt && case.designed_for_its_workload();
        if let Some(order) = case.spec.order.filter(|_| is_blt) {
            let found = objective_loss(&case.spec, &case.strategy, &case.problem);
            assert!(order == 1 || found <= below * (1.0 + 1e-9), "{case}: {found} after {below}");
            below = found;
            compared += usize::from(order > 1);
        }
    });
    assert!(compared >= 24, "{compared}");
}

/// No class has less loss than what the dense design certifies as the least for all matrices.
#[test]
fn nothing_is_below_the_certified_bound() {
    let (mut bounds, mut losses) = (HashMap::new(), Vec::new());
    each_case(&[2, 3, 7, 8], |case| {
        let found = objective_loss(&case.spec, &case.strategy, &case.problem);
        let problem = format!("{:?}", case.problem);
        if let (Class::Dense, Some(gap)) = (case.spec.class, case.gap) {
            // The gap is that of the squared loss.
            bounds.insert(problem.clone(), found / (1.0 + gap).sqrt());
        }
        losses.push((problem, format!("{case}"), found));
    });
    let mut compared = 0;
    for (problem, case, found) in losses {
        if let Some(bound) = bounds.get(&problem) {
            assert!(found >= bound * (1.0 - 1e-9), "{case}: {found} below {bound}");
            compared += 1;
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn columns_and_inner_products_are_those_of_the_dense_matrix() {
    each_strategy(&[1, 3, 8, 33], |case| {
        let c = case.strategy.encoder().unwrap();
        let columns = oracle::transposed(&encoder(case));
        for (j, column) in columns.iter().enumerate() {
            assert_eq!(&c.column(j), column, "{case}");
            for (t, x) in c.gram_lag(j).iter().enumerate() {
                let want: f64 = columns[t].iter().zip(&columns[t + j]).map(|(x, y)| x * y).sum();
                assert!((x - want).abs() < 1e-12 * (1.0 + want.abs()), "{case}: lag {j} at {t}");
            }
            assert!(j < c.bandwidth() || c.gram_lag(j).iter().all(|&x| x == 0.0), "{case}");
        }
    });
}

#[test]
fn a_saved_strategy_comes_back_to_the_last_digit() {
    each_strategy(&[1, 8, 33], |case| {
        let text = toml::to_string(&case.strategy).unwrap();
        assert_eq!(toml::from_str::<AnyStrategy>(&text).unwrap(), case.strategy, "{case}");
    });
}

/// The sensitivity of several participations has cross terms: leaving them out understates it by up to k.
#[test]
fn cross_terms_are_in_the_sensitivity() {
    let schema = Participation::Cyclic { min_sep: 2, max_participations: 3 };
    let problem = Problem {
        steps: 6,
        workload: Workload::Prefix,
        participation: schema.clone(),
        objective: Objective::Rms,
    };
    let workload = StrategySpec::new(Class::OutputPerturbation).design(&problem).unwrap().value;
    let found = workload.sensitivity(&schema).unwrap().value;
    // Columns 0, 2, 4 of the ones matrix add up to (1, 1, 2, 2, 3, 3); without cross terms: 6 + 4 + 2.
    assert!(close(found * found, 28.0, 1e-12), "{found}");
    assert!(found * found > 12.0);
}

/// Normalising rows instead of columns leaves columns longer than 1: the sensitivity must say so.
#[test]
fn unit_rows_are_not_unit_columns() {
    let n = 6;
    let rows = (1..=n).map(|length| vec![1.0 / (length as f64).sqrt(); length]).collect();
    let problem = Problem {
        steps: n,
        workload: Workload::Matrix { rows },
        participation: Participation::Single,
        objective: Objective::Rms,
    };
    let unit_rows = StrategySpec::new(Class::OutputPerturbation).design(&problem).unwrap().value;
    let found = unit_rows.sensitivity(&Participation::Single).unwrap().value;
    let harmonic: f64 = (1..=n).map(|i| 1.0 / i as f64).sum();
    assert!(close(found * found, harmonic, 1e-12) && harmonic > 2.4);
    let unit_columns =
        StrategySpec { column_normalize: true, ..StrategySpec::new(Class::OutputPerturbation) };
    let unit_columns = unit_columns.design(&problem).unwrap().value;
    assert!(close(unit_columns.sensitivity(&Participation::Single).unwrap().value, 1.0, 1e-12));
}

/// Dense noise rows are refused by name before they fill the memory; the loss of prefix sums needs none.
#[test]
fn too_many_dense_noise_rows_are_refused() {
    let problem = Problem::prefix(4097);
    for class in [Class::HonakerFull, Class::FourierOptimal] {
        let strategy = StrategySpec::new(class).design(&problem).unwrap().value;
        let refused = strategy.recursion().unwrap_err();
        assert!(refused.is_bad_input() && refused.to_string().starts_with("steps"), "{refused}");
        assert!(strategy.sensitivity(&problem.participation).is_ok());
        assert!(strategy.error(&problem.workload).is_ok());
    }
}
