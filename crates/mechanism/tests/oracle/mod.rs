//! The naive dense version of everything, for small n: explicit matrices and every pattern tried.

use antinoise_mechanism::{Participation, Recursion, Separation, Workload};

/// Rows of a square matrix.
pub type Matrix = Vec<Vec<f64>>;

/// A from its definition, entry by entry.
pub fn workload(workload: &Workload, n: usize) -> Matrix {
    let entry = |i: usize, j: usize| match workload {
        Workload::Cooldown { start, last } => {
            let length = (n - 1).saturating_sub(*start).max(1) as f64;
            1.0 - (1.0 - last) * (j.saturating_sub(*start) as f64 / length)
        }
        Workload::Schedule { rates, momentum } => {
            (j..=i).map(|s| rates[s] * momentum.powi((s - j) as i32)).sum()
        }
        Workload::Matrix { rows } => rows[i][j],
        _ => workload.coefficients(n).unwrap().unwrap()[i - j],
    };
    (0..n).map(|i| (0..n).map(|j| if j <= i { entry(i, j) } else { 0.0 }).collect()).collect()
}

pub fn product(a: &Matrix, b: &Matrix) -> Matrix {
    a.iter()
        .map(|row| (0..b[0].len()).map(|j| row.iter().zip(b).map(|(x, b)| x * b[j]).sum()).collect())
        .collect()
}

pub fn transposed(a: &Matrix) -> Matrix {
    (0..a[0].len()).map(|j| a.iter().map(|row| row[j]).collect()).collect()
}

/// C^-1, column by column: what the recursion makes of each unit seed.
pub fn of_recursion(recursion: &Recursion, n: usize) -> Matrix {
    let seeds = recursion.seeds(n);
    let columns: Matrix = (0..seeds)
        .map(|seed| recursion.apply(n, &(0..seeds).map(|s| f64::from(s == seed)).collect::<Vec<_>>()))
        .collect();
    transposed(&columns)
}

pub fn max_row_norm(b: &Matrix) -> f64 {
    b.iter().map(|row| row.iter().map(|x| x * x).sum::<f64>()).fold(0.0, f64::max).sqrt()
}

pub fn rms(b: &Matrix) -> f64 {
    (b.iter().flatten().map(|x| x * x).sum::<f64>() / b.len() as f64).sqrt()
}

/// Every pattern of the schema, the largest ones only: adding a participation never lowers the maximum.
pub fn patterns(participation: &Participation, n: usize) -> Vec<Vec<usize>> {
    let Separation { min_sep: b, max_participations: k } = participation.separation(n);
    match participation {
        Participation::Patterns { patterns } => patterns.clone(),
        Participation::MinSep { .. } => (1u32..1 << n)
            .map(|bits| (0..n).filter(|t| bits >> t & 1 == 1).collect::<Vec<_>>())
            .filter(|p| p.len() <= k && p.windows(2).all(|w| w[1] - w[0] >= b))
            .collect(),
        Participation::EachEpoch { epoch_steps } => {
            (0..n).step_by(*epoch_steps).fold(vec![vec![]], |all, start| {
                let steps = start..n.min(start + epoch_steps);
                let longer = |t: usize| move |pattern: &Vec<usize>| [&pattern[..], &[t]].concat();
                steps.flat_map(|t| all.iter().map(longer(t)).collect::<Vec<_>>()).collect()
            })
        }
        _ => (0..b).map(|phase| (phase..n).step_by(b).take(k).collect()).collect(),
    }
}

/// max over patterns and over signs of contributions of ||sum of +- columns||: the sensitivity for scalar
/// gradients, a lower bound on it for vectors, and the truth for both where no two columns oppose.
pub fn sensitivity(c: &Matrix, participation: &Participation) -> f64 {
    let columns = transposed(c);
    patterns(participation, columns.len())
        .iter()
        .flat_map(|pattern| {
            (0u32..1 << pattern.len().saturating_sub(1)).map(|signs| {
                let sign = |i: usize| if signs >> i & 1 == 1 { -1.0 } else { 1.0 };
                (0..c.len())
                    .map(|row| {
                        let sum: f64 =
                            pattern.iter().enumerate().map(|(i, &t)| sign(i) * columns[t][row]).sum();
                        sum * sum
                    })
                    .sum::<f64>()
            })
        })
        .fold(0.0, f64::max)
        .sqrt()
}
