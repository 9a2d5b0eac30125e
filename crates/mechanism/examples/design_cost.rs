//! What designs cost and reach: `design_cost STEPS SCHEMA OBJECTIVE WORKLOAD RECIPE...`. Besides the names of
//! workloads, `momentum-cooldown:BETA,FINAL` is momentum BETA with learning rates that fall linearly to FINAL
//! over the last quarter of the steps.

use std::time::Instant;

use antinoise_mechanism::design::StrategySpec;
use antinoise_mechanism::{Adjacency, Problem, Workload};

fn named(text: &str, steps: usize) -> Result<Workload, Box<dyn std::error::Error>> {
    let Some(numbers) = text.strip_prefix("momentum-cooldown:") else { return Ok(text.parse()?) };
    let (momentum, last) = numbers.split_once(',').ok_or("momentum-cooldown:BETA,FINAL")?;
    let (momentum, last): (f64, f64) = (momentum.parse()?, last.parse()?);
    let falling = (steps / 4).max(1);
    let rate = |t: usize| match (t + 1 + falling).saturating_sub(steps) {
        0 => 1.0,
        fallen => 1.0 - (1.0 - last) * fallen as f64 / falling as f64,
    };
    Ok(Workload::Schedule { rates: (0..steps).map(rate).collect(), momentum })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [steps, participation, objective, workload, specs @ ..] = &given[..] else {
        return Err("usage: design_cost STEPS SCHEMA OBJECTIVE WORKLOAD RECIPE...".into());
    };
    let steps: usize = steps.parse()?;
    let problem = Problem {
        steps,
        workload: named(workload, steps)?,
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
