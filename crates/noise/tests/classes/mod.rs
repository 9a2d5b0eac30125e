//! The table of classes, as streams are tested on it.

use antinoise_mechanism::optimize::Objective;
use antinoise_mechanism::strategy::{ColumnNormalized, Recipe, Restarted};
use antinoise_mechanism::{Class, Participation, Problem, Strategy, Workload};

/// A strategy of every class, and the strategies that are made of others, nested too.
pub fn designs(steps: usize) -> Vec<(String, Strategy)> {
    let design = |class: Class, steps: usize| {
        let problem = Problem {
            steps,
            workload: Workload::Prefix,
            participation: Participation::Single,
            objective: Objective::Rms,
        };
        let mut recipe = Recipe::new(class);
        match class {
            Class::BandedToeplitz | Class::Banded | Class::BandedInverse => recipe.bands = Some(3),
            Class::Blt => recipe.order = Some(2),
            _ => {}
        }
        recipe.design(&problem).unwrap().value
    };
    let restarted = |run: Strategy| Strategy::Restarted(Restarted::new(steps, run).unwrap());
    let normalized = |inner| Strategy::ColumnNormalized(ColumnNormalized::new(inner).unwrap());
    let (run, short) = (steps.div_ceil(3), steps.div_ceil(6));
    let twice = Strategy::Restarted(Restarted::new(run, design(Class::Toeplitz, short)).unwrap());
    let mut all: Vec<(String, Strategy)> =
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
