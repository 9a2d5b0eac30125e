//! Poisson-sampled steps in which a group changes or examples are replaced: brackets against contour
//! integration, order in every parameter, and extreme input.

mod common;

use antinoise_accounting::{Bounds, Composition, Gdp, PoissonSampledGaussian};

use common::{is_swept, uniforms};

fn run(sigma: f64, rate: f64, steps: u64, group: u64, is_replaced: bool) -> PoissonSampledGaussian {
    let run = PoissonSampledGaussian::new(sigma, rate, steps).unwrap().of_group(group).unwrap();
    if is_replaced { run.replaced() } else { run }
}

fn epsilon(run: PoissonSampledGaussian, delta: f64) -> Bounds {
    Composition::new([run]).unwrap().epsilon(delta).unwrap()
}

/// The generator is scripts/accounting/mixtures.py, good to about 1e-9.
#[test]
fn random_settings_agree_with_contour_integration() {
    let mut rows = 0;
    for line in include_str!("golden/changed_delta.csv").lines().skip(1) {
        let row: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
        let [sigma, rate, steps, group, replaced, wanted, delta] = row[..] else {
            panic!("seven columns: {line}")
        };
        rows += 1;
        if !is_swept(rows, 4) {
            continue;
        }
        let found = epsilon(run(sigma, rate, steps as u64, group as u64, replaced == 1.0), delta);
        let (low, high) = (wanted * (1.0 - 1e-6), wanted * (1.0 + 1e-6));
        assert!(found.lower <= high && low <= found.upper, "{line}: {found:?}");
        assert!(found.upper - found.lower <= 0.01 * found.upper, "{line}: {found:?}");
    }
    assert_eq!(rows, 300);
}

/// One step has a closed form: the curve at the root of a quadratic, here by bisection.
#[test]
fn one_step_of_a_replaced_example_is_its_curve() {
    let mut cases = 0;
    for (sigma, rate) in [(0.5, 0.1), (1.0, 0.01), (2.0, 0.9), (5.0, 0.3), (0.2, 0.5)] {
        for epsilon in [0.0, 0.01, 0.3, 2.0] {
            let (mu, t) = (1.0 / sigma, f64::exp(epsilon));
            let tail = |x: f64| 0.5 * libm::erfc(x / std::f64::consts::SQRT_2);
            let likelihood = |z: f64, m: f64| 1.0 - rate + rate * (m * z - 0.5 * m * m).exp();
            let (mut low, mut high) = (-50.0, 50.0);
            for _ in 0..200 {
                let z = 0.5 * (low + high);
                if likelihood(z, mu) > t * likelihood(z, -mu) { high = z } else { low = z }
            }
            let beyond = |m: f64| (1.0 - rate) * tail(low) + rate * tail(low - m);
            let wanted = beyond(mu) - t * beyond(-mu);
            let composition = Composition::new([run(sigma, rate, 1, 1, true)]).unwrap();
            let found = composition.delta(epsilon).unwrap();
            let place = format!("{sigma} {rate} {epsilon}: {found:?} {wanted}");
            assert!(found.lower <= wanted + 1e-14 && wanted - 1e-14 <= found.upper, "{place}");
            assert!(found.upper - found.lower <= 1e-9 * found.upper, "{place}");
            cases += 1;
        }
    }
    assert_eq!(cases, 20);
}

/// The worst case is on a line: no contributions in the plane have a larger delta, by integration of the
/// definition.
#[test]
fn contributions_in_other_directions_are_no_worse() {
    let mut uniform = uniforms(7);
    let (spacing, mut cases) = (0.1, 0);
    for _ in 0..150 {
        let (sigma, rate, epsilon) = (0.6 + 2.0 * uniform(), uniform(), 2.0 * uniform() - 0.3);
        let (group, is_replaced) = (1 + (3.0 * uniform()) as usize, uniform() < 0.6);
        let mut contribution = || {
            let (angle, norm) = (std::f64::consts::TAU * uniform(), uniform().powf(0.25) / sigma);
            (norm * angle.cos(), norm * angle.sin())
        };
        let before: Vec<(f64, f64)> = (0..group).map(|_| contribution()).collect();
        let after: Vec<(f64, f64)> = (0..group).map(|_| contribution()).collect();
        // The ratio of the mixture over all subsets to N(0, I): its members are sampled independently.
        let subsets = |members: &[(f64, f64)]| -> Vec<(f64, f64, f64)> {
            members.iter().fold(vec![(1.0, 0.0, 0.0)], |sets, &(x, y)| {
                let with = sets.iter().map(|&(w, a, b)| (w * rate, a + x, b + y));
                sets.iter().map(|&(w, a, b)| (w * (1.0 - rate), a, b)).chain(with).collect()
            })
        };
        let (p, q) = (subsets(&before), if is_replaced { subsets(&after) } else { vec![(1.0, 0.0, 0.0)] });
        let density = |sets: &[(f64, f64, f64)], x: f64, y: f64| -> f64 {
            let normal = |d: f64| (-0.5 * d).exp() / std::f64::consts::TAU;
            sets.iter().map(|&(w, a, b)| w * normal((x - a).powi(2) + (y - b).powi(2))).sum()
        };
        let (mut removed, mut added, t) = (0.0, 0.0, f64::exp(epsilon.max(0.0)));
        for i in -120..=120 {
            for j in -120..=120 {
                let (x, y) = (f64::from(i) * spacing, f64::from(j) * spacing);
                let (p, q) = (density(&p, x, y), density(&q, x, y));
                removed += (p - t * q).max(0.0) * spacing * spacing;
                added += (q - t * p).max(0.0) * spacing * spacing;
            }
        }
        let worst = Composition::new([run(sigma, rate, 1, group as u64, is_replaced)]).unwrap();
        let most = worst.delta(epsilon.max(0.0)).unwrap().upper;
        let found = f64::max(removed, added);
        assert!(
            found <= most * (1.0 + 1e-3) + 1e-6,
            "{sigma} {rate} {epsilon} {group} {is_replaced}: {found} {most}"
        );
        cases += 1;
    }
    assert_eq!(cases, 150);
}

/// More steps, a higher rate, more examples and less noise never help, and replacement costs more than
/// removal and less than two removals.
#[test]
fn epsilon_is_monotone_in_every_parameter() {
    let mut cases = 0;
    for (sigma, rate, steps, group) in [
        (1.0, 0.01, 1000, 1),
        (2.0, 0.1, 100, 3),
        (0.7, 1e-3, 5000, 2),
        (8.0, 0.4, 30, 16),
        (5.0, 0.02, 1, 5),
    ] {
        for is_replaced in [false, true] {
            let at = |sigma, rate, steps, group| epsilon(run(sigma, rate, steps, group, is_replaced), 1e-6);
            let base = at(sigma, rate, steps, group);
            let worse = [
                at(0.97 * sigma, rate, steps, group),
                at(sigma, 1.05 * rate, steps, group),
                at(sigma, rate, 2 * steps, group),
                at(sigma, rate, steps, group + 1),
                epsilon(run(sigma, rate, steps, group, true), 1e-6),
                epsilon(run(sigma, rate, steps, 2 * group, is_replaced), 1e-6),
            ];
            for (i, worse) in worse.into_iter().enumerate() {
                let place = format!("{sigma} {rate} {steps} {group} {is_replaced}, {i}: {base:?} {worse:?}");
                assert!(base.lower <= worse.upper && base.upper <= worse.upper * (1.0 + 1e-3), "{place}");
                cases += 1;
            }
        }
        let one = Composition::new([run(sigma, rate, steps, 1, false)]).unwrap();
        for (changed, size) in
            [(run(sigma, rate, steps, group, false), group), (run(sigma, rate, steps, 1, true), 2)]
        {
            if let Ok(by_conversion) = one.group_epsilon_upper(1e-6, size) {
                assert!(
                    epsilon(changed, 1e-6).upper <= by_conversion * (1.0 + 1e-3),
                    "{sigma} {rate} {size}"
                );
            }
            cases += 1;
        }
    }
    assert_eq!(cases, 70);
}

/// Extremes give a finite figure or an error, and never less than a group without noise to hide in can have.
#[test]
fn extremes_are_bounded_by_the_gaussian_and_by_the_chance_to_be_sampled() {
    let mut cases = 0;
    for sigma in [1e-6, 0.05, 0.3, 1.0, 1e3, 1e9] {
        for rate in [1e-9, 1e-3, 0.5, 0.999_999, 1.0 - f64::EPSILON, 1.0] {
            for (group, is_replaced) in [(1, true), (2, false), (64, false), (7, true)] {
                cases += 1;
                if !is_swept(cases, 5) {
                    continue;
                }
                let mut fewer_steps = 0.0;
                for steps in [1, 10] {
                    let changed = run(sigma, rate, steps, group, is_replaced);
                    let found = epsilon(changed, 1e-5);
                    let distance = group as f64 * if is_replaced { 2.0 } else { 1.0 };
                    let mu = distance / sigma * (steps as f64).sqrt();
                    let most = Gdp::new(mu * (1.0 + 1e-12)).unwrap().epsilon_upper(1e-5).unwrap();
                    let place = format!("{sigma} {rate} {group} {is_replaced} {steps}: {found:?} {most}");
                    assert!(found.lower <= found.upper && found.upper <= most * (1.0 + 1e-9), "{place}");
                    assert!(fewer_steps <= found.upper, "{place}, {fewer_steps} before");
                    fewer_steps = found.lower;
                    // With so little noise a sampled example is seen.
                    if sigma < 0.01 && rate > 0.01 {
                        assert!(found.upper > 1e3, "{place}");
                    }
                }
            }
        }
    }
    assert_eq!(cases, 144);
    for size in [0, 65] {
        let error = PoissonSampledGaussian::new(1.0, 0.1, 1).unwrap().of_group(size).unwrap_err();
        assert!(error.to_string().contains("from 1 to 64"), "{error}");
    }
}
