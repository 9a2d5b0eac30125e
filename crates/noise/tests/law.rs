//! The law of the noise: its covariance over many keys is C^-1 C^-T.

mod common;

use antinoise_mechanism::Recursion;
use antinoise_noise::{Key, NoiseStream};
use common::{STEPS, cases};

/// Columns are independent, so coordinates serve as repetitions; more keys guard against a bad one.
const DIM: usize = 4096;
const KEYS: u64 = 8;

fn covariance(recursion: &Recursion) -> Vec<Vec<f64>> {
    let mut sum = vec![vec![0.0; STEPS]; STEPS];
    for key in 0..KEYS {
        let key = Key::from_seed_insecure(1000 + key);
        let mut stream =
            NoiseStream::builder(recursion.clone(), STEPS, DIM, 1.0).threads(1).build(key).unwrap();
        let rows: Vec<Vec<f32>> = (0..STEPS)
            .map(|_| {
                let mut row = vec![0.0; DIM];
                stream.next_into(&mut row).unwrap();
                row
            })
            .collect();
        for t in 0..STEPS {
            for s in 0..=t {
                sum[t][s] += rows[t].iter().zip(&rows[s]).map(|(x, y)| f64::from(x * y)).sum::<f64>();
            }
        }
    }
    sum.iter().map(|row| row.iter().map(|x| x / (KEYS as f64 * DIM as f64)).collect()).collect()
}

/// Row t of C^-1 (by seeds), from the recursion's answers to unit seeds.
fn inverse(recursion: &Recursion) -> Vec<Vec<f64>> {
    let seeds = recursion.seeds(STEPS);
    let columns: Vec<Vec<f64>> = (0..seeds)
        .map(|s| recursion.apply(STEPS, &(0..seeds).map(|i| f64::from(i == s)).collect::<Vec<_>>()))
        .collect();
    (0..STEPS).map(|t| columns.iter().map(|column| column[t]).collect()).collect()
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// 30 recursions of 91 entries, each a mean of 32,768 products. A mean's deviation over its standard
/// deviation is normal to high accuracy, so a bound of 5.5 fails a correct stream with probability below 30 x
/// 91 x 4e-8 = 1.1e-4. The keys are fixed: the test passes always or never.
#[test]
fn the_covariance_of_every_stream_is_that_of_its_mechanism() {
    for (name, recursion) in cases() {
        let (found, inverse) = (covariance(&recursion), inverse(&recursion));
        for t in 0..STEPS {
            for s in 0..=t {
                let exact = dot(&inverse[t], &inverse[s]);
                let variance = dot(&inverse[t], &inverse[t]) * dot(&inverse[s], &inverse[s]) + exact * exact;
                let deviation = (found[t][s] - exact).abs() / (variance / (KEYS as f64 * DIM as f64)).sqrt();
                assert!(deviation < 5.5, "{name}: entry ({t}, {s}) is {} and not {exact}", found[t][s]);
            }
        }
    }
}

/// Guards against a mistake that breaks cancellation and that no test of single rows detects: fresh seed
/// noise where z_{t-tau} must be the z of that step. Partial sums of differences equal one z; with fresh
/// noise they grow with t.
#[test]
fn seed_noise_is_the_same_each_time_that_it_is_used() {
    let difference = Recursion::MovingAverage { taps: vec![1.0, -1.0] };
    let steps = 50;
    for budget in [0, u64::MAX] {
        let mut stream = NoiseStream::builder(difference.clone(), steps, DIM, 1.0)
            .memory_budget(budget)
            .build(Key::from_seed_insecure(3))
            .unwrap();
        let mut sum = vec![0.0; DIM];
        for _ in 0..steps {
            stream.add_next_into(&mut sum, 1.0).unwrap();
        }
        let variance = sum.iter().map(|x| f64::from(x * x)).sum::<f64>() / DIM as f64;
        // Six standard deviations of the mean of 4096 squares: 2e-9. Fresh noise would give 99.
        assert!((variance - 1.0).abs() < 6.0 * (2.0 / DIM as f64).sqrt(), "{variance}");
    }
}
