//! Users who pull the parameters towards vectors of their own, and runs of them.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use antinoise_federated::Error;
use antinoise_federated::{FederatedSetup, Federation};
use antinoise_federated::{LocalSteps, Population};
use antinoise_input::{BadInput, InvalidParameter};
use antinoise_noise::{Key, RunId};
use antinoise_plan::{Length, PrivacyUnit, Request, Setting, VerifiedPlan, choose};
use antinoise_train::optimizer::{Decay, OptimizerConfig, Schedule, UpdateRule};
use tempfile::TempDir;

pub const USERS: usize = 30;
pub const DIM: usize = 50;
pub const ROUNDS: usize = 12;
pub const RULE: UpdateRule = UpdateRule::Sgd { learning_rate: 0.1, momentum: 0.9 };
pub const OPTIMIZER: OptimizerConfig = OptimizerConfig {
    rule: RULE,
    schedule: Schedule { warm_up: 0, decay: Decay::Cooldown { share: 0.5, last: 0.1 } },
    weight_decay: 0.01,
    zero_beyond: None,
};
pub const LOCAL: LocalSteps =
    LocalSteps { learning_rate: 0.2, batch_size: 1, epochs: 1, most_steps: 2, zero_beyond: None };
/// The users.
pub struct Pulls {
    pub names: Vec<String>,
    /// Number of gradients until one fails, as if the machine had failed.
    pub left: AtomicUsize,
    /// A user whose gradients are NaN.
    pub broken: Option<usize>,
    pub aborts: bool,
}

impl Pulls {
    pub fn new() -> Self {
        let names = (0..USERS).map(|user| format!("user {user}")).collect();
        Self { names, left: AtomicUsize::new(usize::MAX), broken: None, aborts: false }
    }

    pub fn failing_after(gradients: usize) -> Self {
        Self { left: AtomicUsize::new(gradients), ..Self::new() }
    }
}

impl Population for Pulls {
    type Workspace = ();
    fn workspace(&self) {}
    fn parameters(&self) -> usize {
        DIM
    }
    fn users(&self) -> usize {
        self.names.len()
    }
    fn name(&self, user: usize) -> &str {
        &self.names[user]
    }
    fn examples(&self, user: usize) -> usize {
        1 + user % 3
    }
    fn gradient(
        &self,
        _: &mut (),
        parameters: &[f32],
        user: usize,
        examples: &[usize],
        gradient: &mut [f32],
    ) -> Result<f64, Error> {
        if self.left.fetch_sub(1, Ordering::SeqCst) == 0 {
            if self.aborts {
                std::process::abort();
            }
            return Err(InvalidParameter::new("machine", "off", "on").into());
        }
        for (j, (g, theta)) in gradient.iter_mut().zip(parameters).enumerate() {
            *g = theta - ((user * 7 + examples[0] + j) as f32).cos();
        }
        if self.broken == Some(user) {
            gradient[0] = f32::NAN;
        }
        Ok(f64::from(parameters[0]))
    }
    fn identity(&self) -> String {
        "pulls".into()
    }
}

pub fn plan_of(mechanism: &str, clip_norm: f64) -> VerifiedPlan {
    plan_of_dim(mechanism, clip_norm, DIM)
}

pub fn plan_of_dim(mechanism: &str, clip_norm: f64, dim: usize) -> VerifiedPlan {
    let setting = Setting::Federated { min_sep: 3, max_participations: Some(3) };
    let mut request = Request::new(USERS, 6, Length::Steps(ROUNDS), setting);
    (request.unit, request.dim, request.clip_norm) = (PrivacyUnit::User, dim, clip_norm);
    (request.epsilon, request.specs) = (8.0, Some(vec![mechanism.parse().unwrap()]));
    let choice = choose(&request).unwrap();
    choice.plan_of(&request, choice.candidates.len() - 1).unwrap()
}

pub fn plan() -> VerifiedPlan {
    plan_of("blt:2", 0.5)
}

pub fn setup<'a>(plan: &'a VerifiedPlan, population: &'a Pulls) -> FederatedSetup<'a, Pulls> {
    FederatedSetup { plan, population, local: LOCAL, optimizer: OPTIMIZER }
}

pub fn begin<'a>(setup: FederatedSetup<'a, Pulls>, folder: &Path) -> Result<Federation<'a, Pulls>, Error> {
    Federation::begin(setup, folder, RunId::default(), vec![0.5; DIM], Key::from_seed_insecure(3))
}

pub fn resume<'a>(setup: FederatedSetup<'a, Pulls>, folder: &Path) -> Result<Federation<'a, Pulls>, Error> {
    Federation::resume(setup, folder, RunId::default())
}

/// Most users are available, different ones each round.
pub fn there(round: usize, user: usize) -> bool {
    !(user * 13 + round * 5).is_multiple_of(7)
}

/// Parameters and participations of a run that is never killed.
pub fn whole(plan: &VerifiedPlan, population: &Pulls) -> (Vec<f32>, Vec<(String, usize)>) {
    let folder = folder();
    let mut run = begin(setup(plan, population), folder.path()).unwrap();
    for _ in 0..ROUNDS {
        run.round(there).unwrap();
    }
    (run.parameters().to_vec(), run.ledger().participations().unwrap())
}

pub fn folder() -> TempDir {
    match Path::new("/dev/shm") {
        memory if memory.is_dir() => tempfile::tempdir_in(memory).unwrap(),
        _ => tempfile::tempdir().unwrap(),
    }
}

pub fn refused<T>(result: Result<T, Error>, by: &str) {
    let error = result.map(|_| ()).unwrap_err();
    assert!(error.is_bad_input() && error.to_string().contains(by), "{error}");
}
