//! Batches of a fixed size: the reduction against integration of the definition over all batches, against
//! neighbours that attain it, and against neighbours whose direction changes between steps.

mod common;

use antinoise_accounting::{
    Bounds, Composition, FixedSizeBatches, Neighbours, PoissonSampledGaussian, Sampling, fixed_size_reduction,
};

use common::{random_cases, uniforms};

fn composition(batch_size: usize, examples: usize, steps: usize, sigma: f64) -> Composition {
    let sampling = FixedSizeBatches { batch_size, examples, steps };
    Composition::new([fixed_size_reduction(&sampling, sigma).unwrap()]).unwrap()
}

/// delta where one example is zeroed, or replaced.
fn delta(batches: FixedSizeBatches, sigma: f64, epsilon: f64, is_zeroed: bool) -> Bounds {
    let sampling = Sampling::FixedSize(batches);
    match is_zeroed {
        true => sampling.delta(sigma, epsilon, Neighbours::ZeroOut).unwrap(),
        false => sampling.delta(0.5 * sigma, epsilon, Neighbours::ReplaceOne).unwrap(),
    }
}

type Vector = (f64, f64);

/// The sums of all batches of `size` of the `contributions`, which are equally likely.
fn sums(contributions: &[Vector], size: usize) -> Vec<Vector> {
    let batches = (0..1u32 << contributions.len()).filter(|batch| batch.count_ones() as usize == size);
    batches
        .map(|batch| {
            let members = contributions.iter().enumerate().filter(|(i, _)| batch >> i & 1 == 1);
            members.fold((0.0, 0.0), |(x, y), (_, c)| (x + c.0, y + c.1))
        })
        .collect()
}

/// The density at `z` of noise of standard deviation `sigma` on a sum drawn from `sums`.
fn density(sums: &[Vector], sigma: f64, (x, y): Vector) -> f64 {
    let normal = |(a, b): &Vector| (-0.5 * ((x - a).powi(2) + (y - b).powi(2)) / (sigma * sigma)).exp();
    sums.iter().map(normal).sum::<f64>() / (sums.len() as f64 * std::f64::consts::TAU * sigma * sigma)
}

/// No data set in the plane has a larger delta than the reduction: replaced and zeroed examples, in both
/// directions, with other examples that are near the worst case and far from it.
#[test]
fn no_neighbours_have_a_larger_delta() {
    let mut uniform = uniforms(11);
    let mut cases = 0;
    let wanted = random_cases(120, 3);
    for _ in 0..wanted {
        let examples = 2 + (4.0 * uniform()) as usize;
        let size = 1 + ((examples - 1) as f64 * uniform()) as usize;
        let (sigma, epsilon) = (0.5 + 2.0 * uniform(), (2.5 * uniform() - 0.5).max(0.0));
        let (is_zeroed, is_near_worst) = (uniform() < 0.4, uniform() < 0.5);
        let mut contribution = |towards: f64| match is_near_worst {
            true => (towards * (1.0 - 0.1 * uniform().powi(3)), 0.0),
            false => {
                let (angle, norm) = (std::f64::consts::TAU * uniform(), uniform().powf(0.25));
                (norm * angle.cos(), norm * angle.sin())
            }
        };
        let changed = contribution(1.0);
        let others: Vec<Vector> = (1..examples).map(|_| contribution(-1.0)).collect();
        let after = if is_zeroed { (0.0, 0.0) } else { contribution(-1.0) };
        let with = |c: Vector| sums(&others.iter().copied().chain([c]).collect::<Vec<_>>(), size);
        let (before, after) = (with(changed), with(after));
        let (spacing, reach) = (0.1 * sigma, size as f64 + 6.0 * sigma);
        let count = (reach / spacing).ceil() as i64;
        let (mut removed, mut added, t) = (0.0, 0.0, f64::exp(epsilon));
        for i in -count..=count {
            for j in -count..=count {
                let z = (i as f64 * spacing, j as f64 * spacing);
                let (p, q) = (density(&before, sigma, z), density(&after, sigma, z));
                removed += (p - t * q).max(0.0) * spacing * spacing;
                added += (q - t * p).max(0.0) * spacing * spacing;
            }
        }
        let batches = FixedSizeBatches { batch_size: size, examples, steps: 1 };
        let most = delta(batches, sigma, epsilon, is_zeroed).upper;
        let found = f64::max(removed, added);
        assert!(
            found <= most * (1.0 + 1e-3) + 1e-6,
            "{size} of {examples}, {sigma} {epsilon} {is_zeroed} {is_near_worst}: {found} {most}"
        );
        cases += 1;
    }
    assert_eq!(cases, wanted);
}

/// The examples of `others` contribute -1; one contributes 1, or is replaced by another -1.
fn extreme_neighbours(size: usize, others: usize, opposite: f64) -> (Vec<f64>, Vec<f64>) {
    let line = |c: f64| {
        let all: Vec<Vector> = (0..others).map(|_| (opposite, 0.0)).chain([(c, 0.0)]).collect();
        sums(&all, size).into_iter().map(|(x, _)| x).collect::<Vec<_>>()
    };
    (line(-opposite), line(opposite))
}

fn density_on_line(sums: &[f64], sigma: f64, x: f64) -> f64 {
    let normal = |a: &f64| (-0.5 * ((x - a) / sigma).powi(2)).exp();
    sums.iter().map(normal).sum::<f64>() / (sums.len() as f64 * std::f64::consts::TAU.sqrt() * sigma)
}

/// One step of the worst neighbours has exactly the reduction's delta.
#[test]
fn one_step_is_attained_by_opposite_contributions() {
    let mut cases = 0;
    for (size, examples, sigma) in [(1, 4, 1.0), (2, 5, 2.0), (3, 8, 0.7), (1, 2, 4.0), (4, 5, 1.5)] {
        for epsilon in [0.0, 0.1, 1.0, 2.5] {
            let (p, q) = extreme_neighbours(size, examples - 1, -1.0);
            let (t, spacing) = (f64::exp(epsilon), 1e-3 * sigma);
            let reach = ((size as f64 + 12.0 * sigma) / spacing) as i64;
            let excess = |i: i64| {
                let x = i as f64 * spacing;
                (density_on_line(&p, sigma, x) - t * density_on_line(&q, sigma, x)).max(0.0)
            };
            let wanted = (-reach..=reach).map(excess).sum::<f64>() * spacing;
            let found = composition(size, examples, 1, sigma).delta(epsilon).unwrap();
            let place = format!("{size} of {examples}, {sigma} {epsilon}: {found:?} {wanted}");
            assert!(found.lower <= wanted * (1.0 + 1e-5) && wanted <= found.upper * (1.0 + 1e-5), "{place}");
            assert!(found.upper - found.lower <= 1e-9 * found.upper, "{place}");
            cases += 1;
        }
    }
    assert_eq!(cases, 20);
}

/// The sums of batches of one example that contributes 1, or 0, and others that contribute `others`.
fn zeroed_neighbours(size: usize, examples: usize, others: f64) -> (Vec<f64>, Vec<f64>) {
    let with = |changed: f64| -> Vec<f64> {
        let all: Vec<Vector> = (1..examples).map(|_| (others, 0.0)).chain([(changed, 0.0)]).collect();
        sums(&all, size).into_iter().map(|(x, _)| x).collect()
    };
    (with(1.0), with(0.0))
}

/// One step in which an example is zeroed has exactly the delta of an example whose others are opposite, the
/// worst one for every epsilon; the other order of the two data sets has less.
#[test]
fn one_step_of_a_zeroed_example_is_attained_by_opposite_contributions() {
    let mut cases = 0;
    for (size, examples, sigma) in
        [(1, 4, 1.0), (2, 5, 2.0), (3, 8, 0.7), (1, 2, 4.0), (4, 5, 1.5), (1, 7, 0.3)]
    {
        for epsilon in [0.0, 0.1, 1.0, 2.5] {
            let (t, spacing) = (f64::exp(epsilon), 1e-3 * sigma);
            let reach = ((size as f64 + 12.0 * sigma) / spacing) as i64;
            let excess = |p: &[f64], q: &[f64]| -> f64 {
                let at = |i: i64| {
                    let x = i as f64 * spacing;
                    (density_on_line(p, sigma, x) - t * density_on_line(q, sigma, x)).max(0.0)
                };
                (-reach..=reach).map(at).sum::<f64>() * spacing
            };
            let (p, q) = zeroed_neighbours(size, examples, -1.0);
            let (same_p, same_q) = zeroed_neighbours(size, examples, 1.0);
            let wanted = excess(&p, &q);
            let batches = FixedSizeBatches { batch_size: size, examples, steps: 1 };
            let found = delta(batches, sigma, epsilon, true);
            let place = format!("{size} of {examples}, {sigma} {epsilon}: {found:?} {wanted}");
            assert!(found.lower <= wanted * (1.0 + 1e-5) + 1e-13, "{place}");
            assert!(wanted <= found.upper * (1.0 + 1e-5) + 1e-13, "{place}");
            assert!(found.upper - found.lower <= 1e-9 * found.upper, "{place}");
            for other in [excess(&q, &p), excess(&same_p, &same_q), excess(&same_q, &same_p)] {
                assert!(other <= wanted * (1.0 + 1e-6) + 1e-13, "{place} {other}");
            }
            cases += 1;
        }
    }
    assert_eq!(cases, 24);
}

/// Two steps in which an example is zeroed: the bracket holds the delta of the neighbours that are the worst
/// in both, and its upper bound is above that of neighbours whose others change sides by what the first step
/// released, in both orders.
#[test]
fn two_steps_of_a_zeroed_example_are_bounded_whatever_the_first_one_decides() {
    let (mut cases, mut better_by_choice) = (0, 0);
    for (size, examples, sigma) in [(1, 4, 1.0), (2, 6, 2.0), (1, 8, 0.6), (1, 2, 2.0), (3, 4, 1.5)] {
        for epsilon in [0.0, 0.2, 0.8] {
            let (t, spacing) = (f64::exp(epsilon), 0.02 * sigma);
            let reach = ((size as f64 + 9.0 * sigma) / spacing) as i64;
            let pairs = [-1.0, 1.0].map(|others| {
                let (p, q) = zeroed_neighbours(size, examples, others);
                let on = |sums: &[f64]| -> Vec<f64> {
                    let at = |i: i64| density_on_line(sums, sigma, i as f64 * spacing) * spacing;
                    (-reach..=reach).map(at).collect()
                };
                (on(&p), on(&q))
            });
            let (mut fixed, mut chosen) = (0.0f64, 0.0f64);
            for is_turned in [false, true] {
                let turn = |(p, q): (f64, f64)| if is_turned { (q, p) } else { (p, q) };
                let curve = |(ps, qs): &(Vec<f64>, Vec<f64>), weight: (f64, f64)| -> f64 {
                    let of = |(&p, &q): (&f64, &f64)| {
                        let (p, q) = turn((p, q));
                        (weight.0 * p - t * weight.1 * q).max(0.0)
                    };
                    ps.iter().zip(qs).map(of).sum()
                };
                let (mut always, mut best) = (0.0, 0.0);
                for first in &pairs {
                    let sums = |of: &dyn Fn((f64, f64)) -> f64| -> f64 {
                        first.0.iter().zip(&first.1).map(|(&p, &q)| of(turn((p, q)))).sum()
                    };
                    always = f64::max(always, sums(&|weight| curve(&pairs[0], weight)));
                    best = f64::max(
                        best,
                        sums(&|weight| curve(&pairs[0], weight).max(curve(&pairs[1], weight))),
                    );
                }
                (fixed, chosen) = (fixed.max(always), chosen.max(best));
            }
            let found =
                delta(FixedSizeBatches { batch_size: size, examples, steps: 2 }, sigma, epsilon, true);
            let place = format!("{size} of {examples}, {sigma} {epsilon}: {found:?} {fixed} {chosen}");
            assert!(found.lower <= fixed * (1.0 + 1e-3), "{place}");
            assert!(found.lower >= 0.97 * fixed, "{place}");
            assert!(chosen <= found.upper * (1.0 + 1e-3), "{place}");
            better_by_choice += usize::from(chosen > 1.001 * fixed);
            cases += 1;
        }
    }
    assert!(cases == 15, "{cases}, {better_by_choice}");
}

/// Two steps: the bracket holds the delta of neighbours whose other examples are opposite in both steps, and
/// its upper bound is above that of neighbours whose others change sides in the second step by what the first
/// one released.
#[test]
fn two_steps_are_bounded_whatever_the_first_one_decides() {
    let (mut cases, mut better_by_choice) = (0, 0);
    for (size, examples, sigma) in [(1, 4, 1.0), (2, 6, 2.0), (1, 8, 0.6), (1, 2, 2.0), (3, 4, 1.5)] {
        for epsilon in [0.0, 0.2, 0.8] {
            let t = f64::exp(epsilon);
            let spacing = 0.02 * sigma;
            let reach = ((size as f64 + 9.0 * sigma) / spacing) as i64;
            let pairs = [-1.0, 1.0].map(|opposite| {
                let (p, q) = extreme_neighbours(size, examples - 1, opposite);
                // The same example contributes 1 in one case and -1 in the other.
                let (p, q) = if opposite < 0.0 { (p, q) } else { (q, p) };
                let on = |sums: &[f64]| -> Vec<f64> {
                    let at = |i: i64| density_on_line(sums, sigma, i as f64 * spacing) * spacing;
                    (-reach..=reach).map(at).collect()
                };
                (on(&p), on(&q))
            });
            // The curve of the second step, at the t that remains after the first.
            let curve = |(p, q): &(Vec<f64>, Vec<f64>), weight: (f64, f64)| -> f64 {
                p.iter().zip(q).map(|(p, q)| (weight.0 * p - t * weight.1 * q).max(0.0)).sum()
            };
            let first = &pairs[0];
            let (mut fixed, mut chosen) = (0.0, 0.0);
            for (p, q) in first.0.iter().zip(&first.1) {
                let [one, other] = [0, 1].map(|i| curve(&pairs[i], (*p, *q)));
                fixed += one;
                chosen += one.max(other);
            }
            let found = composition(size, examples, 2, sigma).delta(epsilon).unwrap();
            let place = format!("{size} of {examples}, {sigma} {epsilon}: {found:?} {fixed} {chosen}");
            assert!(found.lower <= fixed * (1.0 + 1e-3), "{place}");
            assert!(chosen <= found.upper * (1.0 + 1e-3), "{place}");
            assert!(found.lower >= 0.98 * fixed, "{place}");
            better_by_choice += usize::from(chosen > 1.001 * fixed);
            cases += 1;
        }
    }
    assert_eq!(cases, 15);
    assert!(better_by_choice > 3, "a choice is worse than one direction in {better_by_choice} cases");
}

/// Epsilon grows with the batch and the steps, and lies between those of Poisson sampling with the noise and
/// with half of it, whose upper bound it may exceed by what a choice of directions adds.
#[test]
fn epsilon_is_monotone_and_near_that_of_half_the_noise() {
    let mut uniform = uniforms(5);
    let mut cases = 0;
    let wanted = random_cases(60, 3);
    for _ in 0..wanted {
        let examples = 10f64.powf(1.0 + 5.0 * uniform()) as usize;
        let size = 1 + ((examples as f64 * 10f64.powf(-3.0 * uniform())) as usize).min(examples - 2);
        let steps = 10f64.powf(4.0 * uniform()) as usize;
        let sigma = 0.5 * 40f64.powf(uniform());
        let at = |size, steps, sigma| -> Bounds {
            composition(size, examples, steps, sigma).epsilon(1e-6).unwrap()
        };
        let found = at(size, steps, sigma);
        let rate = size as f64 / examples as f64;
        let poisson = |sigma| {
            let run = PoissonSampledGaussian::new(sigma, rate, steps as u64).unwrap();
            Composition::new([run]).unwrap().epsilon(1e-6).unwrap()
        };
        let place = format!("{size} of {examples}, {steps} steps, {sigma}: {found:?}");
        let (whole, half) = (poisson(sigma), poisson(0.5 * sigma));
        assert!(found.lower <= found.upper && whole.lower <= found.upper, "{place} {whole:?}");
        assert!(half.lower * (1.0 - 1e-3) <= found.lower && found.lower <= half.upper, "{place} {half:?}");
        for more in [
            at((size + size / 10).min(examples - 1), steps, sigma),
            at(size, 2 * steps, sigma),
            at(size, steps, 0.95 * sigma),
        ] {
            assert!(found.upper <= more.upper * (1.0 + 1e-3) + 1e-12, "{place} {more:?}");
        }
        cases += 1;
    }
    assert_eq!(cases, wanted);
}

#[test]
fn noise_for_a_target_meets_it() {
    let sampling = FixedSizeBatches { batch_size: 500, examples: 50_000, steps: 1000 };
    let run = fixed_size_reduction(&sampling, 1.0).unwrap();
    let half = run.noise_multiplier_upper(2.0, 1e-6).unwrap();
    let epsilon = |sigma| composition(500, 50_000, 1000, sigma).epsilon(1e-6).unwrap().upper;
    assert!(epsilon(2.0 * half) <= 2.0 && epsilon(1.99 * half) > 2.0);
}

#[test]
fn what_has_another_law_is_refused() {
    let sampling = FixedSizeBatches { batch_size: 5, examples: 50, steps: 10 };
    let run = fixed_size_reduction(&sampling, 1.0).unwrap();
    for (refused, why) in [
        (run.of_group(2).unwrap_err(), "size is 2 but must be 1"),
        (run.truncated(7, 50).unwrap_err(), "max_batch_size is 7 but must be left out"),
        (
            fixed_size_reduction(&FixedSizeBatches { batch_size: 50, ..sampling }, 1.0).unwrap_err(),
            "from 1 to",
        ),
        (
            fixed_size_reduction(&FixedSizeBatches { batch_size: 0, ..sampling }, 1.0).unwrap_err(),
            "batch_size",
        ),
        (fixed_size_reduction(&FixedSizeBatches { steps: 0, ..sampling }, 1.0).unwrap_err(), "steps is 0"),
        (fixed_size_reduction(&sampling, -1.0).unwrap_err(), "noise_multiplier is -1"),
    ] {
        assert!(refused.to_string().contains(why), "{refused}");
    }
    assert_eq!(run.replaced(), run);
}

/// At the ends of the ranges, brackets of zeroed examples are in order, and not above those of replaced ones.
#[test]
fn the_ends_of_the_ranges_have_bounds() {
    let mut cases = 0;
    for sigma in [1e-6, 0.02, 1.0, 1e3, 1e12] {
        for (batch_size, examples) in [(1, 2), (1, 1_000_000_000), (999, 1000)] {
            for steps in [1, 1_000_000] {
                for delta in [1e-30, 1e-5, 0.9] {
                    let sampling = Sampling::FixedSize(FixedSizeBatches { batch_size, examples, steps });
                    let [zeroed, replaced] =
                        [(sigma, Neighbours::ZeroOut), (0.5 * sigma, Neighbours::ReplaceOne)]
                            .map(|(sigma, neighbours)| sampling.epsilon(sigma, delta, 1, neighbours));
                    // Noise below 1e-6 of the sensitivity is refused.
                    let (Ok(zeroed), Ok(replaced)) = (zeroed, replaced) else {
                        assert!(sigma < 1e-5);
                        continue;
                    };
                    let place =
                        format!("{sigma} {batch_size} {examples} {steps} {delta}: {zeroed:?} {replaced:?}");
                    assert!(0.0 <= zeroed.lower && zeroed.lower <= zeroed.upper, "{place}");
                    assert!(zeroed.upper <= replaced.upper * 1.002, "{place}");
                    cases += 1;
                }
            }
        }
    }
    assert!(cases >= 72, "{cases}");
}
