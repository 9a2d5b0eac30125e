//! Timings of noise, and of the memory bandwidth of the same machine, which makes timings on different
//! machines comparable.

use std::hint::black_box;
use std::time::Instant;

use antinoise_input::{at_least, between};
use antinoise_mechanism::{Grid, Recursion};
use rayon::ThreadPoolBuilder;

use crate::{Key, NoiseStream, Placement, Result, State, StreamBuilder};

/// The time of one step of a stream in its steady state.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct StepTime {
    /// Nanoseconds per coordinate and step: the smallest of the means of a few passes, each of which covers
    /// at least one look-ahead window.
    pub ns_per_coordinate: f64,
    /// Bytes per second of the minimum memory traffic that the placement allows: the state is read and
    /// written once a window, and the output is written once a step.
    pub bytes_per_second: f64,
    /// The placement that the stream chose.
    pub placement: Placement,
}

/// Times `next_into` of a stream of `dim` coordinates, built with the options set by `configure`.
///
/// ```
/// use antinoise_mechanism::Recursion;
/// let time = antinoise_noise::bench::step(Recursion::Independent, 10_000, |builder| builder.threads(1))?;
/// assert!(time.ns_per_coordinate > 0.0);
/// # Ok::<(), antinoise_noise::Error>(())
/// ```
///
/// # Errors
/// As [`StreamBuilder::build`]. A recursion of fixed length must have at least 448 steps more than past
/// vectors.
pub fn step(
    recursion: Recursion,
    dim: usize,
    configure: impl FnOnce(StreamBuilder) -> StreamBuilder,
) -> Result<StepTime> {
    let steps = steps_for(&recursion);
    let builder = configure(NoiseStream::builder(recursion, steps, dim, 1.0));
    let mut stream = builder.build(Key::from_seed_insecure(0))?;
    let mut out = vec![0.0; stream.len()];
    time(stream.placement(), out.len(), 4, || stream.next_into(&mut out))
}

/// Times `add_to_sum` of a stream on a grid, whose spacing raises the sensitivity for clip norm 1 by a
/// thousandth.
///
/// ```
/// use antinoise_mechanism::Recursion;
/// let time = antinoise_noise::bench::add_to_sum(Recursion::Independent, 10_000, |builder| builder.threads(1))?;
/// assert!(time.ns_per_coordinate > 0.0);
/// # Ok::<(), antinoise_noise::Error>(())
/// ```
///
/// # Errors
/// As [`StreamBuilder::build`] and [`step`].
pub fn add_to_sum(
    recursion: Recursion,
    dim: usize,
    configure: impl FnOnce(StreamBuilder) -> StreamBuilder,
) -> Result<StepTime> {
    let steps = steps_for(&recursion);
    let builder = configure(NoiseStream::builder(recursion, steps, dim, 1.0));
    let mut stream = builder.grid(Grid::for_clip_norm(1.0, dim, 1e-3)?).build(Key::from_seed_insecure(0))?;
    let (sum, mut out) = (vec![0.0; stream.len()], vec![0.0; stream.len()]);
    time(stream.placement(), out.len(), 12, || stream.add_to_sum(&sum, &mut out))
}

const PASSES: usize = 6;

fn steps_for(recursion: &Recursion) -> usize {
    recursion.state_vectors() + 64 * (PASSES + 1)
}

/// Runs the stream until its past is full, then times whole passes. `row_bytes` is the number of bytes per
/// coordinate that are read and written to return a row.
fn time(
    placement: Placement,
    outputs: usize,
    row_bytes: usize,
    mut step: impl FnMut() -> Result<()>,
) -> Result<StepTime> {
    let pass = placement.look_ahead.max(2).next_multiple_of(placement.look_ahead);
    let filled = if placement.state == State::Stored { placement.vectors } else { 0 };
    for _ in 0..filled.next_multiple_of(pass).max(pass) {
        step()?;
    }
    let mut least = f64::INFINITY;
    for _ in 0..PASSES {
        let start = Instant::now();
        for _ in 0..pass {
            step()?;
        }
        least = least.min(start.elapsed().as_secs_f64() / pass as f64);
    }
    let traffic = placement.bytes as f64 * 2.0 / placement.look_ahead as f64 + (row_bytes * outputs) as f64;
    Ok(StepTime {
        ns_per_coordinate: least / outputs as f64 * 1e9,
        bytes_per_second: traffic / least,
        placement,
    })
}

/// Measures the memory bandwidth: bytes read and written per second by a loop that scales `bytes` / 4 numbers
/// in place.
///
/// ```
/// assert!(antinoise_noise::bench::memory_bytes_per_second(1 << 20, 1)? > 0.0);
/// # Ok::<(), antinoise_noise::Error>(())
/// ```
///
/// # Errors
/// [`Error::Invalid`](crate::Error::Invalid) for fewer than 64 bytes or no thread,
/// [`Error::Threads`](crate::Error::Threads) when they cannot be started.
pub fn memory_bytes_per_second(bytes: usize, threads: usize) -> Result<f64> {
    at_least("bytes", bytes, 64)?;
    between("threads", threads, 1, 1 << 12, "2^12")?;
    let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
    let mut numbers = vec![1.0f32; bytes / 4];
    let portion = numbers.len().div_ceil(threads);
    let mut least = f64::INFINITY;
    for _ in 0..6 {
        let start = Instant::now();
        pool.scope(|scope| {
            for part in numbers.chunks_mut(portion) {
                scope.spawn(|_| part.iter_mut().for_each(|x| *x = 0.5f32 * *x + 1.0));
            }
        });
        least = least.min(start.elapsed().as_secs_f64());
        black_box(&mut numbers);
    }
    Ok(2.0 * 4.0 * numbers.len() as f64 / least)
}
