//! What conditional composition could reach for general C under plain Poisson sampling, next to the choice of
//! `antinoise plan`.
//!
//! ```sh
//! cargo run --release -p antinoise-plan --example conditional_composition
//! cargo run --release -p antinoise-plan --example conditional_composition -- 4,16,2 1,64,8
//! ```
//!
//! Arguments: requests as `EPOCHS,BATCHES,EPSILON`, with as many batches in an epoch; without them, those of
//! docs/results/plans.md. Batches have 100 examples, delta is 1e-6, under zero-out; losses are the RMS error
//! of prefix sums.
//!
//! Conditional composition (Choquette-Choo, Ganesh, Steinke and Thakurta 2024) accounts for row i of C as a
//! Gaussian mixture of its own: noise around `sum_j C[i, j] x_j` against noise alone, where the x_j are
//! independent coins. The probability of x_j is a bound on the posterior probability, given the first i - 1
//! releases, that the example took part in step j. Two optimistic bounds are evaluated:
//!
//! - prior: q = B/N itself. The posterior's mean is q, so that a bound which fails with probability d is at
//!   least q - d, and delta grows with every coin's probability: no choice of bounds needs less noise.
//! - own: a bound on the posterior of x_j for every pattern of the other coins, also for the one in which
//!   they all fall on 0. Its odds are then those of the prior times `e^(<c, y> - |c|^2 / 2)`, where c is
//!   column j above row i and y are the releases, in units of the noise. With probability q, x_j is 1, and
//!   <c, y> is at least normal with mean |c|^2 and variance |c|^2, since C has no negative entry. Bounds are
//!   those that are exceeded with probability delta in this way. That they hold for other patterns and all
//!   i and j at once is left out, and delta is spent twice: no such bounds need less noise.
//!
//! The privacy of the composition is the contour integral of its moment generating function, which is exact
//! up to the spacing of the sums' grid, a 48th of C[0, 0]; coins are rounded on a grid ten times finer, and
//! mean values are kept. Of long runs, blocks of rows stand for the row in their middle. The program first
//! compares its figures with the bounds of `antinoise_accounting` for independent noise.

mod poisson_requests;

use std::f64::consts::{PI, SQRT_2};

use antinoise_accounting::{Composition, Gdp, PoissonSampledGaussian, gaussian_noise_multiplier_upper};
use antinoise_mechanism::design::StrategySpec;
use antinoise_mechanism::strategy::Toeplitz;
use antinoise_mechanism::{Adjacency, AnyStrategy, Participation, Problem, Workload};
use poisson_requests::{BATCH_SIZE, DELTA, Outcome};

/// Points of a mixture's grid, and of the grid of coins, to C[0, 0].
const GRID: f64 = 48.0;
const FINE: f64 = 480.0;
/// Spacing of the noise at which densities are evaluated, in standard deviations.
const NODE: f64 = 0.1;
/// Largest number of steps for which a dense strategy is tried.
const MOST_DENSE: usize = 128;

/// A discrete distribution of sums on multiples of a spacing.
#[derive(Clone)]
struct Sums(Vec<f64>);

impl Sums {
    fn nothing() -> Self {
        Self(vec![1.0])
    }

    /// Adds `value` (in spacings) with probability `p`, split over the two grid points around it.
    fn toss(&mut self, value: f64, p: f64) {
        let (low, share) = (value.floor() as usize, value.fract());
        let old = std::mem::take(&mut self.0);
        let mut new = vec![0.0; old.len() + low + 1];
        for (i, &mass) in old.iter().enumerate() {
            new[i] += mass * (1.0 - p);
            new[i + low] += mass * p * (1.0 - share);
            new[i + low + 1] += mass * p * share;
        }
        while new.len() > 1 && new[new.len() - 1] < 1e-18 {
            new.pop();
        }
        self.0 = new;
    }

    /// The same on a grid whose spacing is `times` as large, with the same mean.
    fn coarser(&self, times: f64) -> Self {
        let mut new = vec![0.0; (self.0.len() as f64 / times) as usize + 2];
        for (i, &mass) in self.0.iter().enumerate() {
            let at = i as f64 / times;
            new[at as usize] += mass * (1.0 - at.fract());
            new[at as usize + 1] += mass * at.fract();
        }
        Self(new)
    }
}

/// Steps with one mixture.
struct Row {
    times: f64,
    sums: Sums,
}

/// The nodes of a mixture: loss, and ln of the mass of noise alone.
fn nodes(sums: &Sums, spacing: f64, tilt: f64) -> Vec<(f64, f64)> {
    let means: Vec<(f64, f64)> = sums
        .0
        .iter()
        .enumerate()
        .filter(|(_, mass)| **mass > 0.0)
        .map(|(i, mass)| (i as f64 * spacing, mass.ln()))
        .collect();
    let most = means.last().map_or(0.0, |(mean, _)| *mean);
    let (low, high) = (-9.0, 9.0 + (1.0 + tilt) * most);
    let count = ((high - low) / NODE).ceil() as usize;
    (0..=count)
        .map(|k| {
            let z = low + k as f64 * NODE;
            let term = |&(mean, ln): &(f64, f64)| ln + mean * z - 0.5 * mean * mean;
            let peak = means.iter().map(term).fold(f64::MIN, f64::max);
            let loss = peak + means.iter().map(|m| (term(m) - peak).exp()).sum::<f64>().ln();
            (loss, -0.5 * z * z + (NODE / (2.0 * PI).sqrt()).ln())
        })
        .collect()
}

/// delta at `epsilon` of the steps `rows`, whose sums have the spacing `spacing` in units of the noise, if an
/// example is removed (`sign` 1) or added (`sign` -1).
///
/// delta = 1/(2 pi) times the integral over t of M(u) e^(-u epsilon) / (u (1 + u)) at u = theta + i t, where
/// M(u) is the mean of e^(u loss), for any theta > 0. Its trapezoidal sum converges exponentially.
fn delta(rows: &[Row], spacing: f64, epsilon: f64, sign: f64) -> f64 {
    // The losses and the ln of the masses under the distribution that is sampled.
    let at_tilt = |tilt: f64| -> Vec<(f64, Vec<(f64, f64)>)> {
        let of = |row: &Row| {
            let found = nodes(&row.sums, spacing, tilt);
            let own = |(loss, ln): (f64, f64)| if sign > 0.0 { (loss, ln + loss) } else { (-loss, ln) };
            (row.times, found.into_iter().map(own).collect())
        };
        rows.iter().map(of).collect()
    };
    let ln_moment = |all: &[(f64, Vec<(f64, f64)>)], u: f64| -> f64 {
        let one = |(times, nodes): &(f64, Vec<(f64, f64)>)| {
            times * nodes.iter().map(|(loss, ln)| (u * loss + ln).exp()).sum::<f64>().ln()
        };
        all.iter().map(one).sum()
    };
    // The tilt of least bound, by golden section over ln(theta).
    let most_tilt = 8.0 + 26.0 / epsilon;
    let all = at_tilt(most_tilt);
    let bound = |ln: f64| {
        let u = ln.exp();
        ln_moment(&all, u) - u * epsilon - (u * (1.0 + u)).ln()
    };
    let (mut low, mut high) = (-3.0, most_tilt.ln());
    while high - low > 0.05 {
        let (a, b) = (low + 0.382 * (high - low), low + 0.618 * (high - low));
        if bound(a) < bound(b) { high = b } else { low = a }
    }
    let theta = f64::exp(0.5 * (low + high));
    let step = 0.02 * theta.min(1.0);
    let variance = (ln_moment(&all, theta + step) - 2.0 * ln_moment(&all, theta)
        + ln_moment(&all, theta - step))
        / (step * step);
    let period = (12.0 * variance.max(0.0).sqrt()).max(45.0 / theta);
    let dt = 2.0 * PI / period;
    // Of each row, the nodes with their tilted masses, as complex numbers that turn by dt.
    let mut turning: Vec<(f64, f64, Vec<[f64; 4]>)> = all
        .iter()
        .map(|(times, nodes)| {
            let total: f64 = nodes.iter().map(|(loss, ln)| (theta * loss + ln).exp()).sum();
            let nodes = nodes.iter().filter_map(|(loss, ln)| {
                let mass = (theta * loss + ln).exp() / total;
                let (sin, cos) = (dt * loss).sin_cos();
                (mass > 1e-14).then_some([mass, 0.0, cos, sin])
            });
            (*times, total.ln(), nodes.collect())
        })
        .collect();
    let ln_scale: f64 = turning.iter().map(|(times, ln, _)| times * ln).sum::<f64>() - theta * epsilon;
    let mut sum = 0.0;
    for k in 0..1 << 16 {
        let t = k as f64 * dt;
        let (mut ln_size, mut angle) = (0.0, -t * epsilon);
        for (times, _, nodes) in &mut turning {
            let (mut re, mut im) = (0.0, 0.0);
            for [x, y, cos, sin] in nodes {
                re += *x;
                im += *y;
                (*x, *y) = (*x * *cos - *y * *sin, *x * *sin + *y * *cos);
            }
            ln_size += 0.5 * *times * (re * re + im * im).ln();
            angle += *times * im.atan2(re);
        }
        // 1 / (u (1 + u)).
        let (a, b) = (theta * (1.0 + theta) - t * t, t * (1.0 + 2.0 * theta));
        let square = a * a + b * b;
        let size = f64::exp(ln_size);
        let term = size * (angle.cos() * a + angle.sin() * b) / square;
        sum += if k == 0 { 0.5 * term } else { term };
        if k > 8 && size / square.sqrt() * (t / dt) < 1e-4 * sum.abs() {
            break;
        }
    }
    (ln_scale.exp() * sum * dt / PI).max(0.0)
}

/// A strategy with rows of which blocks are represented by one.
struct Rows {
    /// Entries, row by row, of the representatives, in units of C[0, 0]; the number of rows of each.
    rows: Vec<(usize, f64, Vec<f64>)>,
    first: f64,
    columns: Vec<Vec<f64>>,
    q: f64,
}

impl Rows {
    fn new(strategy: &AnyStrategy, q: f64) -> Outcome<Self> {
        let c = strategy.encoder()?.to_dense();
        let n = c.ncols();
        let first = c[(0, 0)];
        let (mut rows, mut start) = (Vec::new(), 0);
        while start < n {
            let size = (start / 12).clamp(1, n.div_ceil(40)).min(n - start);
            let i = start + size / 2;
            rows.push((i, size as f64, (0..=i).map(|j| c[(i, j)] / first).collect()));
            start += size;
        }
        let columns = (0..n).map(|j| c.column(j).iter().map(|x| x / first).collect()).collect();
        Ok(Self { rows, first, columns, q })
    }

    /// The mixtures with these probabilities of coin j in row i.
    fn mixtures(&self, probability: impl Fn(usize, usize) -> f64) -> Vec<Row> {
        let of = |(i, times, entries): &(usize, f64, Vec<f64>)| {
            let mut sums = Sums::nothing();
            for (j, &entry) in entries.iter().enumerate() {
                if entry > 0.0 {
                    sums.toss(entry * FINE, probability(*i, j));
                }
            }
            Row { times: *times, sums: sums.coarser(FINE / GRID) }
        };
        self.rows.iter().map(of).collect()
    }

    /// |C_j|^2 over the rows below `i`.
    fn square(&self, i: usize, j: usize) -> f64 {
        self.columns[j][..i].iter().map(|x| x * x).sum()
    }

    /// The probability after prior odds are multiplied by `e^ln_ratio`.
    fn posterior(&self, ln_ratio: f64) -> f64 {
        let odds = self.q / (1.0 - self.q) * ln_ratio.exp();
        if odds.is_finite() { odds / (1.0 + odds) } else { 1.0 }
    }

    /// The mixtures at `noise` (over C[0, 0]) with own terms.
    fn own(&self, noise: f64) -> Vec<Row> {
        let Some(z) = normal_tail_inverse(DELTA / self.q) else { return self.mixtures(|_, _| self.q) };
        self.mixtures(|i, j| {
            let square = self.square(i, j) / (noise * noise);
            self.posterior((0.5 * square + z * square.sqrt()).max(0.0))
        })
    }

    /// The least noise (over C[0, 0]) for which the mixtures meet the privacy target if an example is
    /// removed.
    fn noise(&self, epsilon: f64, of: impl Fn(f64) -> Vec<Row>) -> f64 {
        let excess = |ln: f64| {
            let rows = of(ln.exp());
            let spacing = 1.0 / (GRID * ln.exp());
            (delta(&rows, spacing, epsilon, 1.0).max(1e-300) / DELTA).ln()
        };
        // A bracket around the noise for which small losses add up, then regula falsi.
        let mean =
            |(_, times, row): &(usize, f64, Vec<f64>)| times * (self.q * row.iter().sum::<f64>()).powi(2);
        let all = self.rows.iter().map(mean).sum::<f64>().sqrt();
        let start = (gaussian_noise_multiplier_upper(epsilon, DELTA).unwrap_or(1.0) * all).max(0.5).ln();
        let mut a = (start, excess(start));
        let step = if a.1 > 0.0 { 0.25 } else { -0.25 };
        let mut b = a;
        while b.1 * a.1 > 0.0 && (b.0 - start).abs() < 12.0 {
            a = b;
            b = (b.0 + step, excess(b.0 + step));
        }
        for _ in 0..20 {
            if (b.0 - a.0).abs() < 5e-4 {
                break;
            }
            let share = (a.1 / (a.1 - b.1)).clamp(0.05, 0.95);
            let x = a.0 + share * (b.0 - a.0);
            let middle = (x, excess(x));
            if middle.1.abs() < 2e-3 {
                return x.exp();
            }
            if middle.1 * a.1 > 0.0 { a = middle } else { b = middle }
        }
        if a.1 < b.1 { a.0.exp() } else { b.0.exp() }
    }
}

/// z with Pr[N > z] = p; `None` if p >= 1/2.
fn normal_tail_inverse(p: f64) -> Option<f64> {
    if p >= 0.5 {
        return None;
    }
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..80 {
        let z = 0.5 * (low + high);
        if tail(z) > p { low = z } else { high = z }
    }
    Some(0.5 * (low + high))
}

/// Pr[N > z].
fn tail(z: f64) -> f64 {
    0.5 * libm::erfc(z / SQRT_2)
}

/// The strategies that are tried: name and C. Entries below the diagonal are also
/// multiplied by a half, a quarter and a tenth.
fn strategies(epochs: usize, batches: usize) -> Outcome<Vec<(String, AnyStrategy)>> {
    let steps = epochs * batches;
    let cyclic = match epochs {
        1 => Participation::Single,
        _ => Participation::Cyclic { min_sep: batches, max_participations: epochs },
    };
    let mut all = Vec::new();
    let mut add = |spec: &str, participation: &Participation, schema: &str| -> Outcome<()> {
        let problem = Problem { participation: participation.clone(), ..Problem::prefix(steps) };
        let found = spec.parse::<StrategySpec>()?.design(&problem)?.value;
        if !spec.contains('+') && !spec.starts_with("dense") {
            for factor in [0.5, 0.25, 0.1] {
                let mut c = found.encoder()?.to_dense().column(0).to_vec();
                c[1..].iter_mut().for_each(|c| *c *= factor);
                let less = AnyStrategy::Toeplitz(Toeplitz::new(steps, c)?);
                all.push((format!("{spec}{schema}, {factor} of it"), less));
            }
        }
        all.push((format!("{spec}{schema}"), found));
        Ok(())
    };
    for bands in std::iter::successors(Some(2), |b| Some(2 * b)).take_while(|&b| b <= steps.min(128)) {
        add(&format!("banded-toeplitz:{bands}"), &Participation::Single, "")?;
    }
    add("blt:3", &Participation::Single, " once")?;
    if epochs > 1 {
        add("blt:3", &cyclic, "")?;
    }
    if steps <= MOST_DENSE {
        add("dense", &cyclic, "")?;
        add("toeplitz+column-normalized", &Participation::Single, " once")?;
    }
    Ok(all)
}

fn report(epochs: usize, batches: usize, epsilon: f64) -> Outcome<String> {
    let q = 1.0 / batches as f64;
    let choice = poisson_requests::choice((epochs, batches, epsilon))?;
    let chosen = &choice.candidates[choice.chosen];
    let mut found = Vec::new();
    for (name, strategy) in strategies(epochs, batches)? {
        let rows = Rows::new(&strategy, q)?;
        let unit = strategy.loss(&Workload::Prefix, &Participation::Single, Adjacency::ZeroOut)?;
        let scale = unit.rms_loss / unit.sensitivity.value / BATCH_SIZE as f64 * rows.first;
        let mixtures = rows.mixtures(|_, _| rows.q);
        let share = |row: &Row| Row { times: row.times, sums: row.sums.clone() };
        let prior = rows.noise(epsilon, |_| mixtures.iter().map(share).collect());
        found.push((scale * prior, scale, name, rows));
    }
    found.sort_by(|x, y| x.0.total_cmp(&y.0));
    let ratio = |loss: f64| format!("{:.3}", loss / chosen.rms_loss);
    let best = &found[0];
    let mut line = format!(
        "| {epochs} | {batches} | {epsilon} | {} | {} {} |",
        poisson_requests::cell(&choice),
        best.2,
        ratio(best.0)
    );
    // Own terms only raise the loss, so that strategies whose best case loses are passed over.
    let mut own: Vec<(f64, usize)> = Vec::new();
    for (i, (prior, scale, _, rows)) in found.iter().enumerate() {
        if *prior < 0.99 * chosen.rms_loss && own.iter().all(|(least, _)| prior < least) {
            own.push((scale * rows.noise(epsilon, |noise| rows.own(noise)), i));
        }
    }
    own.sort_by(|x, y| x.0.total_cmp(&y.0));
    match own.first() {
        Some(&(loss, i)) => line += &format!(" {} {} |", found[i].2, ratio(loss)),
        None => line += " |",
    }
    Ok(line)
}

/// Compares delta of independent noise with the bounds of the project.
fn check() -> Outcome<()> {
    for (sigma, q, steps, epsilon) in [
        (0.8, 1.0 / 64.0, 256, 2.0),
        (2.0, 1.0 / 16.0, 64, 1.0),
        (0.7, 1.0 / 8.0, 16, 8.0),
        (5.0, 0.25, 32, 0.5),
    ] {
        let mut sums = Sums::nothing();
        sums.toss(GRID, q);
        let rows = [Row { times: f64::from(steps), sums }];
        let bounds =
            Composition::new([PoissonSampledGaussian::new(sigma, q, steps as u64)?])?.delta(epsilon)?;
        let own = [1.0, -1.0]
            .map(|sign| delta(&rows, 1.0 / (GRID * sigma), epsilon, sign))
            .into_iter()
            .fold(0.0, f64::max);
        println!(
            "independent noise {sigma}, rate {q}, {steps} steps: {own:.4e}, bounds {:.4e} to {:.4e}",
            bounds.lower, bounds.upper
        );
        if own < 0.995 * bounds.lower || own > 1.005 * bounds.upper {
            return Err("the contour integral disagrees with the accountant".into());
        }
    }
    let exact = Gdp::new(0.5)?.delta_to_nearest(1.0)?;
    let mut sums = Sums::nothing();
    sums.toss(GRID, 1.0);
    let own = delta(&[Row { times: 4.0, sums }], 0.25 / GRID, 1.0, 1.0);
    println!("four steps without sampling: {own:.4e}, exact {exact:.4e}");
    Ok(())
}

/// The requests of docs/results/plans.md: epochs, batches of an epoch, epsilon.
const REQUESTS: [(usize, usize, f64); 28] = [
    (1, 16, 0.5),
    (1, 16, 2.0),
    (1, 16, 4.0),
    (1, 16, 8.0),
    (4, 4, 0.5),
    (4, 4, 2.0),
    (4, 4, 4.0),
    (4, 4, 8.0),
    (1, 64, 0.5),
    (1, 64, 2.0),
    (1, 64, 4.0),
    (4, 16, 0.5),
    (4, 16, 2.0),
    (4, 16, 4.0),
    (4, 16, 8.0),
    (8, 8, 0.5),
    (8, 8, 2.0),
    (8, 8, 4.0),
    (8, 8, 8.0),
    (2, 64, 0.5),
    (2, 64, 2.0),
    (2, 64, 4.0),
    (2, 64, 8.0),
    (16, 8, 0.5),
    (16, 8, 2.0),
    (16, 8, 4.0),
    (16, 8, 8.0),
    (4, 64, 8.0),
];

fn main() -> Outcome<()> {
    let requests = poisson_requests::given(&REQUESTS)?;
    check()?;
    println!("\n| epochs | batches | epsilon | choice | prior | own |\n|---|---|---|---|---|---|");
    for (epochs, batches, epsilon) in requests {
        println!("{}", report(epochs, batches, epsilon)?);
    }
    Ok(())
}
