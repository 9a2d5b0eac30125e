//! Plans as files: what was written before is read, and written again byte for byte.

use std::path::Path;

use antinoise_plan::{Plan, Sampler, VerifiedPlan};
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
