//! `antinoise bench noise`: nanoseconds per coordinate, compared with the memory bandwidth.

use std::collections::BTreeMap;
use std::fmt;

use antinoise_input::between;
use antinoise_mechanism::Recursion;
use antinoise_noise::bench::{memory_bytes_per_second, step};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::failure::Result;
use crate::numbers::count;
use crate::output;

/// Measure the speed of noise on this machine.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  antinoise bench noise --dim 1e6")]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Noise(NoiseArguments),
}

/// Time one step of noise for each mechanism, and the memory bandwidth in the same run for comparison.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  antinoise bench noise --dim 1e6 --threads 1"
)]
struct NoiseArguments {
    /// Number of coordinates.
    #[arg(long, value_name = "M", value_parser = count)]
    dim: usize,
    /// Number of threads [default: all].
    #[arg(long, value_name = "T", value_parser = count)]
    threads: Option<usize>,
}

/// Output of `antinoise bench`.
#[derive(Debug, Serialize)]
pub struct NoiseSpeeds {
    dim: usize,
    threads: usize,
    memory_bytes_per_second: f64,
    ns_per_coordinate: BTreeMap<String, f64>,
    /// Bytes per second that a step moves, as a share of the memory bandwidth.
    share_of_memory_bandwidth: BTreeMap<String, f64>,
}

/// Bytes moved per coordinate in the measurement of the memory bandwidth: as many as a BLT moves.
const BANDWIDTH_BYTES_PER_COORDINATE: usize = 20;

fn cases() -> Vec<(String, Recursion)> {
    let banded = |bands: usize| {
        let taps = (0..bands).map(|i| 1.0 / (1 + i) as f64).collect();
        (format!("banded-toeplitz:{bands}"), Recursion::AutoRegressive { taps })
    };
    let blt = |order: usize| {
        let decay = (0..order).map(|i| 1.0 - 0.5f64.powi(i as i32 + 2)).collect();
        (format!("blt:{order}"), Recursion::Blt { scale: vec![0.5 / order as f64; order], decay })
    };
    vec![("identity".into(), Recursion::Independent), blt(2), blt(4), blt(8), banded(16), banded(64)]
}

/// Measures the speed of noise and the memory bandwidth.
pub fn run(arguments: &Arguments) -> Result<NoiseSpeeds> {
    let What::Noise(NoiseArguments { dim, threads }) = &arguments.what;
    // 64 bands hold 63 vectors of 4 bytes a coordinate.
    let dim = between("dim", *dim, 1, 1_000_000_000, "the maximum number of coordinates")?;
    let all = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let threads = between("threads", threads.unwrap_or(all), 1, 4096, "the maximum number of threads")?;
    let bandwidth = memory_bytes_per_second((BANDWIDTH_BYTES_PER_COORDINATE * dim).max(64), threads)?;
    let (mut ns_per_coordinate, mut share_of_memory_bandwidth) = (BTreeMap::new(), BTreeMap::new());
    for (name, recursion) in cases() {
        let time = step(recursion, dim, |builder| builder.threads(threads))?;
        ns_per_coordinate.insert(name.clone(), time.ns_per_coordinate);
        share_of_memory_bandwidth.insert(name, time.bytes_per_second / bandwidth);
    }
    Ok(NoiseSpeeds {
        dim,
        threads,
        memory_bytes_per_second: bandwidth,
        ns_per_coordinate,
        share_of_memory_bandwidth,
    })
}

impl fmt::Display for NoiseSpeeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<Vec<String>> = self
            .ns_per_coordinate
            .iter()
            .map(|(name, ns)| {
                let share = 100.0 * self.share_of_memory_bandwidth[name];
                vec![name.clone(), format!("{ns:.3}"), format!("{share:.0}%")]
            })
            .collect();
        let gigabytes = self.memory_bytes_per_second / 1e9;
        writeln!(f, "{} coordinates, {} threads, memory {gigabytes:.1} GB/s\n", self.dim, self.threads)?;
        f.write_str(&output::table(&["mechanism", "ns per coordinate", "of memory's speed"], &rows))
    }
}
