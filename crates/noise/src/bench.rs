//! Timings that mean something on any machine: noise beside the memory bandwidth measured in the same run.

use std::hint::black_box;
use std::time::Instant;

use antinoise_input::{at_least, between};
use antinoise_mechanism::Recursion;
use rayon::ThreadPoolBuilder;

use crate::{Key, NoiseError, NoiseStream, Placement};

/// The time of a warm step of a stream.
#[derive(Debug, Clone, Copy)]
pub struct StepTime {
    /// Nanoseconds a coordinate and step: the least mean over a few passes, each of at least one look-ahead.
    pub ns_per_coordinate: f64,
    /// Bytes a second if every stored vector and the output cross the memory bus as seldom as the placement
    /// allows: the state read and written once a pass, the output written once a step.
    pub bytes_per_second: f64,
    /// What the stream chose.
    pub placement: Placement,
}

/// Times `next_into` of a stream of `dim` coordinates on `threads` threads, with a memory budget or without.
///
/// ```
/// use antinoise_mechanism::Recursion;
/// let time = antinoise_noise::bench::step(Recursion::Independent, 10_000, 1, None)?;
/// assert!(time.ns_per_coordinate > 0.0);
/// # Ok::<(), antinoise_noise::NoiseError>(())
/// ```
///
/// # Errors
/// Those of [`StreamBuilder::build`](crate::StreamBuilder::build), for one of the steps the timing needs too.
pub fn step(
    recursion: Recursion,
    dim: usize,
    threads: usize,
    memory_budget: Option<u64>,
) -> Result<StepTime, NoiseError> {
    const PASSES: usize = 6;
    let steps = recursion.state_vectors().max(1) + 64 * PASSES;
    let mut builder = NoiseStream::builder(recursion, steps, dim, 1.0).threads(threads);
    if let Some(bytes) = memory_budget {
        builder = builder.memory_budget(bytes);
    }
    let mut stream = builder.build(Key::from_seed_insecure(0))?;
    let mut out = vec![0.0; dim];
    let placement = stream.placement();
    let pass = placement.look_ahead.max(2);
    // Whole passes that fill the past, so that every timed step is a full one.
    let warm_up =
        (stream.steps() - PASSES * pass).next_multiple_of(placement.look_ahead).min(stream.steps() - pass);
    let warm_up =
        if placement.vectors == 0 { pass } else { warm_up.min(placement.vectors.next_multiple_of(pass)) };
    for _ in 0..warm_up {
        stream.next_into(&mut out)?;
    }
    let mut least = f64::INFINITY;
    for _ in 0..((stream.steps() - warm_up) / pass).min(PASSES) {
        let start = Instant::now();
        for _ in 0..pass {
            stream.next_into(&mut out)?;
        }
        least = least.min(start.elapsed().as_secs_f64() / pass as f64);
        black_box(&mut out);
    }
    let traffic = placement.bytes as f64 * 2.0 / placement.look_ahead as f64 + 4.0 * dim as f64;
    Ok(StepTime { ns_per_coordinate: least / dim as f64 * 1e9, bytes_per_second: traffic / least, placement })
}

/// Bytes a second, read and written, of the plainest pass over `bytes` bytes: each number scaled in place.
///
/// ```
/// assert!(antinoise_noise::bench::memory_bytes_per_second(1 << 20, 1)? > 0.0);
/// # Ok::<(), antinoise_noise::NoiseError>(())
/// ```
///
/// # Errors
/// [`NoiseError::Input`] for fewer than 64 bytes or no thread, [`NoiseError::Threads`] when they cannot be started.
pub fn memory_bytes_per_second(bytes: usize, threads: usize) -> Result<f64, NoiseError> {
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
