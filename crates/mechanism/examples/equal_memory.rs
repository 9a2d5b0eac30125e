//! Losses of rational, BLT and banded Toeplitz strategies with the same number of vectors of state.
//!
//! `cargo run --release -p antinoise-mechanism --example equal_memory -- [STEPS]`

use std::time::Instant;

use antinoise_mechanism::design::{Objective, StrategySpec};
use antinoise_mechanism::{Adjacency, Problem, Result};

fn main() -> Result<()> {
    let steps = std::env::args().nth(1).map_or(512, |steps| steps.parse().expect("a number of steps"));
    println!("| workload | schema | loss | state | banded-toeplitz | blt | rational | gain | seconds |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let (b, k) = (steps / 8, 8);
    for workload in ["prefix", "momentum:0.9"] {
        for schema in ["single".to_owned(), format!("cyclic:{b},{k}"), format!("min-sep:{b},{k}")] {
            for objective in [Objective::Rms, Objective::Max] {
                for state in [2, 4, 6, 8] {
                    let problem = Problem::prefix(steps)
                        .with_workload(workload.parse()?)
                        .with_participation(schema.parse()?)
                        .with_objective(objective);
                    let loss = |name: String| -> Result<f64> {
                        let strategy = name.parse::<StrategySpec>()?.design(&problem)?.value;
                        let loss =
                            strategy.loss(&problem.workload, &problem.participation, Adjacency::ZeroOut)?;
                        Ok(if objective == Objective::Max { loss.max_loss } else { loss.rms_loss })
                    };
                    let banded = loss(format!("banded-toeplitz:{}", state + 1))?;
                    let blt = loss(format!("blt:{state}"))?;
                    let start = Instant::now();
                    let rational = loss(format!("rational:{state}"))?;
                    let seconds = start.elapsed().as_secs_f64();
                    let gain = 100.0 * (1.0 - rational / banded.min(blt));
                    println!(
                        "| {workload} | {schema} | {objective} | {state} | {banded:.4} | {blt:.4} | {rational:.4} | {gain:.2}% | {seconds:.1} |"
                    );
                }
            }
        }
    }
    Ok(())
}
