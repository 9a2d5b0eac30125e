//! Strategies as `--strategy file:PATH` reads them.

use antinoise_mechanism::design::Objective;
use antinoise_mechanism::{AnyStrategy, Participation, Problem, Separation, Workload};
use antinoise_mechanism::{Class, design::StrategySpec};

/// Longer ones only cost time.
const MOST_STEPS: usize = 48;

/// What is accepted is written and read as itself, and its figures are numbers that bound what C itself says.
pub fn run(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let Ok(strategy) = toml::from_str::<AnyStrategy>(text) else { return true };
    if strategy.check().is_err() {
        return true;
    }
    let written = toml::to_string(&strategy).expect("a strategy is numbers, words and lists");
    assert_eq!(toml::from_str::<AnyStrategy>(&written).as_ref(), Ok(&strategy), "{written}");
    if strategy.steps() > MOST_STEPS {
        return false;
    }
    if let Ok(recursion) = strategy.recursion() {
        assert!(recursion.bandwidth(strategy.steps()) <= strategy.steps());
    }
    if let Ok(error) = strategy.error(&Workload::Prefix) {
        assert!([error.max, error.rms].iter().all(|x| x.is_normal() && *x > 0.0), "{error:?}");
    }
    let last = strategy.steps() - 1;
    for schema in [
        Participation::Single,
        Participation::Cyclic { min_sep: 1 + last / 2, max_participations: 1 + last / (1 + last / 2) },
        Participation::MinSep { min_sep: 1 + last / 3, max_participations: 1 + last / (1 + last / 3) },
    ] {
        let Ok(sensitivity) = strategy.sensitivity(&schema) else { continue };
        let least = least_sensitivity(&strategy, &schema);
        assert!(
            sensitivity.value.is_normal() && sensitivity.value >= least * (1.0 - 1e-9),
            "{sensitivity:?} < {least}"
        );
    }
    true
}

/// What the sensitivity is at least: the norm of the sum of the columns of one pattern, b apart from each
/// first step on.
pub fn least_sensitivity(strategy: &AnyStrategy, schema: &Participation) -> f64 {
    let Ok(encoder) = strategy.encoder() else { return 0.0 };
    let (steps, c) = (strategy.steps(), encoder.to_dense());
    let patterns: Vec<Vec<usize>> = match schema {
        Participation::Patterns { patterns } => patterns.clone(),
        _ => {
            let Separation { min_sep: b, max_participations: k } = schema.separation(steps);
            (0..steps).map(|first| (first..steps).step_by(b).take(k).collect()).collect()
        }
    };
    let norm = |pattern: &Vec<usize>| {
        let row = |i: usize| pattern.iter().map(|&j| c.column(j)[i]).sum::<f64>();
        (0..steps).map(|i| row(i).powi(2)).sum::<f64>().sqrt()
    };
    patterns.iter().map(norm).fold(0.0, f64::max)
}

pub fn seeds() -> Vec<Vec<u8>> {
    let problem = Problem {
        steps: 6,
        workload: Workload::Prefix,
        participation: Participation::Cyclic { min_sep: 3, max_participations: 2 },
        objective: Objective::Rms,
    };
    let designed = |spec: StrategySpec| spec.design(&problem).ok().map(|found| found.value);
    let classes = Class::ALL.iter().map(|class| StrategySpec::new(*class));
    let more = ["toeplitz+column-normalized", "blt:2+x2", "banded-toeplitz:2+x3+column-normalized"];
    let more = more.map(|text| text.parse().expect("a spec"));
    let written = |strategy: AnyStrategy| toml::to_string(&strategy).expect("text").into_bytes();
    classes.chain(more).filter_map(designed).map(written).collect()
}
