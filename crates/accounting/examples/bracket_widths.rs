//! How wide brackets on epsilon are over all settings: a grid and random ones, each with its invariants.
//!
//! One line a setting on the output (sigma, rate, steps, delta, lower, upper, milliseconds), the counts at
//! the end. Arguments: how many random settings (2000), and `grid` for the grid besides.

use std::time::Instant;

use antinoise_accounting::{Bounds, Composition, PoissonSampledGaussian, Result};

#[derive(Debug, Clone, Copy)]
struct Setting {
    sigma: f64,
    rate: f64,
    steps: u64,
    delta: f64,
}

impl Setting {
    fn epsilon(self) -> Result<Bounds> {
        Composition::new([PoissonSampledGaussian::new(self.sigma, self.rate, self.steps)?])?
            .epsilon(self.delta)
    }

    /// The same with one parameter that only adds privacy, or takes it, moved by `factor`.
    fn less_private(self, which: usize, factor: f64) -> Self {
        match which {
            0 => Self { sigma: self.sigma / factor, ..self },
            1 => Self { rate: (self.rate * factor).min(1.0), ..self },
            2 => Self { steps: (self.steps as f64 * factor).ceil() as u64, ..self },
            _ => Self { delta: self.delta / factor, ..self },
        }
    }
}

fn grid() -> Vec<Setting> {
    let mut all = Vec::new();
    for sigma in [0.3, 0.5, 1.0, 2.0, 5.0, 20.0] {
        for rate in [1e-8, 1e-7, 1e-6, 1e-4, 1e-2, 0.3, 1.0] {
            for steps in [1, 100, 10_000, 1_000_000, 10_000_000, 100_000_000] {
                for delta in [1e-15, 1e-12, 1e-9, 1e-6, 1e-3] {
                    all.push(Setting { sigma, rate, steps, delta });
                }
            }
        }
    }
    all
}

/// Uniform in the logarithm of each parameter.
fn random(count: usize) -> Vec<Setting> {
    let mut state = 20_240_607u64;
    let mut between = |low: f64, high: f64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let part = (state >> 11) as f64 / (1u64 << 53) as f64;
        (low.ln() + part * (high / low).ln()).exp()
    };
    let mut setting = || Setting {
        sigma: between(0.3, 20.0),
        rate: between(1e-8, 1.0),
        steps: between(1.0, 1e8) as u64,
        delta: between(1e-15, 1e-3),
    };
    (0..count).map(|_| setting()).collect()
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(2000);
    let mut settings = if arguments.iter().any(|argument| argument == "grid") { grid() } else { Vec::new() };
    settings.extend(random(count));
    let (mut wide, mut broken) = ([0; 3], 0);
    println!("sigma,rate,steps,delta,lower,upper,milliseconds");
    for (i, setting) in settings.iter().enumerate() {
        let start = Instant::now();
        let found = setting.epsilon()?;
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        let Setting { sigma, rate, steps, delta } = *setting;
        println!("{sigma:e},{rate:e},{steps},{delta:e},{},{},{milliseconds:.1}", found.lower, found.upper);
        let worse = setting.less_private(i % 4, 1.02).epsilon()?;
        let ordered = found.lower >= 0.0 && found.lower <= found.upper && found.upper.is_finite();
        if !ordered || found.lower > worse.upper {
            broken += 1;
            eprintln!("{setting:?}: {found:?}, less private: {worse:?}");
        }
        for (count, limit) in wide.iter_mut().zip([1e-3, 0.01, 0.05]) {
            *count += usize::from(found.upper - found.lower > limit * found.upper);
        }
    }
    let all = settings.len();
    eprintln!(
        "{all} settings: {} wider than 0.1%, {} than 1%, {} than 5%; {broken} out of order",
        wide[0], wide[1], wide[2]
    );
    Ok(())
}
