//! Devices that return models, and a run whose bits the Python package has too.

use antinoise_federated::{Error, FederatedSetup, Federation, LocalSteps, Population};
use antinoise_input::hex;
use antinoise_noise::{Key, RunId};
use antinoise_train::optimizer::{OptimizerConfig, Schedule, UpdateRule};
use sha2::{Digest, Sha256};

use crate::pulls::{ROUNDS, USERS, folder, plan_of_dim};

const DIM: usize = 7;

/// Users whose device returns 7/8 of the model, plus a pull of the user's own, in single precision: the
/// gradient is the difference of the two models.
struct Devices {
    names: Vec<String>,
}

impl Population for Devices {
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
    fn examples(&self, _: usize) -> usize {
        1
    }
    fn gradient(
        &self,
        _: &mut (),
        parameters: &[f32],
        user: usize,
        _: &[usize],
        gradient: &mut [f32],
    ) -> Result<f64, Error> {
        for (j, (g, theta)) in gradient.iter_mut().zip(parameters).enumerate() {
            let pull = ((7 * user + 3 * j) % 17) as f32 / 16.0 - 0.5;
            *g = theta - (0.875 * theta + pull);
        }
        Ok(0.0)
    }
    fn identity(&self) -> String {
        "devices".into()
    }
}

/// The server's optimizers, each with the digest of a run.
const RUNS: [(&str, Option<f64>, &str, f64, &str); 3] = [
    (
        "sgd",
        Some(0.9),
        "cooldown:0.5,0.1",
        0.01,
        "89484d8c81e26040034dd472b3401a796603b6febc2f7be06db7a17028e67f3a",
    ),
    (
        "nesterov",
        Some(0.8),
        "drop:0.25,0.05",
        0.0,
        "587c3a041233e15abdd6009353bf1868dfa12a7e293816cb3dd098803acb6240",
    ),
    ("adam", None, "steps:4,0.5", 0.02, "029cbe96ac05ff93ddef5dfb4b8a5733d32b5c4d765e634fbcb1d0f0fddbf5c2"),
];

/// The digests are those of `python/tests/test_flower_optimizer.py`: cohorts, zeroing, clipping, sums, noise
/// and the server's optimizer have the same bits in Flower.
#[test]
fn a_run_has_the_bits_of_a_run_in_python() {
    let population = &Devices { names: (0..USERS).map(|user| format!("user-{user}")).collect() };
    let plan = &plan_of_dim("blt:2", 0.5, DIM);
    let local = LocalSteps { zero_beyond: Some(1.0), ..LocalSteps::FEDSGD };
    let found = RUNS.map(|(rule, momentum, decay, weight_decay, _)| {
        let rule = UpdateRule::named(rule, 0.1, momentum, None).unwrap();
        let schedule = Schedule { warm_up: 0, decay: decay.parse().unwrap() };
        let optimizer = OptimizerConfig { schedule, weight_decay, ..rule.into() };
        digest(FederatedSetup { plan, population, local, optimizer })
    });
    assert_eq!(found.each_ref().map(String::as_str), RUNS.map(|(.., digest)| digest));
}

/// The digest of the parameters at the end of a run, and of who took part.
fn digest(setup: FederatedSetup<'_, Devices>) -> String {
    let (folder, key) = (folder(), Key::from_seed_insecure(3));
    let mut run = Federation::begin(setup, folder.path(), RunId::default(), vec![0.5; DIM], key).unwrap();
    for _ in 0..ROUNDS {
        run.round(|_, _| true).unwrap();
    }
    let mut digest = Sha256::new();
    run.parameters().iter().for_each(|x| digest.update(x.to_le_bytes()));
    for (user, step) in run.ledger().participations().unwrap() {
        digest.update(format!("{user} {step}\n"));
    }
    hex(&digest.finalize())
}
