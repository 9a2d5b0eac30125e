//! Two streams share bits if and only if they have the same key, description and run.

mod common;

use antinoise_mechanism::Recursion;
use antinoise_noise::{
    Cipher, Error, Grid, Key, KeyedRng, NoiseStream, Purpose, RunId, Shard, StreamBuilder,
};
use common::{STEPS, cases};
use rand_core::Rng;

const DIM: usize = 4096;

fn key() -> Key {
    Key::from_seed_insecure(12)
}

fn builder(recursion: &Recursion) -> StreamBuilder {
    NoiseStream::builder(recursion.clone(), STEPS, DIM, 1.0).threads(1)
}

/// The rows of a stream; for a recursion without a past, its seed noise.
fn rows(builder: StreamBuilder) -> Vec<Vec<f32>> {
    let mut stream = builder.build(key()).unwrap();
    let mut row = || {
        let mut row = vec![0.0; stream.len()];
        stream.next_into(&mut row).unwrap();
        row
    };
    (0..STEPS).map(|_| row()).collect()
}

fn blt() -> Recursion {
    Recursion::Blt { scale: vec![0.4, 0.1], decay: vec![0.95, 0.6] }
}

/// The largest correlation of a row of `a` with a row of `b`, in standard deviations for independent rows.
fn largest_correlation(a: &[Vec<f32>], b: &[Vec<f32>]) -> f64 {
    let dot = |x: &[f32], y: &[f32]| -> f64 { x.iter().zip(y).map(|(x, y)| f64::from(x * y)).sum() };
    let mut largest = 0.0f64;
    for x in a {
        for y in b {
            let root = (dot(x, x) * dot(y, y)).sqrt();
            largest = largest.max(dot(x, y).abs() / root * (DIM as f64).sqrt());
        }
    }
    largest
}

/// With shared seeds, rows of one mechanism would be a fixed matrix times rows of the other. Independent rows
/// stay below 6 deviations: 169 products fail with probability 3e-7, and the key is fixed.
#[test]
fn two_strategies_or_scales_under_one_key_have_nothing_in_common() {
    let independent = rows(builder(&Recursion::Independent));
    let correlated = rows(builder(&blt()));
    assert!(largest_correlation(&independent, &correlated) < 6.0);
    // Inverting the recursion recovers the seeds: they must differ too.
    let columns: Vec<Vec<f64>> = (0..DIM)
        .map(|j| {
            let response = blt().apply(STEPS, &std::array::from_fn::<_, STEPS, _>(|t| f64::from(t == 0)));
            let mut seeds = vec![0.0; STEPS];
            for t in 0..STEPS {
                let past: f64 = (0..t).map(|s| response[t - s] * seeds[s]).sum();
                seeds[t] = f64::from(correlated[t][j]) - past;
            }
            seeds
        })
        .collect();
    let seeds: Vec<Vec<f32>> =
        (0..STEPS).map(|t| columns.iter().map(|column| column[t] as f32).collect()).collect();
    assert!(largest_correlation(&independent, &seeds) < 6.0);
    let scaled = rows(NoiseStream::builder(Recursion::Independent, STEPS, DIM, 2.0));
    assert!(largest_correlation(&independent, &scaled) < 6.0);
    // The measure detects rows of the same stream.
    assert!(largest_correlation(&independent, &independent) > 60.0);
}

/// Variants of everything in a description, and of the run.
fn variants() -> Vec<(&'static str, StreamBuilder)> {
    let with = |steps, dim, noise_std| {
        NoiseStream::builder(blt(), steps, dim, noise_std).shard(Shard::of_range(0..64)).threads(1)
    };
    let base = || with(STEPS, DIM, 1.0);
    let off = Recursion::Blt { scale: vec![0.4, 0.1], decay: vec![0.95, 0.6f64.next_up()] };
    let scaled = |last: f64| Recursion::Scaled {
        inner: Box::new(blt()),
        factors: (0..STEPS).map(|t| if t + 1 == STEPS { last } else { 1.0 }).collect(),
    };
    let of = |recursion: Recursion| {
        NoiseStream::builder(recursion, STEPS, DIM, 1.0).shard(Shard::of_range(0..64)).threads(1)
    };
    vec![
        ("base", base()),
        ("steps", with(STEPS + 1, DIM, 1.0)),
        ("dim", with(STEPS, DIM + 1, 1.0)),
        ("noise_std", with(STEPS, DIM, 1.0f64.next_up())),
        ("cipher", base().cipher(Cipher::ChaCha20)),
        ("run", base().run(RunId::from(1))),
        ("another run", base().run(RunId::new("0 ").unwrap())),
        ("a coefficient's last bit", of(off)),
        ("factors", of(scaled(1.0))),
        ("a factor of a later step", of(scaled(1.5))),
        ("another recursion", of(Recursion::Blt { scale: vec![0.4], decay: vec![0.95] })),
        ("restarts", of(Recursion::Restarted { inner: Box::new(blt()), period: STEPS })),
    ]
}

#[test]
fn any_difference_of_description_or_run_changes_every_number() {
    let seeds: Vec<(&str, Vec<u32>)> = variants()
        .into_iter()
        .map(|(name, builder)| {
            let mut row = vec![0.0; 64];
            builder.seed_noise(key()).fill(0, 0, &mut row);
            (name, row.into_iter().map(f32::to_bits).collect())
        })
        .collect();
    let mut seen = std::collections::HashMap::new();
    for (name, row) in &seeds {
        for bits in row {
            if let Some(other) = seen.insert(*bits, name) {
                panic!("{name} and {other} share a number");
            }
        }
    }
    let grid = Grid::new(2f64.powi(-20)).unwrap();
    let plain = builder(&blt()).seed_noise(key());
    let on_grid = builder(&blt()).grid(grid).seed_noise(key());
    let coarser = builder(&blt()).grid(Grid::new(2f64.powi(-19)).unwrap()).seed_noise(key());
    let first = [plain, on_grid, coarser].map(|mut seeds| {
        let mut row = [0.0];
        seeds.fill(0, 0, &mut row);
        row[0].to_bits()
    });
    assert!(first[0] != first[1] && first[1] != first[2] && first[0] != first[2]);
}

#[test]
fn shards_threads_memory_and_context_change_no_bit() {
    let whole = rows(builder(&blt()));
    let others = [
        builder(&blt()).run(RunId::default()),
        builder(&blt()).threads(2).memory_budget(0),
        builder(&blt()).look_ahead(1).context([7; 32]),
    ];
    for other in others {
        assert_eq!(rows(other), whole);
    }
    let part = rows(builder(&blt()).shard(Shard::part(1, 4, DIM).unwrap()));
    assert!(part.iter().zip(&whole).all(|(part, whole)| part[..] == whole[DIM / 4..DIM / 2]));
}

/// Samples are a function of key, run, purpose and step: a plan's batches can be listed without its model.
#[test]
fn samples_depend_on_the_run_and_on_nothing_of_the_noise() {
    let draw = |builder: StreamBuilder, purpose| builder.build(key()).unwrap().rng(purpose, 3).next_u64();
    let listed = |run: RunId, purpose| KeyedRng::new(&key(), &run, purpose, 3).next_u64();
    for purpose in [Purpose::BatchSampling, Purpose::DataOrder, Purpose::Initialization] {
        for (name, builder) in variants() {
            if !name.contains("run") {
                assert_eq!(draw(builder, purpose), listed(RunId::default(), purpose), "{name}");
            }
        }
        let other = builder(&blt()).run(RunId::from(1));
        assert_eq!(draw(other, purpose), listed(RunId::from(1), purpose));
        assert_ne!(listed(RunId::from(1), purpose), listed(RunId::default(), purpose));
    }
}

/// Every use of one key, under both ciphers: noise, samples and plain normals never share a word.
#[test]
fn no_two_purposes_share_a_word() {
    let mut seen = std::collections::HashSet::new();
    for cipher in [Cipher::Aes256Ctr, Cipher::ChaCha20] {
        for (_, recursion) in cases().into_iter().take(4) {
            let mut row = vec![0.0; 200];
            builder(&recursion).cipher(cipher).seed_noise(key()).fill_f64(0, 0, &mut row);
            assert!(row.iter().all(|x| seen.insert(x.to_bits())));
        }
    }
    for purpose in [Purpose::BatchSampling, Purpose::DataOrder, Purpose::Initialization] {
        let mut rng = KeyedRng::new(&key(), &RunId::default(), purpose, 0);
        assert!((0..200).all(|_| seen.insert(rng.next_u64())));
    }
}

#[test]
fn a_checkpoint_of_another_run_or_context_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("noise.safetensors");
    let base = || builder(&blt()).run(RunId::new("first").unwrap()).context([1; 32]);
    let mut stream = base().build(key()).unwrap();
    stream.seek(4).unwrap();
    stream.save(&path).unwrap();
    let resumed = base().resume(&path).unwrap();
    assert_eq!((resumed.step(), resumed.commitment()), (4, stream.commitment()));
    let refusal = |builder: StreamBuilder| match builder.resume(&path) {
        Err(Error::Checkpoint { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(refusal(base().run(RunId::default())), "it is of run \"first\", not \"0\"");
    assert!(refusal(base().context([2; 32])).contains("another context"));
    assert!(refusal(builder(&blt()).run(RunId::new("first").unwrap())).contains("another context"));
}

/// Equal for the same stream at the same step on any machine, different for anything else.
#[test]
fn a_commitment_is_of_key_run_description_context_and_step() {
    let start = || builder(&blt()).build(key()).unwrap();
    let mut seen = std::collections::HashSet::from([start().commitment()]);
    let mut stream = start();
    stream.next_into(&mut vec![0.0; DIM]).unwrap();
    assert!(seen.insert(stream.commitment()));
    stream.seek_and_reuse_noise_unprotected(0).unwrap();
    assert_eq!(stream.commitment(), start().commitment());
    assert!(seen.insert(builder(&blt()).build(Key::from_seed_insecure(13)).unwrap().commitment()));
    assert!(seen.insert(builder(&blt()).context([1; 32]).build(key()).unwrap().commitment()));
    for (name, builder) in variants().into_iter().skip(1) {
        assert!(seen.insert(builder.build(key()).unwrap().commitment()), "{name}");
    }
    let part = builder(&blt()).shard(Shard::part(0, 2, DIM).unwrap()).build(key()).unwrap();
    assert_eq!(part.commitment(), start().commitment());
}

#[test]
fn runs_purposes_and_steps_draw_different_numbers_and_none_repeats() {
    let key = Key::from_seed_insecure(1);
    let mut seen = std::collections::HashSet::new();
    for run in [RunId::default(), RunId::from(1)] {
        for purpose in [Purpose::BatchSampling, Purpose::DataOrder, Purpose::Initialization] {
            for step in 0..10 {
                let mut rng = KeyedRng::new(&key, &run, purpose, step);
                assert!((0..100).all(|_| seen.insert(rng.next_u64())));
            }
        }
    }
}

#[test]
fn bytes_are_the_same_in_any_portions() {
    let key = Key::from_seed_insecure(2);
    let (mut whole, mut parts) = ([0; 300], [0; 300]);
    let start = || KeyedRng::new(&key, &RunId::default(), Purpose::DataOrder, 0);
    start().fill_bytes(&mut whole);
    let mut rng = start();
    parts.chunks_mut(7).for_each(|part| rng.fill_bytes(part));
    assert_eq!(whole, parts);
}

/// Two names that were parsed as one would share all noise.
#[test]
fn names_of_runs_are_read_as_they_are_written() {
    for name in ["0", "1", "a", " a", "A", "a b", "\u{e9}", "e\u{301}"] {
        let read: RunId = name.parse().unwrap();
        assert_eq!((read.as_str(), &read), (name, &RunId::new(name).unwrap()));
        assert_eq!(read == RunId::default(), name == "0");
    }
    assert!("".parse::<RunId>().is_err() && "a\n".parse::<RunId>().is_err());
}
