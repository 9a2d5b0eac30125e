//! Files in MNIST's format: valid files are read, and errors name what is wrong.

use std::fs;
use std::io::Write;
use std::path::Path;

use antinoise_input::BadInput;
use antinoise_train::data::{ImageShape, idx};
use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use tempfile::TempDir;

const FILES: [&str; 4] = [
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
];

fn images(count: u32, height: u32, width: u32) -> Vec<u8> {
    let pixels = (0..count * height * width).map(|i| (i % 256) as u8);
    [0x0803, count, height, width].into_iter().flat_map(u32::to_be_bytes).chain(pixels).collect()
}

fn labels(labels: &[u8]) -> Vec<u8> {
    let header = [0x0801, labels.len() as u32].into_iter().flat_map(u32::to_be_bytes);
    header.chain(labels.iter().copied()).collect()
}

fn contents() -> [Vec<u8>; 4] {
    [images(4, 2, 3), labels(&[0, 1, 2, 1]), images(2, 2, 3), labels(&[2, 0])]
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A folder with the four files after `change` modified their contents.
fn folder(change: impl FnOnce(&mut [Vec<u8>; 4])) -> TempDir {
    let mut contents = contents();
    change(&mut contents);
    let folder = TempDir::new().unwrap();
    for (name, bytes) in FILES.iter().zip(contents) {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

fn refusal(folder: &Path) -> String {
    let error = idx(folder).unwrap_err();
    assert!(error.is_bad_input(), "{error:?}");
    error.to_string()
}

#[test]
fn plain_and_gzipped_files_hold_the_same_data() {
    let plain = folder(|_| ());
    let dataset = idx(plain.path()).unwrap();
    assert_eq!(dataset.shape, ImageShape { height: 2, width: 3, channels: 1 });
    assert_eq!((dataset.classes, dataset.train.len(), dataset.test.len()), (3, 4, 2));
    assert_eq!(dataset.train.labels(), [0, 1, 2, 1]);
    assert_eq!(dataset.train.features(1), [6, 7, 8, 9, 10, 11].map(|byte| byte as f32 / 255.0));
    let packed = TempDir::new().unwrap();
    for (name, bytes) in FILES.iter().zip(contents()) {
        fs::write(packed.path().join(format!("{name}.gz")), gzip(&bytes)).unwrap();
    }
    let unpacked = idx(packed.path()).unwrap();
    assert_eq!((unpacked.train, unpacked.test), (dataset.train, dataset.test));
}

#[test]
fn an_absent_file_is_named() {
    for name in FILES {
        let folder = folder(|_| ());
        fs::remove_file(folder.path().join(name)).unwrap();
        let message = refusal(folder.path());
        assert!(message.contains(name) && message.contains("absent"), "{message}");
    }
    assert!(refusal("no/such/folder".as_ref()).contains("no/such/folder"));
}

#[test]
fn every_truncation_of_every_file_is_refused() {
    for (file, name) in FILES.iter().enumerate() {
        let whole = contents()[file].clone();
        for length in 0..whole.len() {
            let folder = folder(|contents| contents[file].truncate(length));
            let message = refusal(folder.path());
            assert!(message.contains(name), "{message}");
        }
        let packed = gzip(&whole);
        for length in [0, 1, 2, 5, 15, packed.len() / 2, packed.len() - 1] {
            let folder = folder(|contents| contents[file] = packed[..length].to_vec());
            let message = refusal(folder.path());
            assert!(message.contains(name), "{message}");
        }
    }
}

#[test]
fn wrong_contents_are_refused_with_the_reason() {
    type Change = fn(&mut [Vec<u8>; 4]);
    let cases: [(&str, Change); 10] = [
        ("magic number 0x00000801 but must be magic number 0x00000803", |c| c[0] = labels(&[0; 30])),
        ("magic number 0x00000803 but must be magic number 0x00000801", |c| c[3] = images(2, 2, 3)),
        ("magic number 0x00000d03", |c| c[0][2] = 0x0d),
        ("longer but must be 24 bytes long", |c| c[0].push(0)),
        ("dimensions [0, 2, 3]", |c| c[0] = images(0, 2, 3)),
        ("dimensions [4294967295, 4294967295, 4294967295]", |c| c[0][4..16].fill(0xff)),
        ("3 labels but must be 4 labels", |c| c[1] = labels(&[0, 1, 2])),
        ("3x2 but must be 2x3", |c| c[2] = images(2, 3, 2)),
        ("1 classes but must be at least 2", |c| c[1] = labels(&[0; 4])),
        ("label 3 but must be labels below 3", |c| c[3] = labels(&[3, 0])),
    ];
    for (expected, change) in cases {
        let folder = folder(change);
        let message = refusal(folder.path());
        assert!(message.contains(expected), "{message}");
    }
}

proptest! {
    /// Any file is read or refused.
    #[test]
    fn no_bytes_make_it_panic(
        file in 0..4usize,
        at in 0..40usize,
        bytes in proptest::collection::vec(any::<u8>(), 0..24),
        packed in any::<bool>(),
    ) {
        let folder = folder(|contents| {
            let file = &mut contents[file];
            if packed {
                *file = gzip(file);
            }
            let at = at.min(file.len());
            let end = (at + bytes.len()).min(file.len());
            file.splice(at..end, bytes);
        });
        if let Err(error) = idx(folder.path()) {
            prop_assert!(error.is_bad_input(), "{error:?}");
        }
    }
}
