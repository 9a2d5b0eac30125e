//! Timings of this crate as one JSON object, for `scripts/noise/compare_peers.py`: `timings DIM THREADS`.

use std::hint::black_box;
use std::time::Instant;

use antinoise_mechanism::Recursion;
use antinoise_noise::{Cipher, Error, Key, SeedNoise, bench};
use serde_json::json;

fn best(dim: usize, mut call: impl FnMut()) -> f64 {
    let timed = (0..10).map(|_| {
        let start = Instant::now();
        call();
        start.elapsed().as_secs_f64()
    });
    timed.fold(f64::INFINITY, f64::min) / dim as f64 * 1e9
}

fn main() -> Result<(), Error> {
    let mut arguments =
        std::env::args().skip(1).map(|text| text.parse::<usize>().expect("DIM THREADS: whole numbers"));
    let (dim, threads) = (arguments.next().unwrap_or(10_000_000), arguments.next().unwrap_or(1));
    let mut noise = SeedNoise::new(&Key::from_seed_insecure(0), Cipher::default());
    let (mut single, mut double) = (vec![0.0; dim], vec![0.0; dim]);
    let blt = |order: usize| Recursion::Blt { scale: vec![0.1; order], decay: vec![0.9; order] };
    let banded =
        |bands: usize| Recursion::AutoRegressive { taps: (0..bands).map(|i| 1.0 / (1 + i) as f64).collect() };
    let sum = |seeds: usize| Recursion::SeedCombination {
        rows: (0..2 * seeds + 500usize)
            .map(|t| (t.saturating_sub(seeds)..=t).map(|s| (s, 1.0 / (1 + t - s) as f64)).collect())
            .collect(),
    };
    let mut report = json!({
        "normal f32": best(dim, || noise.fill(0, 0, black_box(&mut single))),
        "normal f64": best(dim, || noise.fill_f64(0, 0, black_box(&mut double))),
        "memory_bytes_per_second": bench::memory_bytes_per_second(20 * dim, threads)?,
    });
    drop((single, double));
    let mut times = vec![
        ("identity", bench::step(Recursion::Independent, dim, |builder| builder.threads(threads))?),
        ("blt:4", bench::step(blt(4), dim, |builder| builder.threads(threads))?),
        (
            "identity on a grid",
            bench::add_to_sum(Recursion::Independent, dim, |builder| builder.threads(threads))?,
        ),
        ("blt:4 on a grid", bench::add_to_sum(blt(4), dim, |builder| builder.threads(threads))?),
        ("banded-toeplitz:16", bench::step(banded(16), dim, |builder| builder.threads(threads))?),
    ];
    if dim <= 10_000_000 {
        times.push(("banded-toeplitz:64", bench::step(banded(64), dim, |builder| builder.threads(threads))?));
        let ring = bench::step(banded(64), dim, |builder| builder.threads(threads).look_ahead(1))?;
        times.push(("banded-toeplitz:64 one step a pass", ring));
        let few = dim.div_ceil(20);
        let kept = bench::add_to_sum(sum(511), few, |builder| builder.threads(threads))?;
        times.push(("sum of 512 seeds on a grid", kept));
    }
    for (name, time) in times {
        report[name] = json!(time.ns_per_coordinate);
        report[format!("{name} bytes_per_second")] = json!(time.bytes_per_second);
    }
    println!("{report}");
    Ok(())
}
