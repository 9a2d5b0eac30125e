//! `cargo bench -p antinoise-noise`: normals, recursions and placements, in elements a second.

use std::hint::black_box;
use std::time::Duration;

use antinoise_mechanism::Recursion;
use antinoise_noise::{Cipher, Key, NoiseStream, SeedNoise};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn normals(c: &mut Criterion) {
    let mut group = c.benchmark_group("normals");
    for dim in [10_000, 1_000_000, 10_000_000] {
        group.throughput(Throughput::Elements(dim as u64));
        for cipher in [Cipher::Aes256Ctr, Cipher::ChaCha20] {
            let mut noise = SeedNoise::new(&Key::from_seed_insecure(0), cipher);
            let (mut single, mut double) = (vec![0.0; dim], vec![0.0; dim]);
            noise.fill(0, 0, &mut single);
            let mean = single.iter().map(|&x| f64::from(x)).sum::<f64>() / dim as f64;
            assert!(mean.abs() < 6.0 / (dim as f64).sqrt(), "normals of mean {mean}");
            group.bench_function(BenchmarkId::new(format!("f32 {cipher:?}"), dim), |b| {
                b.iter(|| noise.fill(0, 0, black_box(&mut single)));
            });
            group.bench_function(BenchmarkId::new(format!("f64 {cipher:?}"), dim), |b| {
                b.iter(|| noise.fill_f64(0, 0, black_box(&mut double)));
            });
        }
    }
    group.finish();
}

/// Name, recursion and memory budget in vectors (none: as much as there is).
fn streams() -> Vec<(&'static str, Recursion, Option<u64>)> {
    let blt = |order: usize| Recursion::Blt { scale: vec![0.1; order], decay: vec![0.9; order] };
    let taps = |count: usize| (0..count).map(|i| 1.0 / (1 + i) as f64).collect::<Vec<_>>();
    let banded = |bands: usize| Recursion::AutoRegressive { taps: taps(bands) };
    let dense = (0..64).map(|t| (0..=t).map(|s| (s, 1.0)).collect()).collect();
    vec![
        ("identity", Recursion::Independent, None),
        ("workload", Recursion::MovingAverage { taps: vec![1.0, -1.0] }, None),
        ("blt:2", blt(2), None),
        ("blt:4", blt(4), None),
        ("blt:8", blt(8), None),
        ("banded-toeplitz:16", banded(16), None),
        ("banded-toeplitz:64", banded(64), None),
        ("banded-inverse:16", Recursion::MovingAverage { taps: taps(16) }, None),
        ("banded-inverse:16 from seeds", Recursion::MovingAverage { taps: taps(16) }, Some(8)),
        ("dense:64", Recursion::SeedCombination { rows: dense }, None),
    ]
}

fn steps(c: &mut Criterion) {
    let mut group = c.benchmark_group("step");
    group.sample_size(10).warm_up_time(Duration::from_secs(1));
    for dim in [100_000, 10_000_000] {
        group.throughput(Throughput::Elements(dim as u64));
        for (name, recursion, vectors) in streams() {
            let mut builder = NoiseStream::builder(recursion, 64, dim, 1.0).threads(1);
            if let Some(vectors) = vectors {
                builder = builder.memory_budget(vectors * 4 * dim as u64);
            }
            let mut stream = builder.build(Key::from_seed_insecure(0)).expect("a valid stream");
            let mut out = vec![0.0; dim];
            group.bench_function(BenchmarkId::new(name, dim), |b| {
                b.iter(|| {
                    if stream.step() == stream.steps() {
                        stream.seek_and_reuse_noise_unprotected(0).expect("a valid step");
                    }
                    stream.next_into(black_box(&mut out)).expect("a step that is left");
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, normals, steps);
criterion_main!(benches);
