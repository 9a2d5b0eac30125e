//! Streams of correlated Gaussian noise, at memory speed.
//!
//! Private training uses noisy sums G + C^-1 Z: the clipped gradient sums G (steps x dim) plus correlated
//! noise C^-1 Z. Z (steps x dim) is seed noise: independent normals of standard deviation `noise_std`, one
//! row a step. C^-1 is given as a [`Recursion`](antinoise_mechanism::Recursion). A [`NoiseStream`] returns
//! the rows of C^-1 Z one by one:
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
//! # Ok::<(), antinoise_noise::Error>(())
//! ```
//!
//! The noise of step t at coordinate j is a function of (key, run, description, t, j) alone. The description
//! consists of the recursion with all bits of its coefficients, steps, dim, noise_std, grid and cipher. So
//! threads, shards, instruction sets, memory budgets, seeking and resuming change no bit. Streams that differ
//! in run or description share no bit.
//!
//! # How a step is made
//!
//! ```text
//! key, run, description            which stream this is
//!   |  HMAC
//! stream's key
//!   |  cipher, of seed s
//! keystream of seed s              random bits, readable from any position
//!   |  transform, of coordinates j, ..., j + 1023
//! seed noise z_s                   standard normals; on a grid in double precision
//!   |
//! kernel  <---------------> past   earlier rows or seeds, or buffers
//!   |  z~_t = w z_t + history term; on a grid rounded, and the rounding fed back into the past
//! row z~_t                         returned now, or stored: a row made ahead
//!   |  times noise_std and the step's factor
//! output                           written over, added to, or added to the sum
//! ```
//!
//! Terms of this crate:
//!
//! - **tile**: up to 1024 consecutive coordinates, or short ranges with up to 1024 coordinates in total. A
//!   step is made tile by tile, in cache.
//! - **past**: the vectors that a recursion reads in addition to fresh seed noise: earlier rows, earlier
//!   seeds, or buffers. They are stored or, if the memory budget is too small, recomputed: seeds are
//!   *regenerated*, or the recursion is *replayed* from its start. [`Placement`] states which.
//! - **history term**: the contribution of the past to a row of noise.
//! - **look-ahead**: a tile makes several steps together, so that its past is read from main memory once for
//!   all of them. This is possible since noise does not depend on data. The rows are stored until their step.
//! - **staggering**: tiles look ahead at different steps, so that every step takes the same time. If there
//!   are few tiles and windows are long, all tiles look ahead at the same steps instead.
//! - **window**: the steps that are made in one iteration over the tiles.
//! - **leaf**: a recursion that contains no other recursion; scaled and restarted recursions are flattened to
//!   their leaf.
//! - **mode**: `Plain` (floating point) or `OnGrid` (noisy sums on a grid).
//!
//! # Layers
//!
//! From the ground up; a file uses only files of lines above its own, which `scripts/layers.py` checks.
//!
//! ```layers
//! error, number, slices: what can go wrong; arithmetic, bytes and wiping of numbers; a row in pieces
//! simd, key: instruction sets and memory; secrets and what is derived from them
//! keystream: ciphers, and uniform random numbers
//! normal: standard normals from keystreams
//! shard, flat_recursion: which coordinates; recursions without nesting
//! spec, placement, stagger: all that noise depends on; memory against time; when a tile looks ahead
//! range, kernel: the range of a precision; a step of a tile in either mode
//! window: which steps, from which seeds
//! parts, past, portable_state, word_sum: all tiles on all threads; what is saved of their past; a state that any sharding can read; its keyed sum
//! engine, checkpoint, used_steps: the steps of all tiles; a state in a file; which steps were handed out
//! either: the engine of either mode
//! stream: the stream that callers hold
//! rows, resharding: how rows are returned; how another sharding continues a stream
//! restored: a stream whose state is still to be checked
//! builder: the description and options of a stream
//! bench: timings
//! ```

pub mod bench;
mod builder;
mod checkpoint;
mod either;
mod engine;
mod error;
mod flat_recursion;
mod kernel;
mod key;
mod keystream;
mod normal;
mod number;
mod parts;
mod past;
mod placement;
mod portable_state;
mod range;
mod resharding;
mod restored;
mod rows;
mod shard;
mod simd;
mod slices;
mod spec;
mod stagger;
mod stream;
mod used_steps;
mod window;
mod word_sum;

pub use antinoise_mechanism::Grid;
pub use builder::StreamBuilder;
pub use error::{Error, Result};
pub use kernel::{BLOCK_WEIGHTS, block_factor};
pub use key::{Key, RunId};
pub use keystream::{Cipher, KeyedRng, Purpose};
pub use normal::SeedNoise;
pub use placement::{Placement, State};
pub use portable_state::StateAt;
pub use restored::Restored;
pub use shard::Shard;
pub use stream::NoiseStream;

/// The README, whose code runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
