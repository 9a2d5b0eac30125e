//! Plans as files: what was written before is read, and written again byte for byte.

use std::path::Path;

use antinoise_plan::{Plan, Sampler, VerifiedPlan, compose};
use serde::{Deserialize, Serialize};

const NAMES: [&str; 4] = ["cyclic", "amplified", "federated", "plain"];

fn text(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    std::fs::read_to_string(folder.join(name).with_extension("toml")).unwrap()
}

/// A checkpoint knows its plan by the digest of this text.
#[test]
fn plans_of_before_are_read_and_written_as_they_were() {
    for name in NAMES {
        let plan = Plan::from_toml(&text(name)).unwrap();
        assert_eq!(plan.to_toml(), text(name), "{name}");
        let schedule = plan.schedule();
        let amplified = schedule.is_amplified() && schedule.sampler == Sampler::Poisson { groups: 8 };
        assert_eq!(amplified, name == "amplified", "{name}: {schedule:?}");
    }
}

/// `replaced` was accounted for by two zero-out changes: its epsilon covers more than its noise gives, and
/// its lower bound is one of that account only.
#[test]
fn a_plan_of_a_looser_account_is_read_and_states_its_own_lower_bound() {
    let plan = Plan::from_toml(&text("replaced")).unwrap();
    assert_eq!(plan.to_toml(), text("replaced"));
    let bounds = compose(&[(&plan, 1)], plan.privacy.delta).unwrap();
    assert!(bounds.upper < 0.95 * plan.privacy.epsilon_lower, "{bounds:?} {:?}", plan.privacy);
    assert_eq!(plan.epsilon_lower(), bounds.lower);
    let statement = plan.statement();
    assert_eq!((statement.epsilon, statement.epsilon_lower), (plan.privacy.epsilon, bounds.lower));
    let mut altered = plan.into_plan();
    altered.privacy.epsilon_lower *= 1.001;
    assert!(altered.verify().unwrap_err().to_string().contains("epsilon_lower"));
}

#[derive(Debug, Serialize, Deserialize)]
struct Around<P> {
    plan: P,
}

/// A study holds its plans so.
#[test]
fn a_plan_inside_another_file_is_verified_too() {
    for name in NAMES {
        let plan = Plan::from_toml(&text(name)).unwrap();
        let around = toml::to_string(&Around { plan: plan.clone() }).unwrap();
        assert_eq!(toml::from_str::<Around<VerifiedPlan>>(&around).unwrap().plan, plan);
        let mut altered = plan.into_plan();
        altered.noise_multiplier *= 0.9;
        let around = toml::to_string(&Around { plan: altered }).unwrap();
        let error = toml::from_str::<Around<VerifiedPlan>>(&around).expect_err(name).to_string();
        assert!(error.contains("its numbers give"), "{name}: {error}");
    }
}
