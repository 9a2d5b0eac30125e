//! Folders of PNG images.

use antinoise_input::BadInput;
use antinoise_train::data::images;

use crate::files::{folder, write};

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// The first byte says whether the checksums of chunks are made right; the rest is an image, next to other
/// images.
pub fn run(data: &[u8]) -> bool {
    let Some((&kind, bytes)) = data.split_first() else { return false };
    let mut bytes = bytes.to_vec();
    if kind & 1 == 1 {
        mend(&mut bytes);
    }
    let root = folder("png");
    for place in ["train/a", "train/b", "test/b"] {
        write(&folder("png").join(place).join("1.png"), {
            std::fs::create_dir_all(root.join(place)).expect("a folder");
            &bytes
        });
    }
    match images(&root) {
        Ok(found) => {
            let features = found.train.features(0);
            assert_eq!(features.len(), found.shape.len());
            assert!(features.iter().all(|x| (0.0..=1.0).contains(x)));
        }
        Err(error) => assert!(error.is_bad_input(), "{error:?}"),
    }
    true
}

/// Each chunk: its length, its name and data, and their checksum.
fn mend(bytes: &mut [u8]) {
    let mut at = SIGNATURE.len();
    while let Some(head) = bytes.get(at..at + 4) {
        let length = u32::from_be_bytes(head.try_into().expect("4 bytes")) as usize;
        let Some(data) = bytes.get(at + 4..at + 8 + length) else { return };
        let checksum = crc32(data).to_be_bytes();
        let Some(place) = bytes.get_mut(at + 8 + length..at + 12 + length) else { return };
        place.copy_from_slice(&checksum);
        at += 12 + length;
    }
}

pub fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| crc >> 1 ^ (0xedb8_8320 & 0u32.wrapping_sub(crc & 1)))
    })
}

/// Two by two pixels, with data that are stored and not deflated.
fn image(color: u8, bits: u8) -> Vec<u8> {
    let channels = [1, 0, 3, 1, 2, 0, 4][color as usize];
    let row = 1 + (2 * channels * bits as usize).div_ceil(8);
    let pixels: Vec<u8> = (0..2 * row).map(|i| if i % row == 0 { 0 } else { (37 * i % 256) as u8 }).collect();
    let length = pixels.len() as u16;
    let (a, b) = pixels.iter().fold((1u32, 0u32), |(a, b), &byte| {
        let a = (a + u32::from(byte)) % 65521;
        (a, (b + a) % 65521)
    });
    let mut packed = vec![0x78, 1, 1];
    packed.extend([length.to_le_bytes(), (!length).to_le_bytes()].concat());
    packed.extend(&pixels);
    packed.extend((b << 16 | a).to_be_bytes());
    let mut file = SIGNATURE.to_vec();
    let header = [&2u32.to_be_bytes()[..], &2u32.to_be_bytes(), &[bits, color, 0, 0, 0]].concat();
    let palette: Vec<u8> = (0..12).collect();
    let chunks = [(b"IHDR", &header[..]), (b"PLTE", &palette), (b"IDAT", &packed), (b"IEND", &[])];
    for (name, data) in chunks.iter().filter(|chunk| color == 3 || chunk.0 != b"PLTE") {
        file.extend((data.len() as u32).to_be_bytes());
        file.extend(*name);
        file.extend(*data);
        file.extend([0; 4]);
    }
    mend(&mut file);
    file
}

pub fn seeds() -> Vec<Vec<u8>> {
    [(0, 1), (0, 8), (0, 16), (2, 8), (3, 2), (4, 8), (6, 8)]
        .map(|(color, bits)| [&[1], &image(color, bits)[..]].concat())
        .into()
}
