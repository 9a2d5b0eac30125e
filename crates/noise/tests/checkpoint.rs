//! A resumed stream gives the bits that the saved stream would have given; a file that is not its checkpoint
//! is refused.

mod common;

use std::path::Path;

use antinoise_mechanism::Recursion;
use antinoise_noise::{Cipher, Error, Key, NoiseStream, Shard, StreamBuilder};
use common::{STEPS, cases};
use proptest::prelude::*;

const DIM: usize = 1100;

fn builder(recursion: &Recursion) -> StreamBuilder {
    NoiseStream::builder(recursion.clone(), STEPS, DIM, 2.0).threads(1)
}

fn rest(mut stream: NoiseStream) -> Vec<Vec<f32>> {
    (stream.step()..stream.steps())
        .map(|_| {
            let mut row = vec![0.0; stream.len()];
            stream.next_into(&mut row).unwrap();
            row
        })
        .collect()
}

#[test]
fn resuming_changes_no_bit_whatever_the_budget() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("noise.safetensors");
    for (name, recursion) in cases() {
        let whole = rest(builder(&recursion).build(Key::from_seed_insecure(8)).unwrap());
        for budget in [0, u64::MAX] {
            let mut stream =
                builder(&recursion).memory_budget(budget).build(Key::from_seed_insecure(8)).unwrap();
            for step in 0..=STEPS {
                stream.save(&path).unwrap();
                for other in [0, u64::MAX] {
                    let resumed = builder(&recursion).memory_budget(other).threads(2).resume(&path).unwrap();
                    assert_eq!(resumed.step(), step);
                    assert_eq!(rest(resumed), whole[step..], "{name}: from step {step}");
                }
                if step < STEPS {
                    stream.next_into(&mut vec![0.0; DIM]).unwrap();
                }
            }
        }
    }
}

/// A small stream in the middle of its run, saved.
fn saved(path: &Path) -> StreamBuilder {
    let recursion = Recursion::Blt { scale: vec![0.5, 0.1], decay: vec![0.9, 0.5] };
    let builder = NoiseStream::builder(recursion, STEPS, 9, 2.0).threads(1);
    let mut stream = builder.clone().build(Key::from_seed_insecure(8)).unwrap();
    stream.next_into(&mut [0.0; 9]).unwrap();
    stream.save(path).unwrap();
    builder
}

fn refused(builder: &StreamBuilder, path: &Path, bytes: &[u8]) -> bool {
    std::fs::write(path, bytes).unwrap();
    matches!(builder.clone().resume(path), Err(Error::Checkpoint { .. }))
}

#[test]
fn every_altered_byte_every_cut_and_every_addition_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("noise.safetensors");
    let builder = saved(&path);
    let whole = std::fs::read(&path).unwrap();
    for at in 0..whole.len() {
        for flip in [1, 0x20, 0x80, 0xFF] {
            let mut altered = whole.clone();
            altered[at] ^= flip;
            assert!(refused(&builder, &path, &altered), "byte {at} xor {flip:#x} was accepted");
        }
        assert!(refused(&builder, &path, &whole[..at]), "the first {at} bytes were accepted");
    }
    assert!(refused(&builder, &path, &[&whole[..], b" "].concat()));
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(builder.resume(&path).unwrap().step(), 1);
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(
        header in proptest::collection::vec(any::<u8>(), 0..200),
        body in proptest::collection::vec(any::<u8>(), 0..200),
        size in prop_oneof![0u64..400, any::<u64>()],
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("noise.safetensors");
        let builder = saved(&path);
        prop_assert!(refused(&builder, &path, &[&header[..], &body].concat()));
        prop_assert!(refused(&builder, &path, &[&size.to_le_bytes(), &header[..], &body].concat()));
    }

    #[test]
    fn any_edit_of_a_checkpoint_is_refused(
        at in 0usize..1000, cut in 0usize..20, put in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("noise.safetensors");
        let builder = saved(&path);
        let whole = std::fs::read(&path).unwrap();
        let at = at % whole.len();
        let cut = cut.min(whole.len() - at);
        let edited = [&whole[..at], &put, &whole[at + cut..]].concat();
        prop_assume!(edited != whole);
        prop_assert!(refused(&builder, &path, &edited));
    }
}

#[test]
fn a_checkpoint_of_another_stream_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("noise.safetensors");
    let (_, recursion) = cases().swap_remove(3);
    builder(&recursion).build(Key::from_seed_insecure(8)).unwrap().save(&path).unwrap();
    let others = [
        builder(&cases()[4].1),
        builder(&recursion).cipher(Cipher::ChaCha20),
        builder(&recursion).shard(Shard::of_range(0..DIM as u64 - 1)),
        NoiseStream::builder(recursion.clone(), STEPS + 1, DIM, 2.0),
        NoiseStream::builder(recursion.clone(), STEPS, DIM + 1, 2.0).shard(Shard::of_range(0..DIM as u64)),
        NoiseStream::builder(recursion.clone(), STEPS, DIM, 2.000001),
    ];
    for other in others {
        let message = other.resume(&path).unwrap_err().to_string();
        assert!(message.contains("written for another"), "{message}");
    }
    assert!(builder(&recursion).resume(&path).is_ok());
    assert!(matches!(builder(&recursion).resume(folder.path().join("absent")), Err(Error::Io { .. })));
}

/// Earlier versions made other normals, or rounded them differently: noise resumed from them would not cancel
/// the noise already used.
#[test]
fn a_checkpoint_of_other_normals_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("noise.safetensors");
    let builder = saved(&path);
    let mut bytes = std::fs::read(&path).unwrap();
    let version = b"antinoise-noise 4";
    let at = bytes.windows(version.len()).position(|part| part == version).unwrap();
    bytes[at + version.len() - 1] = b'1';
    std::fs::write(&path, bytes).unwrap();
    let message = builder.resume(&path).unwrap_err().to_string();
    assert!(message.contains("its version is \"antinoise-noise 1\""), "{message}");
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_a_checkpoint_and_a_failed_one_leaves_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("noise.safetensors");
    saved(&path);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let stream = NoiseStream::new(Recursion::Independent, 1, 1, 1.0, Key::from_seed_insecure(1)).unwrap();
    assert!(matches!(stream.save(folder.path().join("no/such/folder")), Err(Error::Io { .. })));
    let target = folder.path().join("occupied");
    std::fs::create_dir(&target).unwrap();
    assert!(stream.save(&target).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}
