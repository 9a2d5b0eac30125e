//! What a dense design costs and reaches: `dense_cost STEPS SCHEMA OBJECTIVE [WORKLOAD]`.

use std::time::Instant;

use antinoise_mechanism::strategy::Recipe;
use antinoise_mechanism::{Adjacency, Problem, Workload, loss};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [steps, participation, objective, workload @ ..] = &given[..] else {
        return Err("usage: dense_cost STEPS SCHEMA OBJECTIVE [WORKLOAD]".into());
    };
    let workload = workload.first().map_or(Ok(Workload::Prefix), |text| text.parse())?;
    let problem = Problem {
        steps: steps.parse()?,
        workload,
        participation: participation.parse()?,
        objective: objective.parse()?,
    };
    let started = Instant::now();
    let found = "dense".parse::<Recipe>()?.design(&problem)?;
    let seconds = started.elapsed().as_secs_f64();
    let cost = loss::of(&found.value, &problem.workload, &problem.participation, Adjacency::ZeroOut)?;
    println!(
        "max loss {:.6}, RMS loss {:.6}, total loss {:.6e}",
        cost.max_loss, cost.rms_loss, cost.total_loss
    );
    println!("sensitivity {:?}", cost.sensitivity);
    println!("{:?}, gap {:?}, {} iterations, {seconds:.1} s", found.status, found.gap, found.iterations);
    Ok(())
}
