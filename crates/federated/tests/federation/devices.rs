//! Devices that return models, and a run whose bits the Python package has too.

use antinoise_federated::{Error, FederatedSetup, LocalSteps, Population};
use antinoise_input::hex;
use antinoise_noise::{Key, RunId};
use antinoise_train::optimizer::UpdateRule;
use sha2::{Digest, Sha256};

use crate::pulls::{OPTIMIZER, ROUNDS, USERS, folder, plan_of_dim};

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

/// The digest is that of `python/tests/test_flower_optimizer.py`: cohorts, zeroing, clipping, sums, noise and
/// the server's optimizer have the same bits in Flower.
#[test]
fn a_run_has_the_bits_of_a_run_in_python() {
    let population = &Devices { names: (0..USERS).map(|user| format!("user-{user}")).collect() };
    let plan = &plan_of_dim("blt:2", 0.5, DIM);
    let local = LocalSteps { zero_beyond: Some(1.0), ..LocalSteps::FEDSGD };
    let setup = FederatedSetup { plan, population, local, optimizer: OPTIMIZER };
    assert_eq!(OPTIMIZER.rule, UpdateRule::Sgd { learning_rate: 0.1, momentum: 0.9 });
    let (folder, key) = (folder(), Key::from_seed_insecure(3));
    let mut run =
        antinoise_federated::Federation::begin(setup, folder.path(), RunId::default(), vec![0.5; DIM], key)
            .unwrap();
    for _ in 0..ROUNDS {
        run.round(|_, _| true).unwrap();
    }
    let mut digest = Sha256::new();
    run.parameters().iter().for_each(|x| digest.update(x.to_le_bytes()));
    for (user, step) in run.ledger().participations().unwrap() {
        digest.update(format!("{user} {step}\n"));
    }
    assert_eq!(hex(&digest.finalize()), "89484d8c81e26040034dd472b3401a796603b6febc2f7be06db7a17028e67f3a");
}
