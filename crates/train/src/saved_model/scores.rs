//! Scores of predictions: accuracy, and the calibration of their probabilities.

use antinoise_input::{InvalidParameter, at_least};
use serde::Serialize;

/// Bins of equal width of the probability of the predicted class, in the calibration error.
const BINS: usize = 15;

/// The prediction of a model for one example.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Prediction {
    /// The index of the most probable class; the first if there are several.
    pub class: usize,
    /// The probability of each class, in their order.
    pub probabilities: Vec<f64>,
}

/// Predictions compared with labels.
///
/// They are functions of the labelled examples without noise: of private examples, no privacy statement
/// covers them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Scores {
    /// Share of examples whose most probable class is their label.
    pub accuracy: f64,
    /// Standard error of the accuracy p over draws of n examples: sqrt(p (1 - p) / n).
    pub standard_error: f64,
    /// Number of examples.
    pub examples: usize,
    /// Share of examples with the most frequent label: the accuracy of always predicting that class.
    pub largest_class_share: f64,
    /// Mean cross entropy, in nats; infinite where a label has probability 0.
    pub loss: f64,
    /// Expected calibration error: the mean over examples of |accuracy - probability of the predicted class|
    /// in their bin, one of 15 bins of that probability.
    ///
    /// # Source
    /// Guo, Pleiss, Sun and Weinberger, "On calibration of modern neural networks" (2017), equation 3.
    pub expected_calibration_error: f64,
    /// Counts by label (rows) and predicted class (columns).
    pub confusion: Vec<Vec<u64>>,
}

impl Scores {
    /// The scores of predictions for examples with these labels, below `classes`.
    pub(super) fn new(
        predictions: &[Prediction],
        labels: &[u32],
        classes: usize,
    ) -> Result<Self, InvalidParameter> {
        let examples = at_least("number of examples", predictions.len(), 1)?;
        let mut confusion = vec![vec![0; classes]; classes];
        let mut bins = [(0.0, 0.0); BINS];
        let mut loss = 0.0;
        for (prediction, &label) in predictions.iter().zip(labels) {
            let label = label as usize;
            confusion[label][prediction.class] += 1;
            let probability = prediction.probabilities[prediction.class];
            let bin = &mut bins[((probability * BINS as f64) as usize).min(BINS - 1)];
            bin.0 += f64::from(u8::from(label == prediction.class));
            bin.1 += probability;
            loss -= prediction.probabilities[label].ln();
        }
        let count = examples as f64;
        let right: u64 = (0..classes).map(|class| confusion[class][class]).sum();
        let largest = confusion.iter().map(|row| row.iter().sum::<u64>()).max().unwrap_or(0);
        let accuracy = right as f64 / count;
        Ok(Self {
            accuracy,
            standard_error: (accuracy * (1.0 - accuracy) / count).sqrt(),
            examples,
            largest_class_share: largest as f64 / count,
            loss: loss / count,
            expected_calibration_error: bins.iter().map(|(right, sum)| (right - sum).abs()).sum::<f64>()
                / count,
            confusion,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_those_of_a_few_predictions_by_hand() {
        let says = |class: usize, first: f64| Prediction { class, probabilities: vec![first, 1.0 - first] };
        let predictions = [says(0, 0.9), says(0, 0.9), says(1, 0.2), says(1, 0.4)];
        let scores = Scores::new(&predictions, &[0, 1, 1, 1], 2).unwrap();
        assert_eq!((scores.accuracy, scores.examples, scores.largest_class_share), (0.75, 4, 0.75));
        assert_eq!(scores.confusion, [[1, 0], [1, 2]]);
        assert!((scores.standard_error - (0.75f64 * 0.25 / 4.0).sqrt()).abs() < 1e-15);
        // Bins of 0.9: |1 - 1.8|; of 0.8: |1 - 0.8|; of 0.6: |1 - 0.6|.
        assert!((scores.expected_calibration_error - (0.8 + 0.2 + 0.4) / 4.0).abs() < 1e-12);
        let loss = -(0.9f64.ln() + 0.1f64.ln() + 0.8f64.ln() + 0.6f64.ln()) / 4.0;
        assert!((scores.loss - loss).abs() < 1e-12);
        assert!(Scores::new(&[], &[], 2).is_err());
    }
}
