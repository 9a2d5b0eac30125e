//! Times each calibration on a grid of targets, and prints the median, the slowest and how many take over 0.2
//! s.
//!
//! `cargo run --release -p antinoise-accounting --example calibrate_cost`
use std::time::Instant;

use antinoise_accounting::{Result, calibrate};

type Case = (f64, f64, u64, f64);

fn main() -> Result<()> {
    let mut cases = Vec::new();
    for epsilon in [0.1, 1.0, 4.0, 10.0] {
        for rate in [1e-4, 1e-3, 1e-2, 0.1] {
            for steps in [100, 10_000, 1_000_000] {
                cases.extend([1e-5, 1e-9].map(|delta| (epsilon, rate, steps, delta)));
            }
        }
    }
    let sigmas = time("noise multiplier", &cases, |&(epsilon, rate, steps, delta)| {
        calibrate::noise_multiplier_upper(rate, steps, epsilon, delta)
    })?;
    let known: Vec<(Case, f64)> = cases.into_iter().zip(sigmas).collect();
    time("steps", &known, |&((epsilon, rate, _, delta), sigma)| {
        calibrate::steps_lower(sigma, rate, epsilon, delta)
    })?;
    time("sampling rate", &known, |&((epsilon, _, steps, delta), sigma)| {
        calibrate::sampling_rate_lower(sigma, steps, epsilon, delta)
    })?;
    Ok(())
}

fn time<C: std::fmt::Debug, T>(name: &str, cases: &[C], find: impl Fn(&C) -> Result<T>) -> Result<Vec<T>> {
    let (mut seconds, mut found) = (Vec::new(), Vec::new());
    for case in cases {
        let start = Instant::now();
        found.push(find(case)?);
        seconds.push((start.elapsed().as_secs_f64(), case));
    }
    seconds.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (slowest, case) = &seconds[seconds.len() - 1];
    let over = seconds.iter().filter(|(seconds, _)| *seconds > 0.2).count();
    println!(
        "{name}: median {:.3} s, slowest {slowest:.3} s at {case:?}, over 0.2 s: {over} of {}",
        seconds[seconds.len() / 2].0,
        seconds.len()
    );
    Ok(found)
}
