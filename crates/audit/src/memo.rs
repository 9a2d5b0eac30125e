//! A cache of sums, since the steps of all runs have few different batches.

use std::collections::HashMap;
use std::rc::Rc;

use crate::{AuditInputs, Error};

/// Maximum number of cached sums.
const MOST: usize = 1 << 12;

/// Sums by inputs and batch.
#[derive(Debug, Default)]
pub(crate) struct Memo(HashMap<u64, Known>);

#[derive(Debug)]
struct Known {
    inputs: u64,
    batch: Vec<usize>,
    sum: Rc<Vec<f64>>,
}

impl Memo {
    /// The sum of `batch`, computed by `make` if it is not cached.
    pub(crate) fn of(
        &mut self,
        inputs: &AuditInputs,
        batch: &[usize],
        make: impl FnOnce() -> Result<Vec<f64>, Error>,
    ) -> Result<Rc<Vec<f64>>, Error> {
        let hash = batch.iter().fold(inputs.number(), mixed);
        if let Some(known) = self.0.get(&hash)
            && known.inputs == inputs.number()
            && known.batch == batch
        {
            return Ok(Rc::clone(&known.sum));
        }
        let sum = Rc::new(make()?);
        if self.0.len() >= MOST {
            self.0.clear();
        }
        self.0.insert(hash, Known { inputs: inputs.number(), batch: batch.to_vec(), sum: Rc::clone(&sum) });
        Ok(sum)
    }
}

/// A hash function that is fast compared with a step. The batches of a hit are compared too.
fn mixed(hash: u64, &example: &usize) -> u64 {
    (hash.rotate_left(5) ^ example as u64).wrapping_mul(0x517c_c1b7_2722_0a95)
}
