//! A model written in candle's operations that this crate has too.

use antinoise_train::candle::ExampleModel;
use antinoise_train::data::Example;
use candle_core::{Result, Tensor};

pub const HIDDEN: usize = 24;

/// `Model::mlp`, written in candle's operations.
pub struct Mlp;

impl ExampleModel for Mlp {
    fn identity(&self) -> String {
        format!("mlp 64 {HIDDEN} 10")
    }

    fn shapes(&self) -> Vec<Vec<usize>> {
        vec![vec![HIDDEN, 64], vec![HIDDEN], vec![10, HIDDEN], vec![10]]
    }

    fn layers(&self) -> Vec<usize> {
        vec![2, 2]
    }

    fn outputs(&self, parameters: &[Tensor], example: Example) -> Result<Tensor> {
        let [w1, b1, w2, b2] = parameters else { unreachable!("four shapes") };
        let x = Tensor::from_slice(example.features, (64, 1), w1.device())?;
        let hidden = (w1.matmul(&x)?.flatten_all()? + b1)?.tanh()?;
        w2.matmul(&hidden.reshape((HIDDEN, 1))?)?.flatten_all()? + b2
    }
}
