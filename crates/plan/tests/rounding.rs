//! The noise of a plan covers the strategy that runs, with its coefficients as streams keep them.

use antinoise_input::BadInput;
use antinoise_mechanism::Workload;
use antinoise_plan::{ArithmeticKind, Length, Plan, Request, Setting, VerifiedPlan, choose};

fn plan(spec: &str, steps: usize, arithmetic: ArithmeticKind) -> VerifiedPlan {
    let workload = Workload::Momentum { momentum: 0.95, weight_decay: 0.0 };
    let mut request = Request::new(10 * steps, 10, Length::Epochs(1), Setting::Cyclic);
    (request.workload, request.arithmetic, request.dim) = (workload, arithmetic, 100);
    request.specs = Some(vec![spec.parse().unwrap()]);
    choose(&request).unwrap().plan
}

/// The sensitivity of the C whose inverse has these taps, over a single participation.
fn column_norm(taps: [f64; 3], steps: usize) -> f64 {
    let (mut last, mut before, mut sum) = (1.0 / taps[0], 0.0, 0.0);
    for _ in 0..steps {
        sum += last * last;
        (last, before) = (-(taps[1] * last + taps[2] * before) / taps[0], last);
    }
    f64::sqrt(sum)
}

#[test]
fn momentum_as_the_strategy_is_given_the_noise_that_its_rounded_taps_need() {
    let taps = [1.0, -1.95, 0.95];
    for (steps, least) in [(480, 2e-4), (10_000, 5e-3), (100_000, 0.05)] {
        for arithmetic in [ArithmeticKind::PlainFloatingPoint, ArithmeticKind::Grid] {
            let plan = plan("workload", steps, arithmetic);
            assert_eq!(plan.steps, steps);
            let plain = arithmetic == ArithmeticKind::PlainFloatingPoint;
            let held = if plain { taps.map(|tap| f64::from(tap as f32)) } else { taps };
            let needed = plan.noise_multiplier * column_norm(held, steps) * plan.widened_clip_norm();
            assert!(plan.noise_std() >= needed, "{steps} {arithmetic:?}: {} for {needed}", plan.noise_std());
            // On a grid rounding of the history term counts too: it is small if C is not near singular.
            let most = if plain { 1.0 + 1e-6 } else { plan.rounding_factor * (1.0 + 1e-6) };
            assert!(plan.noise_std() <= needed * most, "{steps} {arithmetic:?}");
            assert_eq!(plan.rounding_factor > 1.0 + least, plain, "{steps}: {}", plan.rounding_factor);
        }
    }
}

#[test]
fn a_plan_whose_rounding_is_understated_is_refused() {
    for arithmetic in [ArithmeticKind::PlainFloatingPoint, ArithmeticKind::Grid] {
        let plan = plan("workload", 480, arithmetic);
        assert_eq!(Plan::from_toml(&plan.to_toml()).unwrap(), plan);
        for factor in [1.0 - 1e-6, plan.rounding_factor * (1.0 - 1e-8), f64::NAN, 0.0] {
            let mut altered = plan.clone().into_plan();
            altered.rounding_factor = factor;
            let error = Plan::from_toml(&altered.to_toml()).expect_err("understated");
            assert!(error.is_bad_input() && error.to_string().contains("rounding_factor"), "{error}");
        }
    }
}

/// Sums of seeds are rounded to a grid too, unless plain is asked for.
#[test]
fn sums_of_seeds_have_plans_on_a_grid() {
    for spec in ["tree", "honaker-online", "honaker-full", "fourier", "fourier-optimal", "dense"] {
        let plan = plan(spec, 60, ArithmeticKind::Grid);
        assert_eq!(plan.arithmetic.kind(), ArithmeticKind::Grid, "{spec}");
        assert!(plan.rounding_factor < 1.0 + 1e-8, "{spec}: {:e}", plan.rounding_factor - 1.0);
    }
}
