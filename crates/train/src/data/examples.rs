use antinoise_input::InvalidParameter;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::users::Users;

/// Height, width and channels of an image; a pixel's channels are adjacent in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageShape {
    /// Rows of pixels.
    pub height: usize,
    /// Pixels in a row.
    pub width: usize,
    /// Numbers in a pixel.
    pub channels: usize,
}

impl ImageShape {
    /// The shape of a row of numbers, such as the row of a table.
    ///
    /// ```
    /// use antinoise_train::data::ImageShape;
    /// assert_eq!(ImageShape::row(20).len(), 20);
    /// ```
    pub fn row(numbers: usize) -> Self {
        Self { height: 1, width: 1, channels: numbers }
    }

    /// Index of the first channel of a pixel.
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

    /// Norm of an image's part that varies from image to image, for [`crate::trainer::default_rate`]:
    /// sqrt(0.02 numbers). Numbers are from 0 to 1, with a mean square of about 0.2; nine tenths of it are
    /// common to images or to neighbouring pixels, and training corrects noise along these few directions.
    ///
    /// ```
    /// use antinoise_train::data::ImageShape;
    /// assert!((ImageShape { height: 10, width: 5, channels: 1 }.input_norm() - 1.0).abs() < 1e-15);
    /// ```
    pub fn input_norm(&self) -> f64 {
        (0.02 * self.len() as f64).sqrt()
    }

    /// Whether the shape holds no number.
    ///
    /// ```
    /// use antinoise_train::data::ImageShape;
    /// assert!(!ImageShape { height: 8, width: 8, channels: 1 }.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One example, the input of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Example<'a> {
    /// The features.
    pub features: &'a [f32],
    /// The class, or another target that the model defines.
    pub label: u32,
}

/// Examples in order: features row by row, and one label per example.
#[derive(Debug, Clone, PartialEq)]
pub struct Examples {
    features: Vec<f32>,
    labels: Vec<u32>,
    features_each: usize,
    /// Every sum checks it, of one user's examples too: the search for it would take longer than the sum.
    largest_label: Option<u32>,
}

impl Examples {
    /// Examples from concatenated features, `features_each` numbers per label.
    ///
    /// ```
    /// let examples = antinoise_train::data::Examples::new(vec![0.0, 1.0, 2.0, 3.0], vec![1, 0], 2)?;
    /// assert_eq!(examples.features(1), [2.0, 3.0]);
    /// # Ok::<(), antinoise_input::InvalidParameter>(())
    /// ```
    ///
    /// # Errors
    /// If `features_each` is 0 or `features` does not have `labels.len() * features_each` numbers.
    pub fn new(features: Vec<f32>, labels: Vec<u32>, features_each: usize) -> Result<Self, InvalidParameter> {
        antinoise_input::at_least("features_each", features_each, 1)?;
        if labels.len().checked_mul(features_each) != Some(features.len()) {
            let must_be = format!("{} labels times {features_each}", labels.len());
            return Err(InvalidParameter::new("number of features", features.len(), must_be));
        }
        let largest_label = labels.iter().copied().max();
        Ok(Self { features, labels, features_each, largest_label })
    }

    /// Number of examples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is no example.
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
    /// Unless `index < self.len()`.
    pub fn example(&self, index: usize) -> Example<'_> {
        Example { features: self.features(index), label: self.labels[index] }
    }

    /// The largest label, if there is an example.
    pub(crate) fn largest_label(&self) -> Option<u32> {
        self.largest_label
    }

    /// Features of one example.
    pub fn features_each(&self) -> usize {
        self.features_each
    }

    /// The examples at `rows`, in that order.
    pub(crate) fn selected(&self, rows: &[usize]) -> Self {
        let features = rows.iter().flat_map(|&row| self.features(row)).copied().collect();
        let labels: Vec<u32> = rows.iter().map(|&row| self.labels[row]).collect();
        let largest_label = labels.iter().copied().max();
        Self { features, labels, features_each: self.features_each, largest_label }
    }

    /// SHA-256 of the number of examples, the labels and the features, little-endian: checkpoints identify
    /// their data by it.
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

    /// The labels, one per example, in `0..classes`.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }
}

/// A classification problem: private examples for training, and examples for testing.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// The name of the data in a report.
    pub name: String,
    /// The shape of one example's features.
    pub shape: ImageShape,
    /// The number of classes; labels are in `0..classes`.
    pub classes: usize,
    /// The name of each class, in the order of labels.
    pub class_names: Vec<String>,
    /// The private examples.
    pub train: Examples,
    /// The user of each private example, if users are protected; `None` if examples are.
    pub users: Option<Users>,
    /// The examples that measure accuracy; never used for training.
    pub test: Examples,
}

impl Dataset {
    /// Number of units that a plan counts: users if the data set has them, else training examples.
    ///
    /// ```
    /// use antinoise_train::data::{Dataset, Users, digits};
    /// let writers: Vec<String> = (0..1440).map(|example| format!("writer {}", example / 36)).collect();
    /// let users = Users::new(writers.iter().map(String::as_str))?;
    /// assert_eq!((digits().units(), Dataset { users: Some(users), ..digits() }.units()), (1440, 40));
    /// # Ok::<(), antinoise_input::InvalidParameter>(())
    /// ```
    pub fn units(&self) -> usize {
        self.users.as_ref().map_or(self.train.len(), Users::len)
    }
}

/// Names for classes that have only numbers: the numbers as text.
///
/// ```
/// assert_eq!(antinoise_train::data::numbered_classes(3), ["0", "1", "2"]);
/// ```
pub fn numbered_classes(classes: usize) -> Vec<String> {
    (0..classes).map(|class| class.to_string()).collect()
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
