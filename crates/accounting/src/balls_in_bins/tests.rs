//! Means of a few bins, against integrals.

use super::*;
use crate::monte_carlo::exact::{Component, deltas, dot};
use crate::monte_carlo::half_width;

/// The means of `columns`, each with its probability.
fn mixture(columns: &[Vec<f64>], bins: usize, std: f64) -> Vec<Component> {
    let mut means = vec![vec![0.0; columns.len()]; bins];
    for (t, column) in columns.iter().enumerate() {
        means[t % bins][t..].iter_mut().zip(column).for_each(|(mean, entry)| *mean += entry / std);
    }
    means.into_iter().map(|mean| (mean, 1.0 / bins as f64)).collect()
}

fn cases() -> Vec<(Vec<Vec<f64>>, usize, f64, f64)> {
    vec![
        (vec![vec![1.0, 0.5], vec![0.8]], 2, 0.6, 2.5),
        (vec![vec![1.0, 0.5, 0.4], vec![0.9, 0.4], vec![1.0]], 2, 0.8, 2.5),
        (vec![vec![1.0, 0.5, 0.4], vec![0.7, 0.4], vec![1.0]], 3, 0.6, 2.5),
        (vec![vec![1.0]], 1, 0.5, 4.0),
    ]
}

/// For every proposal of both directions: the mean is delta, no sample is above the bound, and one of the
/// proposals makes a rare event a common one. The same holds for means that are scaled.
#[test]
fn every_proposal_samples_the_delta_of_its_direction() {
    for (columns, bins, std, epsilon) in cases() {
        let exact = deltas(&mixture(&columns, bins, std), epsilon);
        let whole = BinsPair::new(&columns, bins, std).unwrap();
        let scaled = BinsPair::new(&columns, bins, 2.0).unwrap().scaled(2.0 / std);
        for (direction, exact) in Direction::BOTH.into_iter().zip(exact) {
            for pair in [&whole, &scaled] {
                let mut narrowest = f64::INFINITY;
                for tilt in pair.proposals(direction, epsilon) {
                    let largest = pair.largest_sample(direction, epsilon, &tilt);
                    let (mut normals, mut tally) =
                        (Normals::new(&Source::of_seed(1), 0, 0), Tally::default());
                    let mut v = vec![0.0; bins];
                    for draws in pair.draws(&mut normals, 30_000) {
                        for (noise, &bin) in draws.noise.chunks(bins).zip(&draws.bins) {
                            let (mut one, sample) = ([Tally::default()], (noise, bin));
                            add(&mut one, &[epsilon], pair.one(direction, epsilon, tilt, sample, &mut v));
                            let sample = one[0].sum;
                            assert!((0.0..=largest).contains(&sample), "{direction:?}: {sample} {largest}");
                            tally.add(sample);
                        }
                    }
                    let width = half_width(&tally, largest, 1e-9);
                    let place =
                        format!("{direction:?} {columns:?} {tilt}: {} +- {width}, {exact}", tally.mean());
                    assert!((tally.mean() - exact).abs() <= width + 2e-3 * exact, "{place}");
                    narrowest = narrowest.min(width / exact);
                }
                assert!(
                    narrowest < 0.15,
                    "{direction:?} {columns:?}: {exact} within {narrowest} of it at best"
                );
            }
        }
    }
}

#[test]
fn squares_of_means_are_those_of_the_columns() {
    for (columns, bins, std, _) in cases() {
        let all = mixture(&columns, bins, std);
        let mut centre = vec![0.0; columns.len()];
        all.iter().for_each(|(mean, chance)| centre.iter_mut().zip(mean).for_each(|(c, m)| *c += chance * m));
        let trace: f64 = all.iter().map(|(mean, chance)| chance * dot(mean, mean)).sum();
        let pair = BinsPair::new(&columns, bins, 2.0).unwrap().scaled(2.0 / std);
        let (found, found_trace) = pair.mean_squares();
        let exact = dot(&centre, &centre);
        assert!(
            (found / exact - 1.0).abs() < 1e-9 && (found_trace / trace - 1.0).abs() < 1e-9,
            "{found} {exact}"
        );
    }
}
