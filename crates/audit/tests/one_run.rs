//! The bound from one training run stays below the stated epsilon, and exceeds it if the noise is too small.

use antinoise_audit::{Canary, OneRunReport, OneRunSettings, one_run};
use antinoise_noise::{Key, RunId};
use antinoise_plan::{Length, Request, Sampler, Setting, VerifiedPlan, choose};
use antinoise_train::data::{self, Dataset};
use antinoise_train::model::Model;
use antinoise_train::optimizer::UpdateRule;
use antinoise_train::trainer::Setup;

const BANDED: &str = "banded-toeplitz:5";

fn plan(setting: Setting, epsilon: f64, strategy: &str) -> VerifiedPlan {
    let mut request = Request::new(1440, 144, Length::Steps(30), setting);
    (request.epsilon, request.delta) = (epsilon, 1e-5);
    request.specs = Some(vec![strategy.parse().unwrap()]);
    choose(&request).unwrap().plan
}

struct Case {
    dataset: Dataset,
    model: Model,
}

impl Case {
    fn new() -> Self {
        let dataset = data::digits();
        let model = Model::mlp(dataset.shape, dataset.classes, 32).unwrap();
        Self { dataset, model }
    }

    fn audited(&self, plan: &VerifiedPlan, canary: Canary, seed: u64) -> OneRunReport {
        let rule = UpdateRule::Sgd { learning_rate: 0.05, momentum: 0.9 };
        let setup =
            Setup { plan, model: &self.model, dataset: &self.dataset, optimizer: rule.into(), groups: None };
        let settings = OneRunSettings { canary, canaries: 1200, alpha: 0.05, seed };
        let start = vec![0.01; self.model.parameters()];
        one_run(setup, RunId::default(), start, Key::from_seed_insecure(seed), &settings).unwrap()
    }
}

#[test]
fn the_bound_stays_below_what_is_stated() {
    let case = Case::new();
    let plans = [(Setting::Cyclic, BANDED), (Setting::Poisson, BANDED), (Setting::Poisson, "blt:1")];
    let plans = plans.map(|(setting, strategy)| plan(setting, 2.0, strategy));
    assert_eq!(plans[2].sampler, Sampler::BallsInBins { bins: 10 });
    let mut largest = 0f64;
    for seed in 0..20 {
        let found = case.audited(&plans[seed as usize % 3], Canary::Gradient, seed);
        assert!(found.epsilon_lower <= found.epsilon_stated, "{found:?}");
        largest = largest.max(found.epsilon_lower);
    }
    assert!(largest > 0.2, "guesses that prove nothing: {largest}");
    let found = case.audited(&plans[0], Canary::Input, 1);
    assert!(found.epsilon_lower <= found.epsilon_stated, "{found:?}");
}

/// A plan for the larger epsilon of a third of the noise, compared with the smaller epsilon.
#[test]
fn the_bound_exceeds_what_is_stated_where_noise_is_cut_to_a_third() {
    let case = Case::new();
    let stated = plan(Setting::Cyclic, 2.0, BANDED);
    let (mut low, mut high) = (2.0, 100.0);
    for _ in 0..30 {
        let middle = 0.5 * (low + high);
        let found = plan(Setting::Cyclic, middle, BANDED);
        if found.noise_multiplier > stated.noise_multiplier / 3.0 { low = middle } else { high = middle }
    }
    let cut = plan(Setting::Cyclic, low, BANDED);
    assert!((cut.noise_multiplier / stated.noise_multiplier - 1.0 / 3.0).abs() < 1e-6);
    for seed in 0..5 {
        let found = case.audited(&cut, Canary::Gradient, seed);
        assert!(found.epsilon_lower > stated.privacy.epsilon, "{found:?}");
    }
}
