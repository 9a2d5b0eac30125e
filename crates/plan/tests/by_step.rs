//! The privacy of a run's first steps, against the leading block of C written out, pattern by pattern.

use antinoise_accounting::{Composition, Gdp, PoissonSampledGaussian};
use antinoise_mechanism::{Adjacency, Participation, Separation};
use antinoise_plan::{Length, Request, Setting, VerifiedPlan, choose};
use proptest::prelude::*;

fn plan(setting: Setting, strategy: &str, adjacency: Adjacency) -> VerifiedPlan {
    let steps = if setting == Setting::Single { 12 } else { 24 };
    let mut request = Request::new(60, 5, Length::Steps(steps), setting);
    (request.adjacency, request.dim) = (adjacency, 50);
    request.specs = Some(vec![strategy.parse().unwrap()]);
    choose(&request).unwrap().plan
}

/// C_t^T C_t = (N_t N_t^T)^-1, where N_t are the first t rows of what makes noise of seeds: what the first t
/// noisy sums tell of gradients.
fn told(plan: &VerifiedPlan, steps: usize) -> Vec<Vec<f64>> {
    let recursion = plan.strategy.recursion().unwrap();
    let seeds = recursion.seeds(plan.steps);
    let of_seed = |seed: usize| {
        let mut unit = vec![0.0; seeds];
        unit[seed] = 1.0;
        recursion.apply(plan.steps, &unit)
    };
    let noise: Vec<Vec<f64>> = (0..seeds).map(of_seed).collect();
    let covariance = |i: usize, j: usize| noise.iter().map(|column| column[i] * column[j]).sum::<f64>();
    let rows = (0..steps).map(|i| (0..steps).map(|j| covariance(i, j)).collect()).collect();
    inverse(rows)
}

/// By Gauss and Jordan; of a positive definite matrix.
fn inverse(mut a: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let n = a.len();
    let mut found: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| f64::from(i == j)).collect()).collect();
    for i in 0..n {
        let pivot = a[i][i];
        for row in [&mut a[i], &mut found[i]] {
            row.iter_mut().for_each(|x| *x /= pivot);
        }
        for other in (0..n).filter(|&other| other != i) {
            let factor = a[other][i];
            for j in 0..n {
                a[other][j] -= factor * a[i][j];
                found[other][j] -= factor * found[i][j];
            }
        }
    }
    found
}

/// Every pattern of the plan's schema within so many steps that has no more to add.
fn patterns(participation: &Participation, steps: usize, whole: usize) -> Vec<Vec<usize>> {
    let Separation { min_sep: b, max_participations: k } = participation.separation(whole);
    if !matches!(participation, Participation::MinSep { .. }) {
        return (0..b.min(steps)).map(|phase| (phase..steps).step_by(b).take(k).collect()).collect();
    }
    let mut found = Vec::new();
    let mut open: Vec<Vec<usize>> = (0..steps).map(|t| vec![t]).collect();
    while let Some(pattern) = open.pop() {
        let next = pattern.last().unwrap() + b;
        if pattern.len() < k && next < steps {
            open.extend((next..steps).map(|t| [&pattern[..], &[t]].concat()));
        }
        found.push(pattern);
    }
    found
}

/// max over patterns and signs of |C_t g|.
fn worst(plan: &VerifiedPlan, steps: usize) -> f64 {
    let gram = told(plan, steps);
    let squared = |pattern: &Vec<usize>| {
        let norm = |signs: u32| -> f64 {
            let sign = |i: usize| if signs >> i & 1 == 1 { -1.0 } else { 1.0 };
            let of_pair = |(i, &s): (usize, &usize)| {
                let row = &gram[s];
                pattern.iter().enumerate().map(|(j, &t)| sign(i) * sign(j) * row[t]).sum::<f64>()
            };
            pattern.iter().enumerate().map(of_pair).sum()
        };
        (0..1 << (pattern.len() - 1)).map(norm).fold(0.0, f64::max)
    };
    patterns(&plan.participation, steps, plan.steps).iter().map(squared).fold(0.0, f64::max).sqrt()
}

#[test]
fn the_first_steps_cost_what_the_leading_block_costs() {
    let cyclic = Setting::Cyclic;
    let min_sep = Setting::Federated { min_sep: 7, max_participations: Some(3) };
    for (setting, strategy, adjacency) in [
        (cyclic, "identity", Adjacency::ZeroOut),
        (cyclic, "blt:2", Adjacency::ReplaceOne),
        (cyclic, "dense", Adjacency::ZeroOut),
        (cyclic, "banded-toeplitz:12", Adjacency::ZeroOut),
        (cyclic, "banded:6", Adjacency::ZeroOut),
        (cyclic, "honaker-full", Adjacency::ZeroOut),
        (min_sep, "blt:3", Adjacency::ZeroOut),
        (min_sep, "banded-toeplitz:7", Adjacency::ReplaceOne),
        (min_sep, "toeplitz", Adjacency::ZeroOut),
        (Setting::Single, "blt:2", Adjacency::ZeroOut),
    ] {
        let plan = plan(setting, strategy, adjacency);
        let steps: Vec<usize> = (1..=plan.steps).collect();
        let found = plan.epsilon_by_step(&steps).unwrap();
        assert!(found.is_sorted() && found[plan.steps - 1] <= plan.privacy.epsilon, "{strategy}");
        for (&steps, found) in steps.iter().zip(found) {
            let moved = worst(&plan, steps) * adjacency.sensitivity_factor() * plan.widened_clip_norm();
            let exact = Gdp::from_noise_multiplier_upper(plan.noise_std() / moved).unwrap();
            let exact = exact.epsilon_upper(plan.privacy.delta).unwrap();
            assert!(found >= exact * (1.0 - 1e-9), "{strategy} after {steps}: {found} below {exact}");
            // Min-sep is bounded where columns overlap; a node of a tree counts before its last step is
            // made.
            let most = match strategy {
                "honaker-full" => 3.0,
                "toeplitz" | "blt:3" => 1.2,
                _ => 1.001,
            };
            assert!(found <= exact * most, "{strategy} after {steps}: {found} above {exact}");
        }
    }
}

/// A group's turns come one a round.
#[test]
fn sampled_steps_cost_their_rounds() {
    let plan = plan(Setting::Poisson, "banded-toeplitz:4", Adjacency::ZeroOut);
    let found = plan.epsilon_by_step(&[1, 4, 5, 8, 20, 24]).unwrap();
    assert!(found[0] == found[1] && found[2] == found[3] && found[1] < found[2]);
    for (turns, found) in [(1, found[0]), (2, found[2]), (5, found[4]), (6, found[5])] {
        let run = PoissonSampledGaussian::new(plan.noise_multiplier, 4.0 * 5.0 / 60.0, turns).unwrap();
        let run = Composition::new([run]).unwrap();
        let exact = run.epsilon(plan.privacy.delta).unwrap().upper;
        assert!((found / exact - 1.0).abs() < 1e-4, "{turns} turns: {found} {exact}");
    }
    assert!(found[5] <= plan.privacy.epsilon && found[5] > 0.999 * plan.privacy.epsilon);
}

#[test]
fn steps_must_increase_within_the_run() {
    let plan = plan(Setting::Cyclic, "identity", Adjacency::ZeroOut);
    for refused in [&[0][..], &[3, 3], &[25]] {
        assert!(plan.epsilon_by_step(refused).unwrap_err().to_string().starts_with("steps"));
    }
    assert_eq!(plan.epsilon_by_step(&[]).unwrap(), Vec::<f64>::new());
}

proptest! {
    /// What fits in fewer steps is part of what fits in more, and has as many turns as patterns cut short
    /// have.
    #[test]
    fn schemas_within_fewer_steps(b in 1usize..20, k in 1usize..9, steps in 1usize..60, cyclic: bool) {
        let n = (k - 1) * b + 1 + steps;
        prop_assume!(b <= n);
        let of = |b, k| match cyclic {
            true => Participation::Cyclic { min_sep: b, max_participations: k },
            false => Participation::MinSep { min_sep: b, max_participations: k },
        };
        let cut = of(b, k).truncated_to(steps).unwrap();
        prop_assert!(cut.check(steps).is_ok());
        // The densest pattern has the most turns.
        let turns = (0..steps).step_by(b).take(k).count();
        prop_assert_eq!(cut.separation(steps).max_participations, turns);
        let listed = Participation::Patterns { patterns: vec![vec![0, b], vec![steps]] };
        let kept = if b < steps { vec![0, b] } else { vec![0] };
        prop_assert_eq!(listed.truncated_to(steps).unwrap(), Participation::Patterns { patterns: vec![kept] });
    }
}
