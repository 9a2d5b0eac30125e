//! Streams, and how they are described.

mod builder;
mod state;

pub use builder::StreamBuilder;
pub use state::{GridStream, NoiseStream, Stream};
