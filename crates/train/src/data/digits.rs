use std::io::Read;

use flate2::read::GzDecoder;

use super::examples::{Dataset, Examples, ImageShape, numbered_classes};

const PACKED: &[u8] = include_bytes!("../../data/digits.bin.gz");
const EXAMPLES: usize = 1797;
const TRAIN: usize = 1440;
const SHAPE: ImageShape = ImageShape { height: 8, width: 8, channels: 1 };
const FULL_INK: f32 = 16.0;

/// The UCI handwritten digits, embedded: 1,797 images of 8x8 in 10 classes, features in \[0, 1\].
///
/// The first 1,440 examples are for training, the last 357 for testing.
///
/// # Source
/// E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository,
/// CC BY 4.0; see `data/ATTRIBUTION.md` in this crate.
///
/// ```
/// let digits = antinoise_train::data::digits();
/// assert_eq!((digits.train.len(), digits.test.len(), digits.classes), (1440, 357, 10));
/// ```
pub fn digits() -> Dataset {
    let mut raw = Vec::with_capacity(EXAMPLES * (SHAPE.len() + 1));
    GzDecoder::new(PACKED).read_to_end(&mut raw).expect("the embedded file is whole");
    let (ink, labels) = raw.split_at(EXAMPLES * SHAPE.len());
    let part = |from: usize, to: usize| {
        let features = ink[from * SHAPE.len()..to * SHAPE.len()].iter().map(|&x| f32::from(x) / FULL_INK);
        let labels = labels[from..to].iter().map(|&label| label.into());
        Examples::new(features.collect(), labels.collect(), SHAPE.len()).expect("one row a label")
    };
    Dataset {
        name: "digits".into(),
        shape: SHAPE,
        classes: 10,
        class_names: numbered_classes(10),
        train: part(0, TRAIN),
        users: None,
        test: part(TRAIN, EXAMPLES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_file_holds_what_the_csv_file_holds() {
        let digits = digits();
        let labels: Vec<u32> = [digits.train.labels(), digits.test.labels()].concat();
        let counts: Vec<usize> =
            (0..10).map(|class| labels.iter().filter(|&&l| l == class).count()).collect();
        assert_eq!(counts, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
        // The first line of the CSV file: 0,0,5,13,9,1,0,0, 0,0,13,15,10,15,5,0, ... 0.
        let first: Vec<f32> = digits.train.features(0)[..16].iter().map(|x| x * FULL_INK).collect();
        assert_eq!(first, [0., 0., 5., 13., 9., 1., 0., 0., 0., 0., 13., 15., 10., 15., 5., 0.]);
        assert_eq!(labels[..5], [0, 1, 2, 3, 4]);
    }
}
