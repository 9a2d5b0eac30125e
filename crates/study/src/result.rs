//! The result of a study: one type that is serialised, printed and drawn.

use std::path::PathBuf;

use antinoise_accounting::PrivacyStatement;
use antinoise_mechanism::PrivacyUnit;
use antinoise_plan::ByExamples;
use serde::{Serialize, Serializer};

use crate::audit::Audited;
use crate::clip_by::ClipBy;
use crate::named::Baseline;
use crate::results::{accuracy_error, edge, mean_and_error};
use crate::tested::Tested;

/// The warning of a page or a card whose noise came from a seed.
pub(crate) const NOT_PRIVATE: &str = "The noise came from a seed, which can be subtracted by anyone who knows it: this model is not private, and none of the following holds.";

/// The results of all mechanisms, and the files that were written.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct StudyResult {
    /// The result of each mechanism; the later ones are compared with the first.
    pub runs: Vec<MechanismResult>,
    /// The file of the report.
    pub report: PathBuf,
    /// The folder of the model to give away.
    pub model: PathBuf,
    /// Share of the test examples with the most frequent label, or of the most frequent character.
    pub largest_class_share: f64,
    /// The default learning rate, which costs no privacy; none if rates were given.
    pub default_learning_rate: Option<f64>,
    /// A description of the model in that folder.
    #[serde(skip)]
    pub model_is: String,
    /// The model and the data.
    #[serde(skip)]
    pub title: String,
    /// Trainings on the same data that epsilon does not cover.
    #[serde(skip)]
    pub uncovered: Option<String>,
    /// The examples or characters that test accuracies are shares of.
    #[serde(skip)]
    pub tested: Tested,
    /// Whether the data are a table, a column of which may name persons.
    #[serde(skip)]
    pub is_of_table: bool,
}

/// A mechanism's result at its best learning rate, averaged over repeats.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct MechanismResult {
    /// The name of the mechanism.
    pub mechanism: String,
    /// The kind of baseline, if the mechanism is one.
    pub baseline: Option<Baseline>,
    /// Mean test accuracy over repeats, in \[0, 1\].
    pub test_accuracy: f64,
    /// Standard error of the mean test accuracy over repeats; `None` for a single run.
    pub standard_error: Option<f64>,
    /// The examples or characters that test accuracies are shares of.
    #[serde(skip)]
    pub tested: Tested,
    /// The privacy of the models; `None`, with these keys null, for training without privacy.
    #[serde(flatten, serialize_with = "or_null")]
    pub private: Option<PrivateResult>,
    /// Number of steps.
    pub steps: usize,
    /// Mean time of a training.
    pub seconds: f64,
    /// The part of it that made and added noise.
    pub seconds_in_noise: f64,
    /// The best learning rate.
    pub learning_rate: f64,
    /// Test accuracy of each repeat.
    pub test_accuracies: Vec<f64>,
    /// Mean accuracy over repeats, after each tested step.
    pub accuracy_by_step: Vec<Accuracy>,
    /// Mean accuracy at each learning rate tried.
    pub by_learning_rate: Vec<(f64, f64)>,
    /// How many models of this mechanism were trained.
    pub models_trained: usize,
}

/// The part of a result that only private training has.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct PrivateResult {
    /// Epsilon of all published models together.
    pub epsilon: f64,
    /// Delta of the plan.
    pub delta: f64,
    /// The workload for which the mechanism was designed and chosen.
    pub workload: String,
    /// Root mean square of the noise in the workload's queries on the mean gradients, in a coordinate.
    pub rms_loss: f64,
    /// The privacy unit: an example, or a user with all of their examples.
    pub unit: PrivacyUnit,
    /// The epsilon of one model for persons with several examples; empty where users are the unit.
    pub epsilon_by_examples: Vec<ByExamples>,
    /// How many models epsilon covers.
    pub models_published: usize,
    /// grid or plain.
    pub release: &'static str,
    /// Part of a gradient that was clipped as one.
    pub clip_by: ClipBy,
    /// The clip norm of each part of a gradient that was clipped separately.
    pub clip_norms: Vec<f64>,
    /// The lower bound on epsilon from a training with canaries, if that was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audited>,
    /// Whether the noise came from a seed, so that the privacy statement does not hold.
    pub insecure_seed: bool,
    /// The curves of a report.
    #[serde(skip)]
    pub figures: MechanismFigures,
    /// The privacy statement of the published models.
    #[serde(skip)]
    pub statement: PrivacyStatement,
}

/// The curves that a report draws for a mechanism; series are indexed by step from 0.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MechanismFigures {
    /// Standard deviation, in a coordinate, of the sum of the noise in the mean gradients up to each step.
    pub prefix_errors: Vec<f64>,
    /// First column of C: its entries on the diagonal and below.
    pub strategy: Vec<f64>,
    /// First column of C^-1.
    pub noise_correlating: Vec<f64>,
    /// The epsilon of the first steps alone, for several numbers of steps; empty if it could not be computed.
    pub spent: Vec<(usize, f64)>,
    /// The noise multiplier sigma.
    pub noise_multiplier: f64,
    /// sens(C, Pi) under the adjacency.
    pub sensitivity: f64,
}

/// The test accuracy after a step, averaged over repeats.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Accuracy {
    /// Number of steps done.
    pub step: usize,
    /// Mean accuracy, in \[0, 1\].
    pub mean: f64,
    /// Standard error of the mean; `None` for a single run.
    pub standard_error: Option<f64>,
}

/// The keys of [`PrivateResult`] for training without privacy, with null or empty values, so that every row
/// has the same keys.
#[derive(Serialize, Default)]
struct NotPrivate {
    epsilon: Option<f64>,
    delta: Option<f64>,
    workload: Option<&'static str>,
    rms_loss: Option<f64>,
    unit: Option<PrivacyUnit>,
    epsilon_by_examples: [f64; 0],
    models_published: usize,
    release: Option<&'static str>,
    clip_by: Option<ClipBy>,
    clip_norms: [f64; 0],
    insecure_seed: bool,
}

fn or_null<S: Serializer>(private: &Option<PrivateResult>, serializer: S) -> Result<S::Ok, S::Error> {
    match private {
        Some(private) => private.serialize(serializer),
        None => NotPrivate::default().serialize(serializer),
    }
}

/// The difference between the accuracies of two mechanisms, in points.
#[non_exhaustive]
pub struct Difference {
    /// The difference in percentage points.
    pub points: f64,
    /// Standard error of the mean over repeats; `None` for a single repeat.
    pub error: Option<f64>,
    /// Number of pairs of runs.
    pub repeats: usize,
}

/// Number of standard errors up to which a difference may be due to chance.
const BEYOND: f64 = 2.0;

impl Difference {
    /// The difference as text, such as "0.6 +- 1.1 points".
    pub fn size(&self) -> String {
        let error = self.error.map_or_else(String::new, |error| format!(" +- {error:.1}"));
        format!("{:.1}{error} points", self.points.abs())
    }

    /// Whether the difference is too large to be due to chance; `None` for single runs.
    pub fn is_beyond_error(&self) -> Option<bool> {
        self.error.map(|error| self.points.abs() > BEYOND * error)
    }

    /// Says how the figures were obtained: from a single run, or as mean and standard error over the repeats.
    pub fn of(&self) -> String {
        match self.repeats {
            1 => "one run of each, so that the error is unknown".into(),
            repeats => format!("mean and standard error of {repeats}"),
        }
    }
}

impl MechanismResult {
    /// The name in a report: a baseline's in words, or else that of the mechanism on the command line.
    pub fn label(&self) -> String {
        match self.baseline {
            Some(Baseline::None) => "no privacy".into(),
            Some(Baseline::Independent) => "independent noise".into(),
            Some(Baseline::IndependentAmplified) => "DP-SGD".into(),
            None => format!("correlated noise ({})", self.mechanism),
        }
    }

    /// The standard error of the test accuracy: over repeats, or of a single run that of a share of the test
    /// examples.
    pub fn error(&self) -> f64 {
        self.standard_error.unwrap_or_else(|| accuracy_error(self.test_accuracy, self.tested.count()))
    }

    /// The source of [`MechanismResult::error`], as a phrase.
    pub fn error_is(&self) -> String {
        match self.standard_error {
            Some(_) => format!("standard error over {} repeats", self.test_accuracies.len()),
            None => self.tested.error_is(),
        }
    }

    /// Epsilon of all published models together; `None` without privacy.
    pub fn epsilon(&self) -> Option<f64> {
        self.private.as_ref().map(|private| private.epsilon)
    }

    /// The difference from another result, paired by repeat: both have the same model and data, and the same
    /// seed if one was given.
    pub fn difference(&self, other: &Self) -> Difference {
        let differences: Vec<f64> =
            self.test_accuracies.iter().zip(&other.test_accuracies).map(|(x, y)| 100.0 * (x - y)).collect();
        let (points, error) = mean_and_error(&differences);
        Difference { points, error, repeats: differences.len() }
    }

    /// Whether both epsilons agree up to the tolerance of calibration to a common target; false without
    /// privacy.
    pub fn has_privacy_of(&self, other: &Self) -> bool {
        let (Some(epsilon), Some(other)) = (self.epsilon(), other.epsilon()) else { return false };
        (epsilon - other).abs() <= 0.01 * epsilon.max(other)
    }

    /// "smallest" or "largest" where the best learning rate is the smallest or the largest of those that were
    /// tried, so that another may do better.
    pub fn edge(&self) -> Option<&'static str> {
        let further = edge(&self.by_learning_rate)?;
        Some(if further < self.learning_rate { "smallest" } else { "largest" })
    }
}

/// A share in percent, with its standard error.
pub fn percent(share: f64, error: Option<f64>) -> String {
    let error = error.map_or_else(String::new, |error| format!(" +- {:.2}", 100.0 * error));
    format!("{:.2}{error}%", 100.0 * share)
}

impl StudyResult {
    /// The private results.
    pub fn private(&self) -> impl Iterator<Item = (&MechanismResult, &PrivateResult)> {
        self.runs.iter().filter_map(|row| Some((row, row.private.as_ref()?)))
    }
}
