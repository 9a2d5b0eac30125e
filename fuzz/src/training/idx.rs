//! Images in MNIST's format.

use antinoise_input::BadInput;
use antinoise_train::data::idx;

use crate::files::{folder, write};

/// Two bytes, how long the file of images is; then that and the file of labels, to train on and to test with.
pub fn run(data: &[u8]) -> bool {
    let Some((length, bytes)) = data.split_first_chunk() else { return false };
    let length = usize::from(u16::from_le_bytes(*length)).min(bytes.len());
    let (images, labels) = bytes.split_at(length);
    let folder = folder("idx");
    for part in ["train", "t10k"] {
        write(&folder.join(format!("{part}-images-idx3-ubyte")), images);
        write(&folder.join(format!("{part}-labels-idx1-ubyte")), labels);
    }
    match idx(&folder) {
        Ok(found) => {
            let (each, train) = (found.shape.len(), &found.train);
            // Unless they are packed.
            assert!(train.len() * each + 16 == images.len() || images.starts_with(&[0x1f, 0x8b]));
            assert!((0..train.len()).all(|i| train.features(i).iter().all(|x| (0.0..=1.0).contains(x))));
            assert!(train.labels().iter().all(|&label| (label as usize) < found.classes));
        }
        Err(error) => assert!(error.is_bad_input(), "{error:?}"),
    }
    true
}

pub fn seeds() -> Vec<Vec<u8>> {
    let header = |magic: u32, sizes: &[u32]| -> Vec<u8> {
        [&[magic], sizes].concat().iter().flat_map(|word| word.to_be_bytes()).collect()
    };
    let images = [header(0x0803, &[3, 2, 2]), (0..12).map(|i| i * 20).collect()].concat();
    let labels = [header(0x0801, &[3]), vec![0, 1, 2]].concat();
    // Stored, not deflated: `printf ... | gzip -0`.
    let packed = {
        let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
        let length = labels.len() as u16;
        packed.extend([length.to_le_bytes(), (!length).to_le_bytes()].concat());
        packed.extend(&labels);
        packed.extend(crate::training::png::crc32(&labels).to_le_bytes());
        packed.extend(u32::from(length).to_le_bytes());
        packed
    };
    let length = (images.len() as u16).to_le_bytes();
    [labels, packed].map(|labels| [&length, &images[..], &labels].concat()).into()
}
