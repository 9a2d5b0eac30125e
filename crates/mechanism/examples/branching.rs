//! Losses of trees with k branches a node for prefix sums and a single participation (Qardaji et al. 2013),
//! and of the binary trees and BLTs of this crate.
//!
//! A prefix is the sum of at most k - 1 nodes a level: as many as the digit of its length in base k. A step
//! is below one node of each level. A tree reaches all steps with the fewest levels; the last prefix may read
//! the root.
//!
//! `cargo run --release -p antinoise-mechanism --example branching`

use antinoise_mechanism::design::StrategySpec;
use antinoise_mechanism::{Adjacency, Problem, Result};

fn main() -> Result<()> {
    let names = ["tree", "smooth-tree", "honaker-full", "blt:4"];
    let branches = [2, 3, 4, 5, 6, 8, 16];
    let heads: Vec<String> = branches.iter().map(|k| format!("{k} branches")).collect();
    println!("| steps | {} | {} |", heads.join(" | "), names.join(" | "));
    println!("|---|{}", "---|".repeat(branches.len() + names.len()));
    for steps in [64, 256, 1024, 4096] {
        let problem = Problem::prefix(steps);
        let mut row: Vec<String> = branches.iter().map(|&k| format!("{:.3}", rms_loss(steps, k))).collect();
        for name in names {
            let strategy = name.parse::<StrategySpec>()?.design(&problem)?.value;
            let loss = strategy.loss(&problem.workload, &problem.participation, Adjacency::ZeroOut)?;
            row.push(format!("{:.3}", loss.rms_loss));
        }
        println!("| {steps} | {} |", row.join(" | "));
    }
    Ok(())
}

/// Returns the RMS loss of the tree with k branches: the square root of the mean number of nodes of a prefix
/// times the number of levels.
fn rms_loss(steps: usize, k: usize) -> f64 {
    let mut levels = 1;
    while k.pow(levels - 1) < steps {
        levels += 1;
    }
    let nodes = |length: usize| -> usize {
        let digits = std::iter::successors(Some(length), |rest| Some(rest / k)).take_while(|&rest| rest > 0);
        digits.map(|rest| rest % k).sum()
    };
    let mean = (1..=steps).map(nodes).sum::<usize>() as f64 / steps as f64;
    (mean * f64::from(levels)).sqrt()
}
