//! Federated runs: killed at every stage, resumed with other cohorts, and with the wrong ledger.

mod devices;
mod kills;
mod pulls;
mod refusals;

use antinoise_federated::NonPrivateFederation;
use antinoise_noise::Key;
use antinoise_train::optimizer::UpdateRule;
use pulls::{DIM, LOCAL, Pulls, ROUNDS, USERS, begin, folder, plan, plan_of, setup, there, whole};

#[test]
fn users_keep_their_limits_and_those_whose_updates_are_no_numbers_add_nothing() {
    let (plan, population) = (plan(), Pulls { broken: Some(4), ..Pulls::new() });
    let (parameters, participations) = whole(&plan, &population);
    assert!(parameters.iter().all(|x| x.is_finite()));
    assert!(participations.iter().any(|(user, _)| user == "user 4"));
    for pair in participations.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        assert!(pair[1].1 - pair[0].1 >= 3);
    }
    for (user, step) in &participations {
        assert!(participations.iter().filter(|(other, _)| other == user).count() <= 3);
        assert!(there(*step, user["user ".len()..].parse().unwrap()));
    }
    assert!((0..ROUNDS).all(|round| participations.iter().filter(|(_, step)| *step == round).count() <= 6));
}

#[test]
fn noise_is_the_plans_in_units_of_its_clip_norm() {
    // With no users available, parameters move by noise only, which scales with the clip norm.
    let run = |clip_norm: f64| {
        let (plan, population, folder) = (plan_of("identity", clip_norm), Pulls::new(), folder());
        let mut run = begin(setup(&plan, &population), folder.path()).unwrap();
        let before = run.parameters().to_vec();
        let round = run.round(|_, _| false).unwrap();
        assert!(round.cohort.is_empty() && round.loss.is_nan());
        let moved: f64 = run.parameters().iter().zip(&before).map(|(x, y)| f64::from(x - y).powi(2)).sum();
        // For 50 coordinates, |N(0, nu^2)|^2 is 50 nu^2 within 120% except with probability 1e-7.
        let expected = DIM as f64 * (0.1 * plan.noise_std() / 6.0).powi(2);
        assert!((moved / expected - 1.0).abs() < 1.2 && moved > 0.1 * expected, "{moved} {expected}");
        plan.noise_std()
    };
    let (one, ten) = (run(0.5), run(5.0));
    assert!((ten / one - 10.0).abs() < 1e-2, "{one} {ten}");
}

#[test]
fn without_noise_the_same_rounds_learn() {
    let population = Pulls::new();
    let reference = |clip_norm| NonPrivateFederation {
        population: &population,
        local: LOCAL,
        optimizer: UpdateRule::Sgd { learning_rate: 0.3, momentum: 0.0 }.into(),
        cohort: 6,
        rounds: 40,
        min_sep: 3,
        clip_norm,
    };
    let train = |clip_norm| reference(clip_norm).train(vec![0.5; DIM], &Key::from_seed_insecure(2)).unwrap();
    // The mean of the vectors towards which users pull.
    let far = |found: &[f32]| -> f32 {
        let mean =
            |j: usize| (0..USERS).map(|user| ((user * 7 + j) as f32).cos()).sum::<f32>() / USERS as f32;
        found.iter().enumerate().map(|(j, x)| (x - mean(j)).powi(2)).sum::<f32>().sqrt()
    };
    assert!(far(&train(None)) < 0.5 * far(&[0.5; DIM]), "{} {}", far(&train(None)), far(&[0.5; DIM]));
    assert_eq!(train(Some(1e6)), train(None));
    assert_ne!(train(Some(0.1)), train(None));
}
