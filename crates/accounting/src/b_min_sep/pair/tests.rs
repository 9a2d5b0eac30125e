//! Patterns of a few steps written out.

use super::*;
use crate::monte_carlo::exact::{Component, deltas, dot};
use crate::monte_carlo::half_width;

fn pair(columns: &[&[f64]], min_sep: usize, examples: usize, std: f64) -> MinSepPair {
    MinSepPair::new(columns, SamplingLaw::new(min_sep, 2.0, examples).unwrap(), std).unwrap()
}

fn pairs() -> Vec<MinSepPair> {
    vec![
        pair(&[&[1.0], &[0.8]], 1, 10, 0.7),
        pair(&[&[1.0, 0.5], &[0.8]], 2, 9, 0.6),
        pair(&[&[1.0, 0.5], &[0.7, 0.4], &[1.0]], 2, 12, 0.7),
        pair(&[&[1.0], &[1.0], &[1.0]], 3, 7, 0.5),
    ]
}

/// All patterns of participation, each with its probability under `pair` and under the thinned process that
/// joins with `fraction` of the probability; one entry for each initial delay that the pattern may follow.
fn paths(pair: &MinSepPair, fraction: f64) -> Vec<(Vec<usize>, f64, f64)> {
    let SamplingLaw { min_sep, rate, free, join, .. } = pair.law;
    let steps = pair.steps();
    let mut all = Vec::new();
    for delay in 0..min_sep {
        let chance = if delay == 0 { free } else { rate };
        for set in 0..1usize << steps {
            let pattern: Vec<usize> = (0..steps).filter(|t| set >> t & 1 == 1).collect();
            let apart = pattern.windows(2).all(|pair| pair[1] - pair[0] >= min_sep);
            if !apart || pattern.first().is_some_and(|&first| first < delay) {
                continue;
            }
            let (mut t, mut stays) = (delay, 0);
            while t < steps {
                let joins = pattern.contains(&t);
                stays += i32::from(!joins);
                t += if joins { min_sep } else { 1 };
            }
            let joins = pattern.len() as i32;
            let of = |join: f64| chance * join.powi(joins) * (1.0 - join).powi(stays);
            all.push((pattern, of(join), of(fraction * join)));
        }
    }
    all
}

/// m_x.
fn mean(pair: &MinSepPair, pattern: &[usize]) -> Vec<f64> {
    let mut mean = vec![0.0; pair.steps()];
    for &t in pattern {
        mean[t..].iter_mut().zip(&pair.columns[t]).for_each(|(mean, entry)| *mean += entry);
    }
    mean
}

fn mixture(pair: &MinSepPair) -> Vec<Component> {
    paths(pair, 1.0).into_iter().map(|(pattern, chance, _)| (mean(pair, &pattern), chance)).collect()
}

fn near(found: f64, exact: f64) -> bool {
    (found - exact).abs() <= 1e-12 * (1.0 + exact.abs())
}

/// For every proposal of both directions: the mean is delta, no sample is above the bound, and one of the
/// proposals makes a rare event a common one.
#[test]
fn every_proposal_samples_the_delta_of_its_direction() {
    for (pair, epsilon) in pairs().iter().zip([2.5, 2.0, 2.5, 3.0]) {
        // With the example added, losses are below that of the pattern without a participation.
        let none: f64 =
            paths(pair, 1.0).iter().filter(|(x, ..)| x.is_empty()).map(|(_, chance, _)| chance).sum();
        for (direction, epsilon) in [(Direction::Remove, epsilon), (Direction::Add, -0.6 * none.ln())] {
            let exact = deltas(&mixture(pair), epsilon)[direction as usize];
            let mut narrowest = f64::INFINITY;
            for proposal in pair.proposals(direction, epsilon) {
                let largest = pair.largest_sample(direction, epsilon, &proposal);
                let (mut normals, mut tally) = (Normals::new(&Source::of_seed(1), 0, 0), Tally::default());
                let (mut y, mut losses, mut scratch) =
                    (vec![0.0; pair.steps()], vec![0.0; pair.steps()], Vec::new());
                for _ in 0..30_000 {
                    y.iter_mut().for_each(|y| *y = normals.next());
                    let sample =
                        pair.one(epsilon, &proposal, &mut normals, &mut y, &mut losses, &mut scratch);
                    let mut one = [Tally::default()];
                    add(&mut one, &[epsilon], sample);
                    let sample = one[0].sum;
                    assert!(
                        (0.0..=largest).contains(&sample),
                        "{direction:?} {proposal:?}: {sample} {largest}"
                    );
                    tally.add(sample);
                }
                let width = half_width(&tally, largest, 1e-9);
                let place =
                    format!("{direction:?} {pair:?} {proposal:?}: {} +- {width}, {exact}", tally.mean());
                assert!((tally.mean() - exact).abs() <= width + 2e-3 * exact, "{place}");
                narrowest = narrowest.min(width / exact);
            }
            assert!(narrowest < 0.15, "{direction:?} {pair:?}: {exact} within {narrowest} of it at best");
        }
    }
}

/// By direct products, by logarithms and by all patterns.
#[test]
fn the_ratio_is_the_sum_over_patterns() {
    for pair in pairs() {
        for (scale, factor) in [(1.0, 1.0), (-3.0, 1.0), (20.0, 2.5), (0.5, -0.7)] {
            let losses: Vec<f64> = (0..pair.steps()).map(|t| scale * [1.0, -0.4, 0.7][t]).collect();
            let term = |(pattern, chance, _): (Vec<usize>, f64, f64)| {
                chance * (factor * pattern.iter().map(|&t| losses[t]).sum::<f64>()).exp()
            };
            let exact = paths(&pair, 1.0).into_iter().map(term).sum::<f64>().ln();
            let found = [
                pair.ln_ratio_by_products(&losses, factor, &mut Vec::new()),
                pair.ln_ratio_by_logarithms(&losses, factor),
            ];
            assert!(found.iter().all(|&found| near(found, exact)), "{pair:?}: {found:?} {exact}");
        }
    }
}

/// The mean of m_x under the thinned process, the mean of |m_x|^2, and the divergence from the law of
/// patterns.
#[test]
fn the_thinned_process_is_that_of_the_definition() {
    for pair in pairs() {
        for fraction in [1.0, 0.6, 0.1] {
            let (found, gap) = pair.thinned(fraction);
            let (mut exact, mut exact_gap) = (vec![0.0; pair.steps()], 0.0);
            for (pattern, chance, thin) in paths(&pair, fraction) {
                let mean = mean(&pair, &pattern);
                exact.iter_mut().zip(&mean).for_each(|(sum, entry)| *sum += thin * entry);
                exact_gap += thin * (0.5 * dot(&mean, &mean) + (thin / chance).ln());
            }
            let same = found.iter().zip(&exact).all(|(found, exact)| near(*found, *exact));
            assert!(same && near(gap, exact_gap), "{pair:?}: {found:?} {exact:?} {gap} {exact_gap}");
        }
    }
}

/// `E LR^a` is the mean of `e^<m_x, m_x'>`, over all pairs of `a` independent patterns; that of one stretched
/// pattern is a sum over patterns.
#[test]
fn weights_of_replicas_are_sums_over_patterns() {
    for pair in pairs() {
        let all = mixture(&pair);
        let mut tuples: Vec<(Vec<f64>, f64)> = vec![(vec![0.0; pair.steps()], 1.0)];
        for count in 1..=3 {
            let more = |(sum, weight): &(Vec<f64>, f64)| -> Vec<(Vec<f64>, f64)> {
                let with = |(mean, chance): &Component| {
                    let together = sum.iter().zip(mean).map(|(a, b)| a + b).collect();
                    (together, weight * chance * dot(sum, mean).exp())
                };
                all.iter().map(with).collect()
            };
            tuples = tuples.iter().flat_map(more).collect();
            let exact = tuples.iter().map(|(_, weight)| weight).sum::<f64>().ln();
            let found = ReplicaProposal::new(pair.law, &pair.gram, count, 1.0);
            assert!(near(found.ln_weight, exact), "{count} of {pair:?}: {} {exact}", found.ln_weight);
            assert_eq!(found.exponent(), count as f64 - 1.0);
        }
        for stretch in [1.0, 1.3, 4.0, 40.0] {
            let power = 0.5 * stretch * (stretch - 1.0);
            let exact =
                all.iter().map(|(mean, chance)| chance * (power * dot(mean, mean)).exp()).sum::<f64>().ln();
            let found = ReplicaProposal::new(pair.law, &pair.gram, 1, stretch).ln_weight;
            let other = pair.ln_weight_of_stretched(stretch);
            assert!(near(found, exact) && near(other, exact), "{stretch} {pair:?}: {found} {other} {exact}");
        }
    }
}

/// No other stretch has a smaller bound on its samples.
#[test]
fn the_stretch_is_the_best_one() {
    for pair in pairs() {
        for epsilon in [0.5, 2.0, 6.0] {
            let bound = |stretch: f64| {
                let replicas = ReplicaProposal::new(pair.law, &pair.gram, 1, stretch);
                pair.largest_sample(Direction::Remove, epsilon, &Proposal::Mixture(Arc::new(replicas)))
            };
            let stretch = |proposal: &Proposal| match proposal {
                Proposal::Mixture(replicas) => replicas.stretch,
                Proposal::Origin { .. } => 1.0,
            };
            let found = pair.proposals(Direction::Remove, epsilon);
            let found = found.iter().map(stretch).fold(0.0, f64::max);
            let others = (-60..60).map(|i| bound(1.0 + (0.1 * f64::from(i)).exp()));
            let least = others.fold(f64::INFINITY, f64::min);
            assert!(bound(found) <= 1.01 * least, "{pair:?} {epsilon}: {found}, {} {least}", bound(found));
        }
    }
}

#[test]
fn the_largest_norm_is_that_of_some_pattern() {
    for pair in pairs() {
        let square = mixture(&pair).iter().map(|(mean, _)| dot(mean, mean)).fold(0.0, f64::max);
        assert!(near(pair.largest_norm(), square.sqrt()), "{pair:?}: {square}");
    }
}
