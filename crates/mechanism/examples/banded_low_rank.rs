//! Losses of decoders of bands plus low rank (Denisov et al. 2022, Appendix H) and of BLTs with as many
//! vectors of state, for prefix sums and a single participation.
//!
//! The decoder B of the best dense strategy is kept on `bands` diagonals. Below them, the matrix u v^T of
//! rank r replaces it that is nearest in the least squares of these entries, by alternating least squares.
//! C = B^-1 A. Noise keeps r sums and bands - 1 seeds.
//!
//! `cargo run --release -p antinoise-mechanism --example banded_low_rank`

use antinoise_linear::{Matrix, lower_inverse, product};
use antinoise_mechanism::design::StrategySpec;
use antinoise_mechanism::{Adjacency, AnyStrategy, Problem, Result, Strategy};

const ROUNDS: usize = 200;

fn main() -> Result<()> {
    println!("| steps | state | dense | bands + rank | of them bands | blt | column-normalized | rational |");
    println!("|---|---|---|---|---|---|---|---|");
    for steps in [256, 512, 1024] {
        let problem = Problem::prefix(steps);
        let design = |name: &str| {
            Ok::<_, antinoise_mechanism::Error>(name.parse::<StrategySpec>()?.design(&problem)?.value)
        };
        let rms = |strategy: &dyn Strategy| {
            Ok::<_, antinoise_mechanism::Error>(
                strategy.loss(&problem.workload, &problem.participation, Adjacency::ZeroOut)?.rms_loss,
            )
        };
        let dense = design("dense")?;
        let ones = Matrix::from_fn(steps, steps, |i, j| f64::from(u8::from(i >= j)));
        let decoder = product(&ones, &lower_inverse(&dense.encoder()?.to_dense()));
        for state in [2, 4, 8] {
            let mut best = (f64::INFINITY, 0);
            for rank in 1..=state {
                let bands = state - rank + 1;
                let approximate = banded_low_rank(&decoder, bands, rank);
                let encoder = product(&lower_inverse(&approximate), &ones);
                let Ok(strategy) = AnyStrategy::of_matrix(&encoder) else { continue };
                let loss = rms(&*strategy)?;
                if loss < best.0 {
                    best = (loss, bands);
                }
            }
            let blt = rms(&*design(&format!("blt:{state}"))?)?;
            let scaled = rms(&*design(&format!("blt:{state}+column-normalized"))?)?;
            let rational = rms(&*design(&format!("rational:{state}"))?)?;
            let dense = rms(&*dense)?;
            println!(
                "| {steps} | {state} | {dense:.4} | {:.4} | {} | {blt:.4} | {scaled:.4} | {rational:.4} |",
                best.0, best.1
            );
        }
    }
    Ok(())
}

/// Returns the matrix with the first diagonals of `target` and the nearest matrix of this rank below them.
fn banded_low_rank(target: &Matrix, bands: usize, rank: usize) -> Matrix {
    let n = target.nrows();
    let decays: Vec<f64> = (0..rank).map(|k| (-4f64.powi(k as i32) / n as f64).exp()).collect();
    let mut v: Vec<Vec<f64>> =
        (0..n).map(|j| decays.iter().map(|l| l.powi((n - j) as i32)).collect()).collect();
    let mut u = vec![vec![0.0; rank]; n];
    for _ in 0..ROUNDS {
        for (i, u) in u.iter_mut().enumerate() {
            let below = (0..(i + 1).saturating_sub(bands)).map(|j| (&v[j], target[(i, j)]));
            *u = least_squares(rank, below);
        }
        for (j, v) in v.iter_mut().enumerate() {
            *v = least_squares(rank, (j + bands..n).map(|i| (&u[i], target[(i, j)])));
        }
    }
    let entry = |i: usize, j: usize| match i.checked_sub(j) {
        None => 0.0,
        Some(lag) if lag < bands => target[(i, j)],
        Some(_) => u[i].iter().zip(&v[j]).map(|(u, v)| u * v).sum(),
    };
    Matrix::from_fn(n, n, entry)
}

/// Returns the x of least sum of (row . x - y)^2 over the (row, y), by the normal equations.
fn least_squares<'a>(rank: usize, rows: impl Iterator<Item = (&'a Vec<f64>, f64)>) -> Vec<f64> {
    let mut a = vec![vec![0.0; rank + 1]; rank];
    for (row, y) in rows {
        for i in 0..rank {
            (0..rank).for_each(|j| a[i][j] += row[i] * row[j]);
            a[i][rank] += row[i] * y;
        }
    }
    let scale = (0..rank).map(|i| a[i][i]).fold(0.0, f64::max);
    (0..rank).for_each(|i| a[i][i] += 1e-13 * scale + f64::MIN_POSITIVE);
    for i in 0..rank {
        let (above, below) = a.split_at_mut(i + 1);
        for row in below {
            let factor = row[i] / above[i][i];
            row.iter_mut().zip(&above[i]).skip(i).for_each(|(x, pivot)| *x -= factor * pivot);
        }
    }
    let mut x = vec![0.0; rank];
    for i in (0..rank).rev() {
        let known: f64 = (i + 1..rank).map(|j| a[i][j] * x[j]).sum();
        x[i] = (a[i][rank] - known) / a[i][i];
    }
    x
}
