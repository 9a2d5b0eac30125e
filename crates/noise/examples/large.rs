//! The largest settings, in the memory that they need: `large blt` (1e9 coordinates, BLT of order 2) or
//! `large shard` (256 bands on 1 of 1024 shards of 1e9). Prints the time of a step and, on Linux, the peak
//! memory of the process.

use std::time::Instant;

use antinoise_mechanism::Recursion;
use antinoise_noise::{Error, Key, NoiseStream, Shard};

const DIM: usize = 1_000_000_000;

fn main() -> Result<(), Error> {
    let blt = std::env::args().nth(1).as_deref() != Some("shard");
    let (recursion, shard, steps) = if blt {
        let blt = Recursion::Blt { scale: vec![0.2, 0.1], decay: vec![0.99, 0.8] };
        (blt, Shard::of_range(0..DIM as u64), 3)
    } else {
        let taps = (0..256).map(|i| 1.0 / (1 + i) as f64).collect();
        (Recursion::AutoRegressive { taps }, Shard::part(7, 1024, DIM)?, 300)
    };
    let mut stream = NoiseStream::builder(recursion, steps, DIM, 1.0).shard(shard).build(Key::from_os()?)?;
    println!("{}", stream.placement());
    let mut out = vec![0.0; stream.len()];
    let start = Instant::now();
    for _ in 0..steps {
        stream.next_into(&mut out)?;
    }
    let seconds = start.elapsed().as_secs_f64() / steps as f64;
    println!("{seconds:.3} s a step of {} coordinates", stream.len());
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().filter(|line| line.starts_with("VmHWM")).for_each(|line| println!("{line}"));
    Ok(())
}
