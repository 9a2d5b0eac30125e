//! How full the batches of examples with several owners are under a plan.

use std::fmt;

use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use antinoise_plan::{OwnedExamples, VerifiedPlan};
use serde::Serialize;

use crate::failure::Result;

/// Sizes of the batches that [`OwnedExamples::batches`] forms. They depend a little on the order of ties,
/// which is random.
#[derive(Debug, Serialize)]
pub struct OwnedBatches {
    /// Number of examples with owners.
    owned_examples: usize,
    /// Number of batches with as many examples as the plan asks for.
    full_batches: usize,
    /// Mean number of examples in a batch.
    mean_batch_size: f64,
    #[serde(skip)]
    steps: usize,
    #[serde(skip)]
    users: usize,
}

impl OwnedBatches {
    /// The sizes under the plan.
    pub fn new(examples: &OwnedExamples, plan: &VerifiedPlan) -> Result<Self> {
        let mut order = KeyedRng::new(&Key::from_os()?, &RunId::default(), Purpose::DataOrder, 0);
        let sizes: Vec<usize> = examples.batches(plan, &mut order)?.iter().map(Vec::len).collect();
        Ok(Self {
            owned_examples: examples.examples(),
            full_batches: sizes.iter().filter(|&&size| size == plan.batch_size).count(),
            mean_batch_size: sizes.iter().sum::<usize>() as f64 / sizes.len() as f64,
            steps: sizes.len(),
            users: examples.users(),
        })
    }
}

impl fmt::Display for OwnedBatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owned_examples, full_batches, mean_batch_size, steps, users } = self;
        write!(
            f,
            "{owned_examples} examples of {users} users, no two of one user in a batch: {full_batches} of {steps} batches \
             are full,\nthe mean size is {mean_batch_size:.1}."
        )?;
        if full_batches < steps {
            write!(
                f,
                " A smaller batch size or --min-sep fills more of them; losses are those of full ones."
            )?;
        }
        Ok(())
    }
}
