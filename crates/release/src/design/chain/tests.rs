//! Segments against dense matrices and all ways to spread a unit's periods.

use antinoise_mechanism::Recursion;

use super::*;
use crate::design::layout::Layout;
use crate::queries::measure::Measure;
use crate::{Growth, Segments, Unit};

fn settings(first: usize, growth: Growth, max_periods: usize) -> Settings {
    let queries = ["counts", "window:5", "decay:0.7"].map(|query| (query.parse().unwrap(), 1.0)).to_vec();
    let base = Settings { max_periods, queries, ..Settings::new(vec!["a".into()], first, Unit::User) };
    base.with_segments(Segments { first, growth })
}

/// All ways to write a number up to `most` as a sum of `segments` numbers.
fn allocations(segments: usize, most: usize) -> Vec<Vec<usize>> {
    if segments == 0 {
        return vec![Vec::new()];
    }
    let with = |last: usize| {
        let mut before = allocations(segments - 1, most - last);
        before.iter_mut().for_each(|counts| counts.push(last));
        before
    };
    (0..=most).flat_map(with).collect()
}

/// For random f of three segments: [`spread`] covers every allocation, and f at K alone may not.
#[test]
fn every_allocation_is_covered() {
    let (mut random, mut beyond) = (7u64, 0);
    for most in 1..=6 {
        for _ in 0..200 {
            let mut next = || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 40) as f64 / (1u64 << 24) as f64
            };
            let segments: Vec<Vec<f64>> = (0..3)
                .map(|_| {
                    let power = 0.5 + next();
                    (1..=most).map(|k| f64::from(k).powf(power) * (1.0 + 0.1 * next())).collect()
                })
                .collect();
            let squared = |k: usize, f: &[f64]| if k == 0 { 0.0 } else { f[k - 1] };
            let moved = |counts: &Vec<usize>| -> f64 {
                counts.iter().zip(&segments).map(|(k, f)| squared(*k, f)).sum()
            };
            let worst = allocations(3, most as usize).iter().map(moved).fold(0.0, f64::max);
            let covered = segments.iter().map(|f| spread(f)).fold(0.0, f64::max);
            assert!(worst <= covered * (1.0 + 1e-12), "{worst} {covered}");
            let whole = segments.iter().map(|f| f[most as usize - 1]).fold(0.0, f64::max);
            beyond += usize::from(worst > whole * (1.0 + 1e-12));
        }
    }
    assert!(beyond > 100, "{beyond}");
    // Two periods in two segments: 3 + 3 is more than the 4 of two periods in one segment.
    assert_eq!(spread(&[3.0, 4.0]), 6.0);
}

/// A segment with less noise than that is refused.
#[test]
fn a_link_with_too_little_noise_is_refused() {
    let wanted = settings(4, Growth::Doubles, 3);
    let chain = Chain::new(&wanted, &|_, _| ()).unwrap();
    let mut plans = chain.plans.clone();
    let read = |plans: &[String]| Chain::of(&wanted, plans.to_vec())?.design(2).cloned();
    assert_eq!(read(&plans).unwrap(), *chain.design(2).unwrap());
    for more in [1.1, 1.001] {
        // Each plan is valid, for a larger epsilon than the release's.
        let larger = Settings { epsilon: more * wanted.epsilon, ..wanted.clone() };
        let other = Chain::new(&larger, &|_, _| ()).unwrap();
        plans[2] = other.plans[2].clone();
        assert!(read(&plans).is_err());
    }
    assert!(read(&plans[..3]).is_err());

    // The same noise for a slightly smaller epsilon, and for users with one more period: three periods in one
    // segment and one in another exceed what it covers.
    let design = chain.design(1).unwrap();
    assert!(chain.check(design, None).is_ok());
    let stricter = Settings { epsilon: 0.9999 * wanted.epsilon, ..wanted.clone() };
    let more = Settings { max_periods: 4, ..wanted.clone() };
    for settings in [stricter, more] {
        let other = Chain { settings, ..chain.clone() };
        let error = other.check(design, None).unwrap_err().to_string();
        assert!(error.contains("noise multiplier of a segment"), "{error}");
    }
}

fn columns(recursion: &Recursion, steps: usize) -> Vec<Vec<f64>> {
    let column = |step: usize| {
        let mut unit = vec![0.0; steps];
        unit[step] = 1.0;
        recursion.apply(steps, &unit)
    };
    (0..steps).map(column).collect()
}

/// The squares of what a user adds to all cells but that of users at their bound in each period, and to that
/// cell once; the clip norm is in the noise.
fn contributions(settings: &Settings) -> (f64, f64) {
    let layout = Layout::new(settings);
    let Some(part) = layout.part_if_any(&Measure::AtBound) else {
        return (layout.clip_norm(settings.max_rows).powi(2), 0.0);
    };
    let mut others = layout.clone();
    others.parts.retain(|part| part.measure != Measure::AtBound);
    let spacing = 1.0 / 4096.0;
    let once = part.points(spacing) as f64 * spacing;
    (others.clip_norm(settings.max_rows).powi(2), once * once)
}

/// The attack: users who spread their periods over three segments in every way, with mu computed from the
/// dense matrices. None exceeds the mu of (epsilon, delta), and the worst attains it except for rounding.
#[test]
fn no_way_to_spread_periods_gains() {
    let growths = [(Growth::Even, 2), (Growth::Doubles, 3), (Growth::Squares, 3)];
    for ((growth, most), with_users) in growths.into_iter().flat_map(|case| [(case, false), (case, true)]) {
        let wanted = settings(3, growth, most);
        let wanted = if with_users { wanted.with_left_out() } else { wanted };
        let segments = wanted.segments.unwrap();
        let lengths: Vec<usize> = (0..3).map(|segment| segments.length(segment).min(9)).collect();
        let mut blocks = Vec::new();
        for (segment, &length) in lengths.iter().enumerate() {
            // For a longer segment, its first periods.
            let design = designed(&wanted.of_link(segments.length(segment).min(81)), &|_, _| ()).unwrap();
            let encoder = design.plan.strategy.encoder().unwrap();
            let moved = 1.0 / design.plan.noise_std();
            let columns: Vec<Vec<f64>> = (0..length)
                .map(|step| encoder.column(step).iter().map(|entry| entry * moved).collect())
                .collect();
            let start: usize = lengths[..segment].iter().sum();
            blocks.extend(
                columns.into_iter().enumerate().map(|(step, column)| (start + step, segment, column)),
            );
        }
        let periods = blocks.len();
        let mu = 1.0 / gaussian_noise_multiplier_upper(wanted.epsilon, wanted.delta).unwrap();
        let (of_rows, of_bound) = contributions(&wanted);
        let mut worst = 0.0f64;
        for pattern in 0u32..1 << periods {
            if pattern.count_ones() as usize > most {
                continue;
            }
            let mut squared = 0.0;
            for segment in 0..3 {
                let of_link =
                    blocks.iter().filter(|(period, of, _)| *of == segment && pattern >> period & 1 == 1);
                let mut sum: Vec<f64> = Vec::new();
                for (_, _, column) in of_link {
                    sum.resize(column.len(), 0.0);
                    sum.iter_mut().zip(column).for_each(|(sum, entry)| *sum += entry);
                }
                squared += of_rows * sum.iter().map(|entry| entry * entry).sum::<f64>();
            }
            // At the bound, in a cell of its own, in the last period.
            if pattern.count_ones() as usize == most {
                let last = blocks.iter().rev().find(|(period, ..)| pattern >> period & 1 == 1).unwrap();
                squared += of_bound * last.2.iter().map(|entry| entry * entry).sum::<f64>();
            }
            worst = worst.max(squared.sqrt());
        }
        assert!(worst <= mu && worst > 0.97 * mu, "{growth:?}: {worst} {mu}");
    }
}

/// Errors of every figure over five segments equal those from the dense A and C^-1.
#[test]
fn errors_across_borders_are_those_of_dense_matrices() {
    for (growth, first, most) in [(Growth::Even, 3, 1), (Growth::Even, 7, 2), (Growth::Doubles, 2, 2)] {
        let wanted = settings(first, growth, most);
        let segments = wanted.segments.unwrap();
        let chain = Chain::new(&wanted, &|_, _| ()).unwrap();
        let periods: usize = (0..4).map(|segment| segments.length(segment)).sum::<usize>() + 1;
        // Rows of diag(nu_i C_i^-1) by seed.
        let mut noise = vec![vec![0.0; periods]; periods];
        for segment in 0..5 {
            let (design, start) = (chain.design(segment).unwrap(), chain.started(segment));
            let columns = columns(&design.plan.strategy.recursion().unwrap(), design.plan.steps);
            for (seed, column) in columns.iter().enumerate() {
                for (step, entry) in column.iter().enumerate() {
                    if start + step < periods && start + seed < periods {
                        noise[start + step][start + seed] = entry * design.plan.noise_std();
                    }
                }
            }
        }
        for (query, _) in &wanted.queries {
            let weight = |age: usize| match query {
                Query::Window { width } => f64::from(age < *width),
                Query::Decay { factor } => factor.powi(age as i32),
                _ => 1.0,
            };
            let design = chain.first();
            let unit = design.layout.part_of(query).unit(design.spacing);
            for period in 0..periods {
                let entry = |seed: usize| -> f64 {
                    (0..=period).map(|at| weight(period - at) * noise[at][seed]).sum()
                };
                let dense = (0..periods).map(|seed| entry(seed).powi(2)).sum::<f64>().sqrt();
                let found = chain.deviation(query, period).unwrap();
                let wanted = dense / design.spacing * unit;
                assert!((found / wanted - 1.0).abs() < 1e-9, "{query} of {period}: {found} {wanted}");
            }
        }
    }
}
