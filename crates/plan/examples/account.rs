//! What a plan that exists spends: at other deltas, step by step, for persons with several examples, and for
//! several models.
//!
//! ```text
//! cargo run --release -p antinoise-plan --example account [PLAN.toml]
//! ```
//!
//! Without a file, a plan is made first.

use std::path::Path;

use antinoise_plan::{Length, Plan, Request, Setting, choose, compose};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Reading a plan recomputes its claim: an altered file is refused.
    let plan = match std::env::args().nth(1) {
        Some(path) => Plan::load(Path::new(&path))?,
        None => choose(&Request::new(5000, 100, Length::Epochs(4), Setting::Cyclic))?.plan,
    };
    let (steps, delta) = (plan.steps, plan.privacy.delta);
    println!("the plan: epsilon {:.2} at delta {delta:e}", plan.privacy.epsilon);
    for other in [1e-4, 1e-8, 1e-10] {
        println!("at delta {other:e}: epsilon {:.2}", compose(&[(&plan, 1)], other)?.upper);
    }
    let parts: Vec<usize> = (1..=4).map(|part| (steps * part).div_ceil(4)).collect();
    for (after, epsilon) in parts.iter().zip(plan.epsilon_by_step(&parts)?) {
        println!("if it stops after step {after}: epsilon {epsilon:.2}");
    }
    for examples in [2, 5, 20] {
        println!("a person with {examples} examples: epsilon {:.2}", plan.epsilon_of_user(examples)?);
    }
    println!("three models of the same data: epsilon {:.2}", compose(&[(&plan, 3)], delta)?.upper);
    Ok(())
}
