//! Models: sequences of layers, with the parameters in one flat vector.

mod affine;
mod build;
mod elementwise;
mod evaluate;
mod network;
mod pool;
mod stage;
mod tensors;
mod window;

pub(crate) use affine::{Captured, Record};
pub use elementwise::Activation;
pub use evaluate::Evaluation;
pub use network::Model;
pub use pool::Pooling;
pub use stage::Layer;
pub use tensors::NamedTensor;
