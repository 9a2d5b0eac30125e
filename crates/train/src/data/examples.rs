use antinoise_input::InvalidParameter;
use sha2::{Digest, Sha256};

/// Height, width and channels of an image; a pixel's channels lie side by side in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageShape {
    /// Rows of pixels.
    pub height: usize,
    /// Pixels in a row.
    pub width: usize,
    /// Numbers in a pixel.
    pub channels: usize,
}

impl ImageShape {
    /// A row of numbers that are no image: what a table has.
    ///
    /// ```
    /// use antinoise_train::data::ImageShape;
    /// assert_eq!(ImageShape::row(20).len(), 20);
    /// ```
    pub fn row(numbers: usize) -> Self {
        Self { height: 1, width: 1, channels: numbers }
    }

    /// Where the channels of a pixel start in the image.
    pub(crate) fn at(&self, row: usize, column: usize) -> usize {
        (row * self.width + column) * self.channels
    }

    /// Numbers in one image: height x width x channels.
    ///
    /// ```
    /// use antinoise_train::data::ImageShape;
    /// assert_eq!(ImageShape { height: 28, width: 28, channels: 1 }.len(), 784);
    /// ```
    pub fn len(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// True when the shape holds no number.
    ///
    /// ```
    /// use antinoise_train::data::ImageShape;
    /// assert!(!ImageShape { height: 8, width: 8, channels: 1 }.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One example, as a model sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Example<'a> {
    /// Its numbers.
    pub features: &'a [f32],
    /// Its class, or whatever the model takes it for.
    pub label: u32,
}

/// Examples in order: features row by row, one label each.
#[derive(Debug, Clone, PartialEq)]
pub struct Examples {
    features: Vec<f32>,
    labels: Vec<u32>,
    features_each: usize,
}

impl Examples {
    /// Examples whose features, `features_each` numbers for each label, lie one after the other.
    ///
    /// ```
    /// let examples = antinoise_train::data::Examples::new(vec![0.0, 1.0, 2.0, 3.0], vec![1, 0], 2)?;
    /// assert_eq!(examples.features(1), [2.0, 3.0]);
    /// # Ok::<(), antinoise_input::InvalidParameter>(())
    /// ```
    ///
    /// # Errors
    /// When `features_each` is 0 or `features` is not `labels.len() * features_each` long.
    pub fn new(features: Vec<f32>, labels: Vec<u32>, features_each: usize) -> Result<Self, InvalidParameter> {
        antinoise_input::at_least("features_each", features_each, 1)?;
        if labels.len().checked_mul(features_each) != Some(features.len()) {
            let must_be = format!("{} labels times {features_each}", labels.len());
            return Err(InvalidParameter::new("number of features", features.len(), must_be));
        }
        Ok(Self { features, labels, features_each })
    }

    /// How many examples there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// True when there is no example.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The features of example `index`.
    ///
    /// # Panics
    /// Unless `index < self.len()`.
    pub fn features(&self, index: usize) -> &[f32] {
        &self.features[index * self.features_each..][..self.features_each]
    }

    /// The example at `index`.
    ///
    /// # Panics
    /// When there is none.
    pub fn example(&self, index: usize) -> Example<'_> {
        Example { features: self.features(index), label: self.labels[index] }
    }

    /// Numbers in one example.
    pub fn features_each(&self) -> usize {
        self.features_each
    }

    /// Features and labels.
    pub(crate) fn into_parts(self) -> (Vec<f32>, Vec<u32>) {
        (self.features, self.labels)
    }

    /// SHA-256 of their number, the labels and the features, little-endian: what a checkpoint holds to know its data
    /// again.
    ///
    /// ```
    /// use antinoise_train::data::Examples;
    /// let [one, other] = [1.0, 2.0].map(|feature| Examples::new(vec![feature], vec![0], 1).unwrap());
    /// assert_ne!(one.sha256(), other.sha256());
    /// ```
    pub fn sha256(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        digest.update((self.len() as u64).to_le_bytes());
        self.labels.iter().for_each(|label| digest.update(label.to_le_bytes()));
        let mut bytes = Vec::new();
        for features in self.features.chunks(self.features_each) {
            bytes.clear();
            features.iter().for_each(|x| bytes.extend_from_slice(&x.to_le_bytes()));
            digest.update(&bytes);
        }
        digest.finalize().into()
    }

    /// One label an example, in `0..classes`.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }
}

/// A classification problem: examples to train on, which are private, and examples to test with.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// What the data are called in a report.
    pub name: String,
    /// The shape that the features of one example have.
    pub shape: ImageShape,
    /// Labels are in `0..classes`.
    pub classes: usize,
    /// The private examples.
    pub train: Examples,
    /// The examples that measure accuracy; never trained on.
    pub test: Examples,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_and_labels_must_agree() {
        assert!(Examples::new(vec![0.0; 6], vec![0; 3], 2).is_ok());
        assert!(Examples::new(vec![0.0; 5], vec![0; 3], 2).is_err());
        assert!(Examples::new(vec![], vec![], 0).is_err());
        assert!(Examples::new(vec![], vec![0; 2], usize::MAX).is_err());
    }
}
