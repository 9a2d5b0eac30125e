//! The result of a study: one type that is serialised, printed and drawn.

use std::fmt;
use std::path::PathBuf;

use antinoise_accounting::{PrivacyStatement, three_digits_up};
use antinoise_mechanism::PrivacyUnit;
use serde::{Serialize, Serializer};

use super::super::persons::{ByExamples, in_words};
use super::audit::Audited;
use super::clip_by::ClipBy;
use super::named::{Baseline, WITHOUT_NOISE};
use super::results::{accuracy_error, edge, mean_and_error};
use crate::numbers::same_privacy;
use crate::output;

/// The results of all mechanisms, and the files that were written.
#[derive(Debug, Serialize)]
pub struct StudyResult {
    /// The result of each mechanism; the later ones are compared with the first.
    pub runs: Vec<MechanismResult>,
    pub report: PathBuf,
    /// The folder of the model to give away.
    pub model: PathBuf,
    /// Share of the test examples with the most frequent label.
    pub largest_class_share: f64,
    /// The default learning rate, which costs no privacy; none if rates were given.
    pub default_learning_rate: Option<f64>,
    /// A description of the model in that folder.
    #[serde(skip)]
    pub model_is: String,
    #[serde(skip)]
    pub title: String,
    /// Trainings on the same data that epsilon does not cover.
    #[serde(skip)]
    pub uncovered: Option<String>,
    /// The option that protects persons with all of their examples.
    #[serde(skip)]
    pub protects_persons: &'static str,
}

/// A mechanism's result at its best learning rate, averaged over repeats.
#[derive(Debug, Clone, Serialize)]
pub struct MechanismResult {
    pub mechanism: String,
    /// The kind of baseline, if the mechanism is one.
    pub baseline: Option<Baseline>,
    pub test_accuracy: f64,
    /// Standard error of the mean test accuracy over repeats; `None` for a single run.
    pub standard_error: Option<f64>,
    #[serde(skip)]
    pub test_examples: usize,
    /// The privacy of the models; `None`, with these keys null, for training without privacy.
    #[serde(flatten, serialize_with = "or_null")]
    pub private: Option<PrivateResult>,
    pub steps: usize,
    pub seconds: f64,
    pub seconds_in_noise: f64,
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
pub struct PrivateResult {
    /// Epsilon of all published models together.
    pub epsilon: f64,
    pub delta: f64,
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
    #[serde(skip)]
    pub figures: MechanismFigures,
    #[serde(skip)]
    pub statement: PrivacyStatement,
}

/// The curves that a report draws for a mechanism; series are indexed by step from 0.
#[derive(Debug, Clone)]
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
pub struct Difference {
    pub points: f64,
    /// Standard error of the mean over repeats; `None` for a single repeat.
    pub error: Option<f64>,
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
        self.standard_error.unwrap_or_else(|| accuracy_error(self.test_accuracy, self.test_examples))
    }

    /// The source of [`MechanismResult::error`], as a phrase.
    pub fn error_is(&self) -> String {
        match self.standard_error {
            Some(_) => format!("standard error over {} repeats", self.test_accuracies.len()),
            None => format!("standard error of a share of {} test examples", self.test_examples),
        }
    }

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

    fn compared_with(&self, other: &Self) -> String {
        let difference = self.difference(other);
        let (epsilon, against) = (self.epsilon().unwrap_or(f64::NAN), other.epsilon().unwrap_or(f64::NAN));
        let privacy = if same_privacy(epsilon, against) {
            "At the same privacy".into()
        } else {
            format!("At epsilon {} against {}", three_digits_up(epsilon), three_digits_up(against))
        };
        let (size, of) = (difference.size(), difference.of());
        let (one, two) = (&self.mechanism, &other.mechanism);
        if difference.is_beyond_error() == Some(false) {
            return format!("{privacy}, {one} and {two} show no difference beyond the error: {size} ({of}).");
        }
        let words = if difference.points >= 0.0 { "more accurate" } else { "less accurate" };
        format!("{privacy}, {one} is {size} {words} than {two} ({of}).")
    }

    /// A word of warning where the best learning rate is the least or the largest that was tried.
    pub fn edge(&self) -> Option<String> {
        let further = edge(&self.by_learning_rate)?;
        let which = if further < self.learning_rate { "smallest" } else { "largest" };
        Some(format!(
            "The best learning rate of {} is the {which} that was tried: another may do better (--learning-rate).",
            self.mechanism
        ))
    }

    fn cells(&self) -> Vec<String> {
        let private = |cell: fn(&PrivateResult) -> String| self.private.as_ref().map_or("-".into(), cell);
        vec![
            self.mechanism.clone(),
            percent(self.test_accuracy, Some(self.error())),
            private(|private| three_digits_up(private.epsilon)),
            private(|private| three_digits_up(private.delta)),
            private(|private| format!("{:.5}", private.rms_loss)),
            self.learning_rate.to_string(),
            self.steps.to_string(),
            format!("{:.1}", self.seconds),
            format!("{:.2}", self.seconds_in_noise),
        ]
    }
}

/// A share in percent, with its standard error.
pub fn percent(share: f64, error: Option<f64>) -> String {
    let error = error.map_or_else(String::new, |error| format!(" +- {:.2}", 100.0 * error));
    format!("{:.2}{error}%", 100.0 * share)
}

const HEADER: [&str; 9] = [
    "mechanism",
    "test accuracy",
    "epsilon",
    "delta",
    "RMS loss",
    "learning rate",
    "steps",
    "seconds",
    "in noise",
];

impl StudyResult {
    /// The private results.
    pub fn private(&self) -> impl Iterator<Item = (&MechanismResult, &PrivateResult)> {
        self.runs.iter().filter_map(|row| Some((row, row.private.as_ref()?)))
    }

    /// How many private models were trained, and which of them epsilon covers.
    fn covered(&self) -> String {
        let trained: usize = self.private().map(|(row, _)| row.models_trained).sum();
        if trained == 1 {
            return "One private model was trained on these data; epsilon is its own.".into();
        }
        let covered = match self.private().next().map_or(1, |(_, private)| private.models_published) {
            1 => "each one of them".into(),
            several => format!("{several} of them together"),
        };
        format!("{trained} private models were trained on these data; epsilon is that of {covered}.")
    }

    /// A sentence on the privacy unit.
    fn unit(&self) -> Option<String> {
        let (_, private) = self.private().next()?;
        Some(match private.unit {
            PrivacyUnit::User => "Epsilon is that of a user with all of their examples.".into(),
            PrivacyUnit::Example => format!(
                "Epsilon is that of one example; for a person with several examples, that of one model is {} ({} protects \
                 persons).",
                in_words(&private.epsilon_by_examples),
                self.protects_persons
            ),
        })
    }

    fn warnings(&self) -> Vec<String> {
        let audit = |(row, private): (&MechanismResult, &PrivateResult)| {
            Some(private.audit.as_ref()?.sentence(&row.mechanism))
        };
        let seed =
            "The noise came from a seed: anyone who knows it can subtract the noise. Not for private data.";
        let edges = self.runs.iter().filter_map(MechanismResult::edge);
        edges
            .chain(self.private().filter_map(audit))
            .chain(self.private().any(|(_, private)| private.insecure_seed).then(|| seed.into()))
            .chain(self.runs.iter().any(|row| row.private.is_none()).then(|| {
                format!("\"{WITHOUT_NOISE}\" is not private: only for readers who may see the data.")
            }))
            .collect()
    }
}

impl fmt::Display for StudyResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<Vec<String>> = self.runs.iter().map(MechanismResult::cells).collect();
        writeln!(f, "{}\n\n{}", self.title, output::table(&HEADER, &rows))?;
        let mut private = self.private();
        if let Some((first, _)) = private.next() {
            private.try_for_each(|(row, _)| writeln!(f, "{}", row.compared_with(first)))?;
        }
        if let Some(first) = self.runs.first() {
            writeln!(f, "Test accuracy has the {}.", first.error_is())?;
        }
        if self.runs.iter().any(|row| row.by_learning_rate.len() > 1) {
            writeln!(f, "{CHOSEN}")?;
        }
        writeln!(
            f,
            "Always predicting the largest class would reach {}.",
            percent(self.largest_class_share, None)
        )?;
        self.warnings().iter().try_for_each(|warning| writeln!(f, "{warning}"))?;
        writeln!(f, "{}", self.covered())?;
        self.unit().map_or(Ok(()), |unit| writeln!(f, "{unit}"))?;
        if let Some(rate) = self.default_learning_rate {
            writeln!(
                f,
                "Learning rate {rate} is the default for this plan, model and schema. It depends on no row, so it costs no privacy."
            )?;
        }
        self.uncovered.as_ref().map_or(Ok(()), |uncovered| writeln!(f, "{uncovered}."))?;
        let model = self.model.display();
        writeln!(f, "Model to give away: {model}, {}.", self.model_is)?;
        writeln!(f, "Its privacy statement: {model}/statement.txt. Report: {}", self.report.display())
    }
}

/// The caveat of results at the best of several learning rates.
pub const CHOSEN: &str = "Each row is the best of its learning rates by test accuracy; no standard error accounts for that choice.";
