//! Balls-in-bins sampling against exact values, groups, and statements.

mod common;

use antinoise_accounting::{
    BlockCyclicPoisson, Composition, Gdp, MonteCarlo, MonteCarloMechanism, Neighbours,
    PoissonSampledGaussian, PrivacyStatement, StatisticalDelta, block_cyclic_poisson_reduction,
    group_privacy_upper,
};
use common::{Steps, allowed_misses};

/// The Toeplitz square root of the prefix sums, as columns from the diagonal down.
fn columns(steps: usize) -> Vec<Vec<f64>> {
    let mut coefficients = vec![1.0];
    for t in 1..steps {
        coefficients.push(coefficients[t - 1] * (2 * t - 1) as f64 / (2 * t) as f64);
    }
    (0..steps).map(|t| coefficients[..steps - t].to_vec()).collect()
}

#[test]
fn intervals_cover_exact_values() {
    // One bin: a Gaussian release of the summed columns. Two bins of which one is empty: Poisson sampling at
    // rate 1/2, whose single step is closed form. Equal bins: no amplification. False alarms: 1e-6 each.
    let all: f64 = (0..8).map(|i| (0..=i).map(|j| columns(8)[j][i - j]).sum::<f64>().powi(2)).sum();
    let gaussian = |mu: f64, epsilon: f64| Gdp::new(mu).unwrap().delta_to_nearest(epsilon).unwrap();
    let half =
        Composition::new([PoissonSampledGaussian::new(1.0, 0.5, 1).unwrap()]).unwrap().delta(1.0).unwrap();
    let cases = [
        (columns(8), 1, 4.0, 2.0, gaussian(all.sqrt() / 4.0, 2.0)),
        (vec![vec![1.0, 0.0], vec![0.0]], 2, 1.0, 1.0, half.upper),
        (vec![vec![1.0]], 1, 1.0, 5.0, gaussian(1.0, 5.0)),
    ];
    for (columns, bins, noise_std, epsilon, exact) in cases {
        let mechanism = MonteCarloMechanism::balls_in_bins(&columns, bins, noise_std).unwrap();
        assert_covers(exact, |settings| mechanism.delta(epsilon, settings).unwrap());
    }
}

#[test]
fn deltas_of_banded_noise_agree_with_plain_sampling() {
    // 14 steps, 4 bands: four turns at rate 0.2. And everything sampled: the Gaussian release of ten steps.
    let sampling = BlockCyclicPoisson { bands: 4, steps: 14, batch_size: 5.0, examples: 100 };
    let banded = block_cyclic_poisson_reduction(&sampling, 1.2).unwrap();
    let full = PoissonSampledGaussian::new(4.0, 1.0, 10).unwrap();
    for run in [banded, full] {
        let exact = Composition::new([run]).unwrap().delta(1.0).unwrap().upper;
        let steps = Steps { sigma: run.noise_multiplier(), rate: run.sampling_rate(), steps: run.steps() };
        let sampled = [true, false].map(|is_removed| steps.sampled_delta(1.0, is_removed, 1_000_000));
        // The larger of two estimates; 6 standard errors: false alarms below 1e-8.
        let (mean, error) = if sampled[0].0 > sampled[1].0 { sampled[0] } else { sampled[1] };
        assert!(error < 0.01 * exact && (mean - exact).abs() < 6.0 * error, "{mean} +- {error}: {exact}");
    }
}

/// 200 intervals at failure probability 0.05 hold `exact` as often as they must; false alarm 1e-6.
fn assert_covers(exact: f64, measure: impl Fn(&MonteCarlo) -> StatisticalDelta) {
    let (runs, failure_probability) = (200, 0.05);
    let misses = (0..runs as u64).filter(|&seed| {
        let found = measure(&MonteCarlo { failure_probability, precision: 0.1, max_samples: 20_000, seed });
        // The failure probability is on top of the bound that is to be tested.
        !(found.lower <= exact && exact <= found.upper - failure_probability)
    });
    let misses = misses.count();
    assert!(misses <= allowed_misses(failure_probability, runs), "{misses} misses of {exact}");
}

#[test]
fn amplification_by_bins_lies_between_its_ends() {
    // Eight steps, four bins: better than without sampling, worse than a quarter of the Gaussian delta at
    // the amplified epsilon of one participation alone.
    let mechanism = MonteCarloMechanism::balls_in_bins(&columns(8), 4, 3.0).unwrap();
    let settings = MonteCarlo { precision: 0.05, ..Default::default() };
    let found = mechanism.delta(1.0, &settings).unwrap();
    let norm: f64 = (0..8)
        .map(|i| columns(8)[0][i] + if i >= 4 { columns(8)[4][i - 4] } else { 0.0 })
        .map(|x| x * x)
        .sum();
    assert!(
        found.upper < Gdp::new(norm.sqrt() / 3.0).unwrap().delta_to_nearest(1.0).unwrap()
            && found.lower > 0.0,
        "{found:?}"
    );
    assert_eq!(mechanism.delta(1.0, &settings).unwrap(), found);
    let epsilon = mechanism.epsilon(found.estimate, &settings, None, &|_, _| ()).unwrap().upper;
    assert!((1.0..1.1).contains(&epsilon), "{epsilon}");
}

#[test]
fn bins_refuse_bad_columns() {
    let refused = |columns: &[Vec<f64>], bins| {
        MonteCarloMechanism::balls_in_bins(columns, bins, 1.0).unwrap_err().to_string()
    };
    assert!(refused(&[vec![1.0, f64::NAN], vec![1.0]], 1).starts_with("column 0 is NaN"));
    assert!(refused(&[vec![1.0], vec![1.0, 0.5]], 1).starts_with("column 1 is 2"));
    assert!(refused(&[vec![1.0]], 2).starts_with("bins is 2"));
    assert!(refused(&[], 1).starts_with("columns is 0"));
    let mechanism = MonteCarloMechanism::balls_in_bins(&columns(4), 2, 1.0).unwrap();
    assert!(mechanism.delta(1.0, &MonteCarlo { failure_probability: 0.0, ..Default::default() }).is_err());
    assert!(mechanism.delta(1.0, &MonteCarlo { max_samples: 1, ..Default::default() }).is_err());
    assert!(
        mechanism.epsilon(1e-12, &MonteCarlo::default(), None, &|_, _| ()).is_err(),
        "a delta below the failure"
    );
}

#[test]
fn groups_follow_the_exact_value_of_the_gaussian() {
    for size in [2, 3, 10] {
        let one = Gdp::new(0.2).unwrap();
        let group = one.group_upper(size).unwrap();
        for epsilon in [0.1, 0.5, 1.0] {
            let (total, delta) =
                group_privacy_upper(epsilon, one.delta_upper(epsilon).unwrap(), size).unwrap();
            assert!(delta >= group.delta_to_nearest(total).unwrap(), "the general rule is below the truth");
        }
    }
    let (epsilon, delta) = group_privacy_upper(0.0, 1e-6, 2).unwrap();
    assert!(epsilon == 0.0 && (delta - 2e-6).abs() < 1e-17);
    assert_eq!(group_privacy_upper(1e308, 1e-6, 100).unwrap(), (f64::MAX, 1.0));
    assert!(group_privacy_upper(1.0, 1e-6, 0).is_err());
}

#[test]
fn statements_survive_toml_and_json() {
    let statement = PrivacyStatement {
        unit: "user".into(),
        adjacency: Neighbours::AddOrRemove,
        schema: "every 4 steps, from a bin nobody knows".into(),
        sampler: "balls in bins".into(),
        mechanism: "Gaussian noise correlated by the inverse of C".into(),
        accountant: "Monte Carlo on the dominating pair".into(),
        epsilon: 2.5,
        epsilon_lower: 2.25,
        delta: 1e-6,
        failure: Some(1e-20),
        assumptions: vec!["C is non-negative, which was checked".into()],
        ..PrivacyStatement::default()
    }
    .with_fact("data", "made up");
    let toml: PrivacyStatement = toml::from_str(&toml::to_string(&statement).unwrap()).unwrap();
    let json: PrivacyStatement = serde_json::from_str(&serde_json::to_string(&statement).unwrap()).unwrap();
    assert_eq!((&toml, &json), (&statement, &statement));
    // The summary, a row of the table with its second line, the assumptions and the facts.
    for (text, row) in [
        (
            statement.to_string(),
            "\nAccountant     Monte Carlo on the dominating pair; a statistical bound, wrong with probability at\n",
        ),
        (format!("{statement:#}"), "\nAccountant: Monte Carlo on the dominating pair; a statistical bound"),
    ] {
        let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.starts_with("The data of every single user are protected."), "{text}");
        for part in [
            "(2.5, 1e-6)-differential privacy of one user under add-or-remove adjacency: whether that user is in",
            "by at most a factor of e^epsilon = 13, plus delta.",
            "above all this one: C is non-negative, which was checked.",
            "wrong with probability at most 1e-20, which is included in delta",
            "Assumptions: - C is non-negative",
            "This run: - data: made up.",
        ] {
            assert!(said.contains(part), "{part} in {text}");
        }
        assert!(text.contains(row) && !text.contains("Not covered"), "{text}");
    }
    let table = statement.to_string();
    assert!(
        table.lines().all(|line| line.len() <= 100) && table.contains("\n               most 1e-20, which"),
        "{table}"
    );
}
