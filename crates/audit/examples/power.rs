//! The fraction of the stated mu that the audit proves, for every class, schema and kind of arithmetic: a
//! table for `docs/results/audit.md`.
//!
//! ```text
//! cargo run --release -p antinoise-audit --example power [STEPS] [MU] [CLASS ...]
//! ```
//!
//! Fails if an audit rejects, or proves less than nine tenths of the stated mu and of the mu that the
//! noisy sums can reveal.

use antinoise_audit::{BuiltinMechanism, Claim, Report, Settings, audit};
use antinoise_mechanism::design::{Objective, StrategySpec};
use antinoise_mechanism::{Adjacency, AnyStrategy, Class, Participation, Problem, Workload};
use antinoise_plan::ArithmeticKind;

const ALPHA: f64 = 1e-3;
const LEAST: f64 = 0.9;

fn schemas(steps: usize) -> [Participation; 4] {
    let (min_sep, max_participations) = (steps / 4, 4);
    [
        Participation::Single,
        Participation::FullBatch,
        Participation::Cyclic { min_sep, max_participations },
        Participation::MinSep { min_sep, max_participations },
    ]
}

fn design(class: Class, steps: usize, participation: &Participation) -> AnyStrategy {
    let (workload, participation) = (Workload::Prefix, participation.clone());
    let problem = Problem { steps, workload, participation, objective: Objective::Rms };
    StrategySpec::new(class).design(&problem).expect("every class has a strategy").value
}

fn audited(
    strategy: &AnyStrategy,
    schema: &Participation,
    mu: f64,
    arithmetic: ArithmeticKind,
) -> Result<Report, antinoise_audit::Error> {
    let claim =
        Claim::of_strategy(strategy.clone(), schema.clone(), Adjacency::ZeroOut, 1.0 / mu, arithmetic)?;
    audit(&claim, &mut BuiltinMechanism::new(claim.clone(), 1), &Settings::new(ALPHA, strategy.steps()))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let steps: usize = arguments.next().map_or(Ok(64), |steps| steps.parse())?;
    let mu: f64 = arguments.next().map_or(Ok(1.0), |mu| mu.parse())?;
    let only: Vec<String> = arguments.collect();
    println!("{steps} steps, mu {mu} stated, alpha {ALPHA}.\n");
    println!("| strategy | schema | arithmetic | reachable | seen | of the stated | runs | seconds |");
    println!("|---|---|---|---|---|---|---|---|");
    let mut failed = Vec::new();
    let mut seconds = 0.0;
    let chosen = |class: &&Class| only.is_empty() || only.iter().any(|name| name == class.name());
    for &class in Class::ALL.iter().filter(chosen) {
        for schema in schemas(steps) {
            let strategy = design(class, steps, &schema);
            for (arithmetic, word) in
                [(ArithmeticKind::PlainFloatingPoint, "plain"), (ArithmeticKind::Grid, "grid")]
            {
                let report = audited(&strategy, &schema, mu, arithmetic)?;
                let Report { mu_lower, mu_reachable, runs, .. } = &report;
                let ratio = mu_lower / mu;
                let name = class.name();
                println!(
                    "| {name} | {schema} | {word} | {mu_reachable:.3} | {mu_lower:.3} | {ratio:.3} | {runs} | {:.2} |",
                    report.seconds
                );
                // Noise that is in no noisy sum cannot be observed.
                if ratio < LEAST * (mu_reachable / mu).min(1.0) || !report.accepted {
                    failed.push(format!("{name} {schema} {word}: {report:#?}"));
                }
                seconds += report.seconds;
            }
        }
    }
    println!("\n{seconds:.0} s in all.");
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n").into()) }
}
