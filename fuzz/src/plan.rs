//! Plans, whose claim must follow from their numbers.

use antinoise_input::BadInput;
use antinoise_mechanism::Adjacency;
use antinoise_plan::{Accountant, ArithmeticKind, Length, Plan, PrivacyUnit, Request, Setting, choose};

use crate::strategy::least_sensitivity;

/// Longer plans only cost time.
const MOST_STEPS: i64 = 64;

/// What is accepted is written and read as itself, states no less than what C says of one pattern, and can be
/// put into words; what is refused is bad input that is named.
pub fn run(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    if let Ok(table) = text.parse::<toml::Table>() {
        let number = |name: &str| table.get(name).and_then(toml::Value::as_integer).unwrap_or(0);
        let claim = table.get("privacy").and_then(toml::Value::as_table);
        let accountant = claim.and_then(|claim| claim.get("accountant")).and_then(toml::Value::as_str);
        let simulated = matches!(accountant, Some("balls-in-bins" | "b-min-sep"));
        if number("steps") > MOST_STEPS || simulated && number("steps") > 8 {
            return false;
        }
    }
    match Plan::from_toml(text) {
        Err(error) => {
            assert!(error.is_bad_input() && !error.to_string().is_empty(), "{error:?}");
        }
        Ok(plan) => {
            assert_eq!(Plan::from_toml(&plan.to_toml()).as_deref().ok(), Some(&*plan));
            let least = least_sensitivity(&plan.strategy, &plan.participation);
            let factor = plan.privacy.adjacency.sensitivity_factor();
            assert!(
                plan.sensitivity.value >= factor * least * (1.0 - 1e-8),
                "{} < {least}",
                plan.sensitivity.value
            );
            assert!(plan.noise_std() >= plan.noise_multiplier * plan.sensitivity.value * plan.clip_norm);
            assert!(plan.privacy.epsilon >= plan.privacy.epsilon_lower * (1.0 - 1e-6));
            assert!(!plan.statement().to_string().is_empty());
        }
    }
    true
}

pub fn seeds() -> Vec<Vec<u8>> {
    let user = |request: Request| Request { unit: PrivacyUnit::User, ..request };
    let of = |steps, setting| Request::new(60, 10, Length::Steps(steps), setting);
    let federated = Setting::Federated { min_sep: 3, max_participations: Some(2) };
    let requests = [
        of(12, Setting::Cyclic),
        of(12, Setting::Poisson),
        Request::new(60, 10, Length::Epochs(1), Setting::Stream),
        user(of(8, federated)),
        Request { adjacency: Adjacency::ReplaceOne, ..of(6, Setting::Cyclic) },
        Request { arithmetic: ArithmeticKind::PlainFloatingPoint, ..of(6, Setting::Cyclic) },
    ];
    let chosen =
        requests.map(|request| choose(&Request { thorough: false, ..request }).expect("a plan").plan);
    assert!(chosen.iter().any(|plan| plan.privacy.accountant == Accountant::SampledGaussian));
    chosen.iter().map(|plan| plan.to_toml().into_bytes()).collect()
}
