//! Gain of correlated noise for linear regression, by dimension: `linear_regression` prints a page in
//! Markdown.
//!
//! x ~ N(0, H) in R^m, y = <x, theta*>, one pass of SGD with rate eta and noise C^-1 Z for 1-GDP, assuming
//! gradients of norm at most 1: nothing is clipped (monograph, Section 3.5.2). In direction j of H, of
//! eigenvalue l_j, the distance from theta* is then
//!
//! > e_{t+1} = (1 - eta l_j) e_t - eta w_t,   w = sensitivity (C^-1 Z)
//!
//! apart from the randomness of the examples, and the direction's part of the excess risk is l_j E e_n^2 / 2,
//! a short sum for Toeplitz C. The last column is the infimum over Toeplitz C as n grows: by Cauchy and
//! Schwarz, with b the transfer function of C^-1,
//!
//! > (mean of 1 / |b|^2) (mean of |b|^2 W) >= (mean of sqrt W)^2,
//! > W(omega) = sum_j l_j / |1 - (1 - eta l_j) e^(i omega)|^2.

use std::error::Error;

use antinoise_mechanism::design::{Objective, StrategySpec};
use antinoise_mechanism::{AnyStrategy, Participation, Problem, Workload};
use antinoise_noise::{Key, KeyedRng, NoiseStream, Purpose, RunId};
use rand_core::Rng;

const STEPS: usize = 1 << 15;
/// The learning rate eta.
const RATE: f64 = 0.1;
const EFFECTIVE: f64 = 4.0;
const REPEATS: u64 = 10;

const HEADER: &str = "# Linear regression: dimension and effective dimension

Excess risk of one pass of SGD with noise for 1-GDP, x ~ N(0, H) in R^m, over rate^2 m_eff, where m_eff = tr H / |H|: what the
monograph's Section 3.5.2 says up to constants. Independent noise grows with m, correlated noise with m_eff and a logarithm. `damped`: the
Toeplitz square root times (1 - nu)^t at the best of 5 nu; `decay`: a BLT designed for exponentially decayed sums, at the best of 3 decays; `least`:
the minimum over all Toeplitz strategies in the limit. Where 1 / (rate x the smallest eigenvalue) is beyond the steps, the limit
is not reached yet. `cargo run --release -p antinoise-noise --example linear_regression`
";

fn main() -> Result<(), Box<dyn Error>> {
    println!("{HEADER}\n{STEPS} steps, rate {RATE}:\n");
    println!(
        "| spectrum | m | m_eff | least eigenvalue | independent | Toeplitz | BLT 4 | damped | decay, BLT 4 | least |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let known = ["identity", "toeplitz", "blt:4"].map(|spec| Noise::new(spec, Workload::Prefix));
    let known = known.into_iter().collect::<Result<Vec<_>, _>>()?;
    for dim in [4, 16, 64, 256, 1024] {
        row("one large", &one_large(dim, EFFECTIVE), &known)?;
    }
    for dim in [16, 64, 256, 1024] {
        row("power law", &power_law(dim, EFFECTIVE), &known)?;
    }
    for dim in [16, 64, 256] {
        row("all equal", &vec![1.0; dim], &known)?;
    }
    simulations(&[&known[0], &known[2]])
}

/// An eigenvalue of 1, the others equal, so that their sum is `effective`.
fn one_large(dim: usize, effective: f64) -> Vec<f64> {
    let mut eigenvalues = vec![(effective - 1.0) / (dim - 1) as f64; dim];
    eigenvalues[0] = 1.0;
    eigenvalues
}

/// j^-p, p such that their sum is `effective`.
fn power_law(dim: usize, effective: f64) -> Vec<f64> {
    let spectrum = |p: f64| -> Vec<f64> { (1..=dim).map(|j| (j as f64).powf(-p)).collect() };
    let (mut low, mut high) = (0.0, 10.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if spectrum(middle).iter().sum::<f64>() > effective { low = middle } else { high = middle }
    }
    spectrum(high)
}

/// A strategy designed for one participation.
struct Noise {
    spec: String,
    strategy: AnyStrategy,
    sensitivity: f64,
    /// The first column of C^-1, which is Toeplitz.
    first_column: Vec<f64>,
}

impl Noise {
    fn new(spec: &str, workload: Workload) -> Result<Self, Box<dyn Error>> {
        let (participation, objective) = (Participation::Single, Objective::Rms);
        let problem = Problem { steps: STEPS, workload, participation, objective };
        let strategy = spec.parse::<StrategySpec>()?.design(&problem)?.value;
        let sensitivity = strategy.sensitivity(&problem.participation)?.value;
        let mut unit = vec![0.0; STEPS];
        unit[0] = 1.0;
        let first_column = strategy.recursion()?.apply(STEPS, &unit);
        Ok(Self { spec: spec.into(), strategy, sensitivity, first_column })
    }

    /// sum_j l_j E e_n^2 / 2, without the randomness of the examples.
    fn risk(&self, eigenvalues: &[f64]) -> f64 {
        let of_direction = |&eigenvalue: &f64| {
            let (mut response, mut squares) = (0.0, 0.0);
            for b in &self.first_column {
                response = (1.0 - RATE * eigenvalue) * response + b;
                squares += response * response;
            }
            0.5 * eigenvalue * (RATE * self.sensitivity).powi(2) * squares
        };
        eigenvalues.iter().map(of_direction).sum()
    }
}

fn row(name: &str, eigenvalues: &[f64], known: &[Noise]) -> Result<(), Box<dyn Error>> {
    let least = eigenvalues.iter().copied().fold(1.0, f64::min);
    let effective: f64 = eigenvalues.iter().sum();
    let unit = RATE * RATE * effective;
    let mut best = [f64::INFINITY; 2];
    for factor in [0.1, 0.5, 2.0, 8.0, 32.0] {
        let nu = (factor * RATE * least).min(0.9);
        let damped = Noise::new(&format!("toeplitz+damped:{nu}"), Workload::Prefix)?;
        best[0] = best[0].min(damped.risk(eigenvalues) / unit);
    }
    for factor in [1.0, 4.0, 16.0] {
        let gamma = 1.0 - (factor * RATE * least).min(0.9);
        let decay = Noise::new("blt:4", format!("decay:{gamma}").parse()?)?;
        best[1] = best[1].min(decay.risk(eigenvalues) / unit);
    }
    print!("| {name} | {} | {effective:.0} | {least:.1e} |", eigenvalues.len());
    known.iter().for_each(|noise| print!(" {:.2} |", noise.risk(eigenvalues) / unit));
    println!(" {:.2} | {:.2} | {:.2} |", best[0], best[1], least_risk(eigenvalues) / unit);
    Ok(())
}

/// (eta^2 / 2) (mean over frequencies of sqrt W)^2, by the trapezoidal rule over logarithms of frequencies.
fn least_risk(eigenvalues: &[f64]) -> f64 {
    const POINTS: usize = 20_000;
    const SMALLEST: f64 = 1e-10;
    let ratio = (std::f64::consts::PI / SMALLEST).ln() / POINTS as f64;
    let value = |i: usize| {
        let omega = SMALLEST * (ratio * i as f64).exp();
        let sine = 4.0 * (0.5 * omega).sin().powi(2);
        let part = |&l: &f64| l / ((RATE * l).powi(2) + (1.0 - RATE * l) * sine);
        eigenvalues.iter().map(part).sum::<f64>().sqrt() * omega
    };
    let inner: f64 = (1..POINTS).map(value).sum();
    let mean = ratio * (inner + 0.5 * (value(0) + value(POINTS))) / std::f64::consts::PI;
    0.5 * (RATE * mean).powi(2)
}

/// SGD with examples and noise streams, compared with the sums above.
fn simulations(of: &[&Noise]) -> Result<(), Box<dyn Error>> {
    println!(
        "\nSGD itself, m = 64, one eigenvalue large: excess risk over what the sums say, {REPEATS} runs. Above 1 because"
    );
    println!("gradients depend on which examples are drawn, which the sums leave out, for both alike.\n");
    println!("| noise | mean | standard error |");
    println!("|---|---|---|");
    let eigenvalues = one_large(64, EFFECTIVE);
    for noise in of {
        let expected = noise.risk(&eigenvalues);
        let runs = (0..REPEATS).map(|run| Ok(simulated(noise, &eigenvalues, run)? / expected));
        let runs = runs.collect::<Result<Vec<f64>, Box<dyn Error>>>()?;
        let mean = runs.iter().sum::<f64>() / runs.len() as f64;
        let squares: f64 = runs.iter().map(|x| (x - mean).powi(2)).sum();
        let error = (squares / (runs.len() * (runs.len() - 1)) as f64).sqrt();
        println!("| {} | {mean:.3} | {error:.3} |", noise.spec);
    }
    Ok(())
}

/// The excess risk of a run, averaged over its last quarter.
fn simulated(of: &Noise, eigenvalues: &[f64], run: u64) -> Result<f64, Box<dyn Error>> {
    let (key, id) = (Key::from_seed_insecure(run), RunId::default());
    let mut normals = Normals(KeyedRng::new(&key, &id, Purpose::DataOrder, 0));
    let recursion = of.strategy.recursion()?;
    let builder = NoiseStream::builder(recursion, STEPS, eigenvalues.len(), of.sensitivity);
    let mut stream = builder.threads(1).build(key)?;
    let (mut distance, mut noise) = (vec![0.0; eigenvalues.len()], vec![0f32; eigenvalues.len()]);
    let mut sum = 0.0;
    for step in 0..STEPS {
        stream.next_into(&mut noise)?;
        let x: Vec<f64> = eigenvalues.iter().map(|l| l.sqrt() * normals.draw()).collect();
        let residual: f64 = x.iter().zip(&distance).map(|(x, e)| x * e).sum();
        for ((e, x), w) in distance.iter_mut().zip(&x).zip(&noise) {
            *e -= RATE * (residual * x + f64::from(*w));
        }
        if step >= STEPS / 4 * 3 {
            sum += eigenvalues.iter().zip(&distance).map(|(l, e)| 0.5 * l * e * e).sum::<f64>();
        }
    }
    Ok(sum / (STEPS / 4) as f64)
}

/// Standard normals by the polar form of Box and Muller, one of each pair.
struct Normals(KeyedRng);

impl Normals {
    fn draw(&mut self) -> f64 {
        let mut uniform = || (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let (u, v) = (1.0 - uniform(), uniform());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}
