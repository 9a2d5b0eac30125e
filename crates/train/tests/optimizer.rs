//! Optimisers against their formulas, written out for one parameter in double precision.

use antinoise_train::optimizer::{Optimizer, Rule};
use proptest::prelude::*;

fn run(rule: Rule, start: f32, gradients: &[f32]) -> f64 {
    let mut optimizer = Optimizer::new(rule, 1).unwrap();
    let mut theta = [start];
    gradients.iter().for_each(|&g| optimizer.step(&mut theta, &[g]));
    theta[0].into()
}

proptest! {
    #[test]
    fn sgd_is_the_heavy_ball(
        start in -1f32..1.0,
        gradients in proptest::collection::vec(-1f32..1.0, 0..30),
        learning_rate in 1e-3f64..1.0,
        momentum in prop_oneof![Just(0f64), 0f64..0.95],
    ) {
        // theta_n = theta_0 - rate * sum over t of g_t (1 + momentum + ... + momentum^(n-1-t)).
        let n = gradients.len();
        let weight = |t: usize| (0..n - t).map(|i| momentum.powi(i as i32)).sum::<f64>();
        let moved: f64 = gradients.iter().enumerate().map(|(t, &g)| f64::from(g) * weight(t)).sum();
        let scale = 1.0 + learning_rate * (0..n).map(weight).sum::<f64>();
        let got = run(Rule::Sgd { learning_rate, momentum }, start, &gradients);
        prop_assert!((got - (f64::from(start) - learning_rate * moved)).abs() < 1e-6 * scale);
    }

    #[test]
    fn adam_is_its_formula(
        start in -1f32..1.0,
        gradients in proptest::collection::vec(prop_oneof![Just(0f32), -1f32..1.0], 0..30),
        learning_rate in 1e-4f64..0.1,
        beta1 in 0f64..0.95,
        beta2 in 0.5f64..0.999,
    ) {
        let (mut theta, mut m, mut v) = (f64::from(start), 0f64, 0f64);
        for (t, &g) in gradients.iter().enumerate() {
            let (g, t) = (f64::from(g), t as i32 + 1);
            m = beta1 * m + (1.0 - beta1) * g;
            v = beta2 * v + (1.0 - beta2) * g * g;
            let (m, v) = (m / (1.0 - beta1.powi(t)), v / (1.0 - beta2.powi(t)));
            theta -= learning_rate * m / (v.sqrt() + 1e-8);
        }
        let got = run(Rule::Adam { learning_rate, beta1, beta2, epsilon: 1e-8 }, start, &gradients);
        prop_assert!((got - theta).abs() < 1e-5 * (1.0 + learning_rate * gradients.len() as f64), "{got} {theta}");
    }
}

#[test]
fn settings_outside_their_range_are_refused_by_name() {
    let refused = |rule, name: &str| {
        let message = Optimizer::new(rule, 3).unwrap_err().to_string();
        assert!(message.starts_with(name), "{message}");
    };
    for bad in [0.0, -0.1, f64::NAN, f64::INFINITY] {
        refused(Rule::Sgd { learning_rate: bad, momentum: 0.0 }, "learning_rate");
        let adam = Rule::Adam { learning_rate: 0.1, beta1: 0.9, beta2: 0.999, epsilon: bad };
        refused(adam, "epsilon of Adam");
    }
    for bad in [1.0, -0.1, f64::NAN] {
        refused(Rule::Sgd { learning_rate: 0.1, momentum: bad }, "momentum");
        refused(Rule::Adam { learning_rate: 0.1, beta1: bad, beta2: 0.999, epsilon: 1e-8 }, "beta1");
        refused(Rule::Adam { learning_rate: 0.1, beta1: 0.9, beta2: bad, epsilon: 1e-8 }, "beta2");
    }
}
