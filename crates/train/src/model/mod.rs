//! Models: sequences of layers, with the parameters in one flat vector.

mod build;
mod elementwise;
mod evaluate;
mod network;
mod pass;
mod pool;
mod softmax;
mod stage;
mod tensors;
mod window;

pub use elementwise::Activation;
pub use evaluate::Evaluation;
pub use network::Model;
pub(crate) use pass::Captured;
pub use pool::Pooling;
pub use stage::Layer;
pub use tensors::NamedTensor;
