//! Observed participation: the noise over the sensitivity of every pattern, by a loop, and never less noise
//! than is claimed.

use antinoise_input::BadInput;
use antinoise_mechanism::sensitivity::Kind;
use antinoise_mechanism::{Adjacency, Participation, PrivacyUnit};
use antinoise_plan::{Length, Request, Setting, VerifiedPlan, choose};

fn plan(strategy: &str, adjacency: Adjacency) -> VerifiedPlan {
    let setting = Setting::Federated { min_sep: 4, max_participations: Some(5) };
    let mut request = Request::new(100, 4, Length::Steps(24), setting);
    (request.unit, request.adjacency, request.dim) = (PrivacyUnit::User, adjacency, 1000);
    request.specs = Some(vec![strategy.parse().unwrap()]);
    choose(&request).unwrap().plan
}

/// sens^2 of one pattern, from the columns of C.
fn squared(plan: &VerifiedPlan, pattern: &[usize]) -> f64 {
    let encoder = plan.strategy.encoder().unwrap();
    let mut sum = vec![0.0; plan.steps];
    for &t in pattern {
        let column = encoder.column(t);
        let skipped = plan.steps - column.len();
        sum[skipped..].iter_mut().zip(column).for_each(|(sum, x)| *sum += x);
    }
    sum.iter().map(|x| x * x).sum()
}

#[test]
fn it_is_the_worst_pattern_that_counts() {
    let patterns = [vec![1], vec![0, 9, 23], vec![5, 12, 19], vec![7, 11]];
    for (strategy, adjacency) in [
        ("blt:2", Adjacency::ZeroOut),
        ("banded-toeplitz:4", Adjacency::ReplaceOne),
        ("toeplitz", Adjacency::ZeroOut),
    ] {
        let plan = plan(strategy, adjacency);
        let found = plan.observed(&patterns).unwrap();
        assert_eq!((found.min_sep, found.max_participations), (Some(4), 3));
        let worst = patterns.iter().map(|pattern| squared(&plan, pattern)).fold(0.0, f64::max).sqrt();
        let worst = worst * adjacency.sensitivity_factor();
        let value = found.sensitivity.value;
        assert!(found.sensitivity.kind == Kind::Exact && (value / worst - 1.0).abs() < 1e-12, "{strategy}");
        // All that the noise is made for, over what it is observed for.
        let wanted = plan.noise_std() / (worst * plan.widened_clip_norm());
        let multiplier = found.noise_multiplier;
        assert!(multiplier < wanted && multiplier > 0.999 * wanted, "{strategy}: {multiplier} of {wanted}");
        let bound = Participation::MinSep { min_sep: 4, max_participations: 3 };
        let bound = plan.strategy.sensitivity(&bound).unwrap().under(adjacency).value;
        // Orthogonal columns cost the same wherever they are, those of a BLT do not.
        let overlap = strategy == "blt:2";
        assert!(value < bound || !overlap && value < bound * (1.0 + 1e-12), "{strategy}");
        let epsilon = found.epsilon(plan.privacy.delta).unwrap();
        assert!(epsilon.lower <= epsilon.upper && epsilon.upper < plan.privacy.epsilon);
    }
}

/// The densest pattern costs what the plan promised, to the last digits and not more.
#[test]
fn the_densest_pattern_costs_what_was_promised() {
    let plan = plan("blt:2", Adjacency::ZeroOut);
    let densest: Vec<usize> = (0..5).map(|turn| 4 * turn).collect();
    let found = plan.observed(&[densest, vec![3]]).unwrap().noise_multiplier;
    assert!(found >= plan.noise_multiplier && found < plan.noise_multiplier * (1.0 + 1e-6), "{found}");
}

/// With more patterns than are looked at one by one the bound of min-sep takes their place.
#[test]
fn many_pairs_are_bounded() {
    let setting = Setting::Federated { min_sep: 1, max_participations: Some(5000) };
    let mut request = Request::new(100, 4, Length::Steps(5000), setting);
    request.unit = PrivacyUnit::User;
    request.specs = Some(vec!["identity".parse().unwrap()]);
    let plan = choose(&request).unwrap().plan;
    let found = plan.observed(&[vec![0, 2, 4999]]).unwrap();
    assert!((found.sensitivity.value - 3f64.sqrt()).abs() < 1e-12 && found.min_sep == Some(2));
}

#[test]
fn what_cannot_be_said_is_refused() {
    let plan = plan("identity", Adjacency::ZeroOut);
    for (patterns, message) in [
        (vec![], "number of users with finished steps is 0"),
        (vec![vec![0, 3]], "min_sep is 3 but must be from 4"),
        (
            vec![(0..6).map(|t| 4 * t).collect()],
            "max_participations is 6 but must be from 1 to the plan's = 5",
        ),
        (vec![vec![24]], "pattern 0 is [24]"),
        (vec![vec![9, 4]], "pattern 0 is [9, 4]"),
        (vec![vec![]], "pattern 0 is []"),
    ] {
        let refused = plan.observed(&patterns).unwrap_err();
        assert!(refused.is_bad_input() && refused.to_string().contains(message), "{refused}");
    }
    let sampled = Request::new(1000, 50, Length::Epochs(2), Setting::Poisson);
    let refused = choose(&sampled).unwrap().plan.observed(&[vec![0]]).unwrap_err().to_string();
    assert!(refused.contains("of units example but must be min-sep:B,K of users"), "{refused}");
}
