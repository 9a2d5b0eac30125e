//! The mechanism under audit as a black box, with its inputs and outputs.

use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(feature = "train")]
use antinoise_train::{data::Examples, data::ImageShape, model::Model};

use crate::Error;

/// Examples and their gradients, which the audit chooses as an adversary who knows everything except the
/// noise.
///
/// The gradients are those of logistic regression of two classes: each example's gradient is determined by
/// its features and its label.
#[derive(Debug)]
pub struct AuditInputs {
    features_each: usize,
    parameters: Vec<f32>,
    features: Vec<f32>,
    labels: Vec<u32>,
    #[cfg(feature = "train")]
    of_train: (Model, Examples),
    number: u64,
}

/// Number of [`AuditInputs`] values that were created so far.
static CREATED: AtomicU64 = AtomicU64::new(0);

impl AuditInputs {
    /// Creates inputs; `parameters` are the weights of class 0 and of class 1, followed by both biases.
    pub(crate) fn new(
        features_each: usize,
        parameters: Vec<f32>,
        features: Vec<f32>,
        labels: Vec<u32>,
    ) -> Result<Self, Error> {
        #[cfg(feature = "train")]
        let of_train =
            (linear_model(features_each)?, Examples::new(features.clone(), labels.clone(), features_each)?);
        Ok(Self {
            features_each,
            parameters,
            features,
            labels,
            #[cfg(feature = "train")]
            of_train,
            number: CREATED.fetch_add(1, Ordering::Relaxed),
        })
    }

    /// Number of coordinates of a gradient, and of a noisy sum.
    pub fn dim(&self) -> usize {
        self.parameters.len()
    }

    /// Number of examples.
    #[allow(clippy::len_without_is_empty, reason = "there are always some")]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// The gradient of an example before clipping: (p - e_label) (x) (features, 1), where p are the
    /// probabilities of the two classes. It may not be finite.
    pub fn gradient(&self, example: usize) -> Vec<f32> {
        let x = &self.features[example * self.features_each..][..self.features_each];
        let (weights, biases) = self.parameters.split_at(2 * self.features_each);
        let logit = |class: usize| -> f64 {
            let row = weights[class * self.features_each..][..self.features_each].iter();
            let products = row.zip(x).map(|(&w, &x)| f64::from(w) * f64::from(x));
            products.sum::<f64>() + f64::from(biases[class])
        };
        let share = 1.0 / (1.0 + (logit(1) - logit(0)).exp());
        let slope = share - f64::from(u8::from(self.labels[example] == 0));
        let row = |sign: f64| x.iter().map(move |&x| sign * slope * f64::from(x));
        row(1.0).chain(row(-1.0)).chain([slope, -slope]).map(|x| x as f32).collect()
    }

    /// The model, its parameters and the examples, for a mechanism that computes gradients itself.
    #[cfg(feature = "train")]
    pub fn model(&self) -> (&Model, &[f32], &Examples) {
        (&self.of_train.0, &self.parameters, &self.of_train.1)
    }

    /// A number that identifies the inputs within the process.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

/// Logistic regression of two classes on `features` features.
#[cfg(feature = "train")]
pub(crate) fn linear_model(features: usize) -> Result<Model, Error> {
    Ok(Model::logistic(ImageShape { height: 1, width: features, channels: 1 }, 2)?)
}

/// A mechanism under audit: it clips and sums gradients, and adds noise to the sums.
pub trait Mechanism {
    /// The sum of the clipped [gradients](AuditInputs::gradient) of a batch, to which the noise is added.
    ///
    /// # Errors
    /// If it cannot be computed.
    fn sum(&mut self, inputs: &AuditInputs, batch: &[usize]) -> Result<Vec<f64>, Error>;

    /// Starts run number `run` over `dim` coordinates, which are divided among `processes` processes. Runs
    /// are independent of each other; the number of processes does not change a bit of a noisy sum.
    ///
    /// # Errors
    /// If the mechanism cannot be built.
    fn begin(&mut self, run: u64, dim: usize, processes: usize) -> Result<(), Error>;

    /// Whether runs with the same number have the same noise, so that they can be compared bit by bit. Return
    /// false for a mechanism that uses a new key for each run.
    fn repeats(&self) -> bool {
        true
    }

    /// Ends every process of the run, and starts new ones that continue from saved files. This must change no
    /// bit of later noisy sums.
    ///
    /// # Errors
    /// If a state cannot be saved or resumed.
    fn interrupt(&mut self) -> Result<(), Error>;

    /// The noisy sum of the run's next step: the sum over `batch`, plus noise.
    ///
    /// # Errors
    /// If there is no further step.
    fn noisy_sum(&mut self, inputs: &AuditInputs, batch: &[usize]) -> Result<Vec<f64>, Error>;
}
