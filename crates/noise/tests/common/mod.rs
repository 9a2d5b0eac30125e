//! The recursions that every law is tested on.

use antinoise_mechanism::Recursion;
use antinoise_noise::{Key, StreamBuilder};

/// Steps of every case below.
pub const STEPS: usize = 13;

fn scaled(inner: Recursion, steps: usize) -> Recursion {
    let factors = (0..steps).map(|t| 0.5 + 0.1 * (t as f64).sin()).collect();
    Recursion::Scaled { inner: Box::new(inner), factors }
}

fn restarted(inner: Recursion, period: usize) -> Recursion {
    Recursion::Restarted { inner: Box::new(inner), period }
}

fn banded(bands: usize) -> Recursion {
    let rows =
        (0..STEPS * bands).map(|i| 1.0 / (1.0 + (i % bands) as f64 + 0.1 * (i as f64).cos())).collect();
    Recursion::Banded { bands, rows }
}

fn blt(order: usize) -> Recursion {
    let scale = (0..order).map(|i| 0.3 / (1 + i) as f64).collect();
    let decay = (0..order).map(|i| 0.999 - 0.12 * i as f64).collect();
    Recursion::Blt { scale, decay }
}

/// A tree's shape: more seeds than steps, each used by several steps.
fn combination() -> Recursion {
    let rows = (0..STEPS)
        .map(|t| (0..4).map(|level| ((t >> level) + level * 100, 1.0 / (1 + level) as f64)).rev().collect())
        .collect();
    Recursion::SeedCombination { rows }
}

/// Poles at radii up to 0.8 in pairs, zeros nearer to 0.
fn rational(degree: usize) -> Recursion {
    let power = |base: f64, k: usize| base.powi(k as i32 + 1);
    let feedback = (0..degree).map(|k| 2.0 * power(0.4, k)).collect();
    Recursion::Rational { gain: (0..degree).map(|k| 0.3 * power(0.6, k)).collect(), feedback }
}

/// Every variant, alone and nested.
pub fn cases() -> Vec<(&'static str, Recursion)> {
    let square_root: Vec<f64> =
        std::iter::successors(Some((1.0, 1.0)), |&(c, t)| Some((c * (2.0 * t - 1.0) / (2.0 * t), t + 1.0)))
            .map(|(c, _)| c)
            .take(STEPS)
            .collect();
    let auto = |taps: usize| Recursion::AutoRegressive { taps: square_root[..taps].to_vec() };
    let moving = |taps: usize| Recursion::MovingAverage {
        taps: (0..taps).map(|i| if i == 0 { 1.5 } else { -0.4 / i as f64 }).collect(),
    };
    vec![
        ("independent", Recursion::Independent),
        ("difference", Recursion::MovingAverage { taps: vec![1.0, -1.0] }),
        ("moving average of one", moving(1)),
        ("moving average of five", moving(5)),
        ("moving average of all", moving(STEPS + 3)),
        ("auto-regressive of one", auto(1)),
        ("auto-regressive of two", auto(2)),
        ("auto-regressive of seven", auto(7)),
        ("auto-regressive of all", auto(STEPS)),
        ("auto-regressive with c_0 = 2", Recursion::AutoRegressive { taps: vec![2.0, 1.0, 0.5, 0.25] }),
        ("blt of none", blt(0)),
        ("blt of one", blt(1)),
        ("blt of two", blt(2)),
        ("blt of four", blt(4)),
        ("blt of seven", blt(7)),
        ("banded of one", banded(1)),
        ("banded of six", banded(6)),
        ("banded of all", banded(STEPS)),
        ("combination", combination()),
        ("scaled blt", scaled(blt(3), STEPS)),
        ("scaled combination", scaled(combination(), STEPS)),
        ("restarted blt", restarted(blt(2), 5)),
        ("restarted auto-regressive", restarted(auto(4), 6)),
        ("restarted moving average", restarted(moving(4), 3)),
        ("restarted combination", restarted(combination(), 5)),
        ("restarted once", restarted(banded(3), STEPS + 4)),
        ("restarted scaled auto-regressive", restarted(scaled(auto(3), 4), 4)),
        ("scaled restarted banded", scaled(restarted(banded(3), 7), STEPS)),
        ("restarted restarted combination", restarted(restarted(combination(), 2), 5)),
        (
            "scaled restarted scaled restarted blt",
            scaled(restarted(scaled(restarted(blt(2), 2), 5), 5), STEPS),
        ),
        ("rational of none", rational(0)),
        ("rational of one", rational(1)),
        ("rational of five", rational(5)),
        ("scaled restarted rational", scaled(restarted(rational(3), 5), STEPS)),
    ]
}

/// A stream's own seed noise, seed by seed.
#[allow(dead_code)]
pub fn seed_noise(builder: StreamBuilder, key: Key, seeds: usize, dim: usize) -> Vec<Vec<f32>> {
    let mut noise = builder.seed_noise(key);
    (0..seeds)
        .map(|s| {
            let mut z = vec![0.0; dim];
            noise.fill(s as u64, 0, &mut z);
            z
        })
        .collect()
}
