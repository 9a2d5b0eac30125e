//! One step against its definition.

use super::*;

const STEPS: [(f64, f64); 5] = [(0.3, 0.2), (1.0, 0.01), (2.0, 0.5), (6.0, 1e-4), (20.0, 1e-3)];

#[test]
fn losses_are_logarithms_of_the_mixture() {
    for (mu, q) in STEPS {
        let profile = Profile { mu, q, direction: Direction::Remove };
        for exponent in [-20.0, -1.0, 0.3, 5.0, 29.9, 30.1, 45.0, 300.0, 700.0] {
            let z = exponent / mu + 0.5 * mu;
            let exact = (1.0 - q + q * f64::exp(exponent)).ln();
            let (found, turned) = (profile.loss(z), Profile { direction: Direction::Add, ..profile }.loss(z));
            assert!(
                (found - exact).abs() <= 1e-11 * (1.0 + exact.abs()),
                "{mu} {q} {exponent}: {found} {exact}"
            );
            assert_eq!(turned, -found);
            let slope = (profile.loss(z + 1e-5) - profile.loss(z - 1e-5)) / 2e-5;
            let steepness = profile.steepness(z);
            assert!((slope - steepness).abs() <= 1e-4 * mu, "{mu} {q} {exponent}: {slope} {steepness}");
        }
    }
}

/// The curve is the integral of (P - t Q)_+, and (t Q - P)_+ below loss 0; its slope is Q beyond.
#[test]
fn curves_are_integrals() {
    let spacing = 2e-3;
    for (mu, q) in &STEPS[..4] {
        for direction in Direction::BOTH {
            let profile = Profile { mu: *mu, q: *q, direction };
            let points: Vec<(f64, f64, f64)> = (-5000..5000 + (mu / spacing) as i32)
                .map(|i| {
                    let z = f64::from(i) * spacing;
                    let density = density(z);
                    let mixture = density * (1.0 - q + q * (mu * (z - 0.5 * mu)).exp());
                    let (p, q) =
                        if direction == Direction::Remove { (mixture, density) } else { (density, mixture) };
                    (profile.loss(z), spacing * p, spacing * q)
                })
                .collect();
            for place in [-0.9, -0.3, 0.2, 0.7] {
                // A loss between the least and the greatest that matter.
                let loss = place * profile.greatest(2.0).min(profile.loss(-4.0).abs().max(profile.loss(4.0)));
                let (t, sign) = (loss.exp(), if loss >= 0.0 { 1.0 } else { -1.0 });
                let value: f64 = points.iter().map(|(_, p, q)| (sign * (p - t * q)).max(0.0)).sum();
                let beyond =
                    points.iter().filter(|(at, ..)| if loss >= 0.0 { *at > loss } else { *at <= loss });
                let slope: f64 = beyond.map(|(.., q)| q).sum();
                for rounding in [Rounding::Up, Rounding::Down] {
                    let found = profile.at(loss, rounding);
                    let place = format!("{profile:?} {loss}: {found:?} {value} {slope}");
                    assert!((found.value / value - 1.0).abs() < 1e-4 || value < 1e-12, "{place}");
                    assert!((found.slope - slope).abs() < 2e-3 * (1.0 + mu), "{place}");
                }
                assert!(profile.at(loss, Rounding::Up).value >= profile.at(loss, Rounding::Down).value);
            }
        }
    }
}
