//! Simulated figures against the exact ones of one Gaussian, over the space of noise, delta and samples.

use antinoise_accounting::{Gdp, MonteCarlo, MonteCarloMechanism};

/// A single bin is one Gaussian, whose privacy is exact. At every delta from 1e-10 to 0.5, with few and many
/// samples, the bounds contain the truth and are as narrow as the samples allow.
#[test]
fn one_bin_is_resolved_everywhere() {
    for mu in [0.1, 0.3, 1.0, 2.0, 4.0] {
        let exact = Gdp::new(mu).unwrap();
        let mechanism = MonteCarloMechanism::balls_in_bins(&[vec![mu]], 1, 1.0).unwrap();
        for delta in [1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5] {
            let epsilon = exact.epsilon_upper(delta).unwrap();
            if epsilon == 0.0 {
                let settings = MonteCarlo { failure_probability: 0.01 * delta, ..Default::default() };
                let found = mechanism.epsilon(delta, &settings, None, &|_, _| ()).unwrap();
                let is_close = delta < 1.3 * exact.delta_upper(0.0).unwrap();
                assert!(found.upper == 0.0 || is_close, "{mu} {delta}: {found:?}");
                continue;
            }
            for (max_samples, widest) in [(100_000, 1.08), (400_000, 1.06)] {
                let settings = MonteCarlo {
                    failure_probability: 0.01 * delta,
                    precision: 0.05,
                    max_samples,
                    ..Default::default()
                };
                let found = mechanism.curve(epsilon, &settings, &|_, _| ()).unwrap().central();
                let place = format!("{mu} {delta:e} {max_samples}: {found:?}");
                assert!(found.lower <= delta && delta <= found.upper, "{place}");
                assert!(found.upper <= widest * delta && found.lower >= (2.0 - widest) * delta, "{place}");
            }
        }
    }
}
