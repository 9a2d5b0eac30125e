//! Streams of correlated Gaussian noise, at the speed of memory.
//!
//! Private training releases G + C^-1 Z: the clipped gradient sums G (steps x dim) plus noise that cancels itself.
//! Z is seed noise, one row of `dim` independent normals of standard deviation nu a step; C^-1 is given as a
//! [`Recursion`](antinoise_mechanism::Recursion). A [`NoiseStream`] hands out its rows one by one:
//!
//! ```
//! use antinoise_mechanism::Recursion;
//! use antinoise_noise::{Key, NoiseStream};
//! let recursion = Recursion::AutoRegressive { taps: vec![1.0, 0.5, 0.375] };
//! let (steps, dim, noise_std) = (100, 1000, 2.0);
//! let mut stream = NoiseStream::new(recursion, steps, dim, noise_std, Key::from_os()?)?;
//! let mut gradient_sum = vec![0.0f32; dim];
//! stream.add_next_into(&mut gradient_sum, 1.0)?;
//! assert_eq!(stream.step(), 1);
//! # Ok::<(), antinoise_noise::NoiseError>(())
//! ```
//!
//! The noise of step t at coordinate j is a function of (key, run, description, t, j) and of nothing else, where the description
//! is the recursion with every bit of its coefficients, steps, dim, noise_std, grid and cipher: threads, shards,
//! instruction sets, memory budgets, seeking and resuming never change a bit of it. Streams that differ in run or
//! description share no bit.

// What only the faster paths of x86-64 use is idle elsewhere.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports, unused_mut, unused_variables))]

mod aligned;
pub mod bench;
mod checkpoint;
mod cipher;
mod correlator;
mod derive;
mod engine;
mod error;
mod gaussian;
mod key;
mod pass;
mod placement;
mod recipe;
mod release;
mod rng;
mod run;
mod shard;
mod simd;
mod stream;
mod turns;
#[cfg(target_arch = "x86_64")]
mod vaes;

pub use cipher::Cipher;
pub use error::NoiseError;
pub use gaussian::SeedNoise;
pub use key::Key;
pub use placement::{Placement, State};
pub use release::{Grid, GridStream};
pub use rng::{KeyedRng, Purpose};
pub use run::RunId;
pub use shard::Shard;
pub use stream::{NoiseStream, StreamBuilder};
