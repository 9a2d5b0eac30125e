//! What designs cost and reach: `design_cost STEPS SCHEMA OBJECTIVE WORKLOAD RECIPE...`.

use std::time::Instant;

use antinoise_mechanism::design::StrategySpec;
use antinoise_mechanism::{Adjacency, Problem};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [steps, participation, objective, workload, specs @ ..] = &given[..] else {
        return Err("usage: design_cost STEPS SCHEMA OBJECTIVE WORKLOAD RECIPE...".into());
    };
    let problem = Problem {
        steps: steps.parse()?,
        workload: workload.parse()?,
        participation: participation.parse()?,
        objective: objective.parse()?,
    };
    for text in specs {
        let spec: StrategySpec = text.parse()?;
        let started = Instant::now();
        let found = spec.design(&problem)?;
        let seconds = started.elapsed().as_secs_f64();
        let cost = found.value.loss(&problem.workload, &problem.participation, Adjacency::ZeroOut)?;
        println!(
            "{text:24} max loss {:.6}, RMS loss {:.6}, total loss {:.6e}; {:?}, gap {:?}, {} iterations, {seconds:.1} s; {:?}: \
             {}",
            cost.max_loss,
            cost.rms_loss,
            cost.total_loss,
            found.status,
            found.gap,
            found.iterations,
            cost.sensitivity.kind,
            cost.sensitivity.source
        );
    }
    Ok(())
}
