//! Brackets on epsilon for lines `noise_multiplier sampling_rate steps delta` on standard input, as CSV.
//!
//! `echo "1.0 0.01 10000 1e-6" | cargo run --release -p antinoise-accounting --example epsilon`
use std::io::BufRead;
use std::time::Instant;

use antinoise_accounting::{Composition, PoissonSampledGaussian};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("noise_multiplier,sampling_rate,steps,delta,lower,upper,seconds");
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let fields: Vec<f64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let [sigma, rate, steps, delta] = fields[..] else {
            return Err(format!("not four numbers: {line}").into());
        };
        let start = Instant::now();
        let bracket =
            Composition::new([PoissonSampledGaussian::new(sigma, rate, steps as u64)?])?.epsilon(delta)?;
        let seconds = start.elapsed().as_secs_f64();
        println!("{sigma},{rate},{steps},{delta:e},{:.9},{:.9},{seconds:.6}", bracket.lower, bracket.upper);
    }
    Ok(())
}
