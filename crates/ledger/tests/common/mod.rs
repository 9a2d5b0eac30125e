//! Shared parts of the ledger's tests.
#![allow(dead_code)] // each test uses its own part

use std::path::{Path, PathBuf};

use antinoise_plan::{Length, Plan, PrivacyUnit, Request, Setting, VerifiedPlan, choose};
use tempfile::TempDir;

pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Makes a file accessible only to its owner, a mode that packages and checkouts do not preserve.
pub fn private(path: &Path) {
    #[cfg(unix)]
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
}

/// A copy of the ledger in `data`, and its plan for users who take part twice, 3 steps apart.
pub fn stored() -> (TempDir, PathBuf, VerifiedPlan) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    std::fs::copy(data("ledger.db"), &path).unwrap();
    private(&path);
    (folder, path, Plan::load(&data("plan.toml")).unwrap())
}

/// A plan over 8 steps for users who take part twice, 3 steps apart; `examples`: number of users.
pub fn plan(cohort: usize) -> VerifiedPlan {
    plan_of(8, 3, 2, cohort)
}

pub fn plan_of(steps: usize, min_sep: usize, most: usize, cohort: usize) -> VerifiedPlan {
    let setting = Setting::Federated { min_sep, max_participations: Some(most) };
    let mut request = Request::new(40, cohort, Length::Steps(steps), setting);
    (request.unit, request.thorough) = (PrivacyUnit::User, false);
    choose(&request).unwrap().plan
}
