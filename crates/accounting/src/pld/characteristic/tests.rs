//! Errors against what is exact.

use super::*;

fn one_atom(loss: f64) -> Discrete {
    Discrete { losses: vec![loss], ln_masses: vec![0.0], infinity: 0.0 }
}

/// One atom: the angle of e^{i omega T loss} is a multiple of 2 pi / 7, known exactly for any number of steps
/// T. As computed, it errs in proportion to T.
#[test]
fn a_phase_of_many_steps_is_within_its_error() {
    for (loss, steps) in [(0.0, 1), (1.0, 1), (1.0, 1_000_000_007), (3.0, 123_456_789_012), (-2.0, 65_537)] {
        for bound in [Bound::Above, Bound::Below] {
            let part = Part { discrete: one_atom(loss), steps };
            let (values, sizes, _) = characteristic(&[part], 0.5, 7.0, 7, bound);
            for (k, (value, (size, growth))) in values.into_iter().zip(sizes).enumerate() {
                let sevenths = (k as i128 * steps as i128 * loss as i128).rem_euclid(7);
                let exact = Complex::from_polar(1.0, 2.0 * PI * sevenths as f64 / 7.0);
                // The comparison itself errs by one unit or two.
                let error = (value - exact).norm();
                assert!(error <= size * growth + 4e-16, "{loss} {steps} {k}: {error:e}, {size} {growth:e}");
                let rough = 1e-15 + 4e-15 * steps as f64 * (1.0 + loss.abs());
                assert!((0.0..rough).contains(&growth), "{loss} {steps} {k}: {growth:e}");
            }
        }
    }
}

/// Two atoms one apart, of equal mass: (1 + e^{i omega})^T / 2^T.
#[test]
fn two_equal_atoms_are_powers_of_a_cosine() {
    for steps in [1u64, 3, 40] {
        let half = Discrete { losses: vec![0.0, 1.0], ln_masses: vec![0.5f64.ln(); 2], infinity: 0.0 };
        let (values, sizes, ln_mass) =
            characteristic(&[Part { discrete: half, steps }], 0.0, 50.0, 400, Bound::Above);
        assert!(ln_mass.0.abs() <= 1e-13 * steps as f64, "{ln_mass:?}");
        for (k, (value, (size, growth))) in values.into_iter().zip(sizes).enumerate() {
            let half_angle = PI * k as f64 / 50.0;
            let power = Complex::from_polar(half_angle.cos(), half_angle).powu(steps as u32);
            let (error, bound) = ((value - power).norm(), size * growth + 1e-15 * steps as f64);
            assert!(
                error <= bound && growth < 1.0 || power.norm() < 1e-12,
                "{steps} {k}: {error:e} {bound:e}"
            );
        }
    }
}

/// Every addition but the first of each lane is lost to rounding, as the error bound foresees.
#[test]
fn a_sum_errs_by_half_a_unit_an_addition() {
    for count in [8, 256, 1024, 4096] {
        let mut values = vec![f64::EPSILON / 2.0; count];
        values[..8].fill(1.0);
        let exact = 8.0 + (count - 8) as f64 * f64::EPSILON / 2.0;
        let (error, unit) = ((exact - sum(&values)) / 8.0, f64::EPSILON / 2.0);
        assert!(error <= additions(count) * unit, "{count}: {error:e}");
    }
    let mut lost = vec![f64::EPSILON / 2.0; 256];
    lost[..8].fill(1.0);
    assert_eq!(sum(&lost), 8.0);
}

/// Rotated from one frequency to the next, W is what its definition gives at each.
#[test]
fn rotations_are_within_their_error() {
    let loss = |i: u32| f64::from(i * 7919 % 1009) * 4e-3 - 1.7;
    let ln_masses: Vec<f64> = (0..1000).map(|i| -f64::from(i * 104_729 % 997) * 2e-2).collect();
    let discrete = Discrete { losses: (0..1000).map(loss).collect(), ln_masses, infinity: 0.0 };
    let atoms = Atoms::tilted(&discrete, 1.0, Bound::Above);
    let step = 2.0 * PI / 40.0;
    let mut most = 0.0f64;
    let each = |k: usize, found: Complex<f64>| {
        let omega = step * k as f64;
        let term = |(loss, mass): (&f64, &f64)| {
            let half = 0.5 * omega * loss;
            mass * Complex::new(-2.0 * half.sin().powi(2), (omega * loss).sin())
        };
        // Summed in pairs, which errs far less than sums within lanes do.
        let mut terms: Vec<Complex<f64>> = atoms.losses.iter().zip(&atoms.masses).map(term).collect();
        while terms.len() > 1 {
            terms = terms.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
        most = most.max((found - terms[0]).norm() / atoms.error(omega));
    };
    pulp::Arch::new().dispatch(Transform { atoms: &atoms, step, count: 2000, each });
    assert!(most < 0.2, "the largest error is {most} of its bound; 0.04 was seen");
}
