//! A federated run that others made: its plan and its ledger.

use std::path::Path;

use antinoise_ledger::Ledger;
use antinoise_plan::{Length, PrivacyUnit, Request, Setting, VerifiedPlan, choose};

/// Writes `federated.toml` and `ledger.db` into `folder`: 6 of 8 steps are finished, users were to take part
/// 3 times at most, 3 steps apart; one did twice, 5 steps apart.
pub fn write_federated(folder: &Path) -> VerifiedPlan {
    let setting = Setting::Federated { min_sep: 3, max_participations: Some(3) };
    let mut request = Request::new(40, 2, Length::Steps(8), setting);
    (request.unit, request.epsilon, request.delta) = (PrivacyUnit::User, 4.0, 1e-3);
    let plan = choose(&request).unwrap().plan;
    plan.save(&folder.join("federated.toml")).unwrap();
    let mut ledger = Ledger::open(&folder.join("ledger.db"), &plan, "0").unwrap();
    for step in 0..6 {
        let cohort = [format!("user {}", step % 5), format!("another {step}")];
        let charged = ledger.charge(&cohort).unwrap();
        ledger.record_noisy_sum(charged, "", &[]).unwrap();
    }
    // Asked, and nothing came of it.
    let _ = ledger.charge(&["user 1".to_string()]).unwrap();
    plan
}
