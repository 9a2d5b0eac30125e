//! The table of classes, as streams are tested on it.

use antinoise_linear::Matrix;
use antinoise_mechanism::design::{Objective, StrategySpec};
use antinoise_mechanism::strategy::{ColumnNormalized, Restarted};
use antinoise_mechanism::{AnyStrategy, Class, Participation, Problem, Workload};

/// A matrix that is not triangular and has more rows than columns; one that is square; one with bands.
#[allow(dead_code)]
pub fn matrices(steps: usize) -> Vec<(String, AnyStrategy)> {
    let entry = |i: usize, j: usize| ((7 * i + 3 * j) % 11) as f64 / 11.0 + 2.0 * f64::from(i == j);
    let banded = |i: usize, j: usize| if (j..j + 3).contains(&i) { entry(i, j) } else { 0.0 };
    let of = |name: &str, c: Matrix| (name.to_owned(), AnyStrategy::of_matrix(&c).unwrap());
    vec![
        of("tall matrix", Matrix::from_fn(steps + 5, steps, entry)),
        of("square matrix", Matrix::from_fn(steps, steps, entry)),
        of("banded matrix", Matrix::from_fn(steps, steps, banded)),
    ]
}

/// A strategy of every class, and the strategies that are made of others, nested too.
pub fn designs(steps: usize) -> Vec<(String, AnyStrategy)> {
    let design = |class: Class, steps: usize| {
        let problem = Problem {
            steps,
            workload: Workload::Prefix,
            participation: Participation::Single,
            objective: Objective::Rms,
        };
        let mut spec = StrategySpec::new(class);
        match class {
            Class::BandedToeplitz | Class::Banded | Class::BandedInverse => spec.bands = Some(3),
            Class::Blt | Class::VaryingBlt => spec.order = Some(2),
            Class::Rational => spec.order = Some(3),
            _ => {}
        }
        spec.design(&problem).unwrap().value
    };
    let restarted = |run: AnyStrategy| AnyStrategy::Restarted(Restarted::new(steps, run).unwrap());
    let normalized = |inner| AnyStrategy::ColumnNormalized(ColumnNormalized::new(inner).unwrap());
    let (run, short) = (steps.div_ceil(3), steps.div_ceil(6));
    let twice = AnyStrategy::Restarted(Restarted::new(run, design(Class::Toeplitz, short)).unwrap());
    let mut all: Vec<(String, AnyStrategy)> =
        Class::ALL.iter().map(|&class| (class.name().to_owned(), design(class, steps))).collect();
    all.extend([
        ("column-normalized".to_owned(), normalized(design(Class::BandedToeplitz, steps))),
        ("restarted".to_owned(), restarted(design(Class::Blt, run))),
        ("restarted-normalized".to_owned(), restarted(normalized(design(Class::Toeplitz, run)))),
        ("normalized-restarted".to_owned(), normalized(restarted(design(Class::Tree, run)))),
        ("restarted-restarted".to_owned(), restarted(twice)),
    ]);
    all
}
