//! The results of a training, as text and as JSON.

use std::fmt;

use antinoise_accounting::three_digits_up;
use antinoise_mechanism::PrivacyUnit;
use antinoise_plan::by_examples_in_words;
use antinoise_study::{
    AtPoint, MechanismResult, Outcome, Point, PrivateResult, StudyResult, Sweep, WITHOUT_NOISE, percent,
};
use serde::Serialize;

use crate::output;

/// Output of `antinoise train`.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Printed(pub Outcome);

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Outcome::One(result) => one(f, result),
            Outcome::Several(sweep) => several(f, sweep),
        }
    }
}

/// The caveat of results at the best of several learning rates.
const CHOSEN: &str = "Each row is the best of its learning rates by test accuracy; no standard error accounts for that choice.";

/// What the folder of a model has that no statement covers.
const CARD: &str = "Its card, README.md, has accuracies on the test rows, which the statement does not cover: take them out unless \
                    these rows are public.";

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

fn one(f: &mut fmt::Formatter<'_>, result: &StudyResult) -> fmt::Result {
    let rows: Vec<Vec<String>> = result.runs.iter().map(cells).collect();
    writeln!(f, "{}\n\n{}", result.title, output::table(&HEADER, &rows))?;
    designed_for(f, result.private().map(|(_, private)| private))?;
    let mut private = result.private();
    if let Some((first, _)) = private.next() {
        private.try_for_each(|(row, _)| writeln!(f, "{}", compared(row, first)))?;
    }
    if let Some(first) = result.runs.first() {
        writeln!(f, "Test accuracy has the {}.", first.error_is())?;
    }
    if result.runs.iter().any(|row| row.by_learning_rate.len() > 1) {
        writeln!(f, "{CHOSEN}")?;
    }
    writeln!(
        f,
        "Always predicting {} would reach {}.",
        result.tested.most_frequent(),
        percent(result.largest_class_share, None)
    )?;
    if result.private().all(|(row, _)| row.test_accuracy <= result.largest_class_share) {
        writeln!(
            f,
            "No private model does better than that: it needs more rows, a larger epsilon or more telling columns."
        )?;
    }
    warnings(result).iter().try_for_each(|warning| writeln!(f, "{warning}"))?;
    writeln!(f, "{}", covered(result))?;
    unit(result).map_or(Ok(()), |unit| writeln!(f, "{unit}"))?;
    if let Some(rate) = result.default_learning_rate {
        writeln!(
            f,
            "Learning rate {rate} is the default for this plan, model and schema. It depends on no row, so it costs no privacy."
        )?;
    }
    result.uncovered.as_ref().map_or(Ok(()), |uncovered| writeln!(f, "{uncovered}."))?;
    let model = result.model.display();
    writeln!(f, "Model to give away: {model}, {}.", result.model_is)?;
    writeln!(f, "Its privacy statement: {model}/statement.txt. Report: {}", result.report.display())?;
    writeln!(f, "{CARD}")
}

fn several(f: &mut fmt::Formatter<'_>, sweep: &Sweep) -> fmt::Result {
    let header = ["epsilon", "mechanism", "test accuracy", "RMS loss", "learning rate", "in noise"];
    // A column of its own, unless epsilon varies.
    let length = match sweep.points[0].point {
        Point::Epsilon(_) => None,
        length => Some(length.name()),
    };
    let cells = |(point, row): (Point, &MechanismResult)| {
        let private = |cell: fn(&PrivateResult) -> String| row.private.as_ref().map_or("-".into(), cell);
        let cells = [
            private(|private| three_digits_up(private.epsilon)),
            row.mechanism.clone(),
            percent(row.test_accuracy, row.standard_error),
            private(|private| format!("{:.5}", private.rms_loss)),
            row.learning_rate.to_string(),
            format!("{:.1}%", 100.0 * row.seconds_in_noise / row.seconds),
        ];
        length.map(|_| point.value().to_string()).into_iter().chain(cells).collect()
    };
    let cells: Vec<Vec<String>> = sweep.rows().map(cells).collect();
    let header: Vec<&str> = length.into_iter().chain(header).collect();
    writeln!(f, "{}\n\n{}", sweep.points[0].result.title, output::table(&header, &cells))?;
    designed_for(f, sweep.private())?;
    writeln!(f, "{CHOSEN}")?;
    remarks(sweep).iter().try_for_each(|remark| writeln!(f, "{remark}"))?;
    best(f, sweep)?;
    writeln!(f, "{}", sweep.together())?;
    for AtPoint { point, result, .. } in &sweep.points {
        let place = if matches!(point, Point::Epsilon(_)) { "at" } else { "of" };
        writeln!(f, "Model to give away {place} {point}: {}", result.model.display())?;
    }
    writeln!(f, "Report: {}", sweep.report.display())
}

/// The warnings and the privacy unit of all points, each once: with its points, where these are not all.
fn remarks(sweep: &Sweep) -> Vec<String> {
    let mut found: Vec<(String, Vec<Point>)> = Vec::new();
    for AtPoint { point, result, .. } in &sweep.points {
        for remark in warnings(result).into_iter().chain(unit(result)) {
            match found.iter_mut().find(|(known, _)| *known == remark) {
                Some((_, points)) => points.push(*point),
                None => found.push((remark, vec![*point])),
            }
        }
    }
    let all = sweep.points.len();
    let line = |(remark, points): (String, Vec<Point>)| match points.len() {
        count if count == all => remark,
        _ => format!("{}: {remark}", points.iter().map(Point::to_string).collect::<Vec<_>>().join(", ")),
    };
    found.into_iter().map(line).collect()
}

/// Names the most accurate length, and whether it is the smallest or the largest that was tried.
fn best(f: &mut fmt::Formatter<'_>, sweep: &Sweep) -> fmt::Result {
    let Some((point, row)) = sweep.best() else { return Ok(()) };
    let (mechanism, rate) = (&row.mechanism, row.learning_rate);
    let accuracy = percent(row.test_accuracy, Some(row.error()));
    let epsilon = three_digits_up(row.epsilon().unwrap_or(f64::NAN));
    writeln!(
        f,
        "Most accurate: {mechanism} with {point} at learning rate {rate}, {accuracy} at epsilon {epsilon}."
    )?;
    let last = sweep.points.len() - 1;
    let edges = [(0, "smallest"), (last, "largest")];
    edges.iter().filter(|&&(i, _)| sweep.points[i].point == point).try_for_each(|(_, which)| {
        writeln!(f, "That is the {which} number of {} that was tried: another may do better.", point.plural())
    })
}

/// Names the workload of the losses, which is one for all mechanisms.
fn designed_for<'a>(
    f: &mut fmt::Formatter<'_>,
    mut private: impl Iterator<Item = &'a PrivateResult>,
) -> fmt::Result {
    private.next().map_or(Ok(()), |first| {
        writeln!(f, "RMS loss: of the workload {}, for which mechanisms are designed.", first.workload)
    })
}

fn cells(row: &MechanismResult) -> Vec<String> {
    let private = |cell: fn(&PrivateResult) -> String| row.private.as_ref().map_or("-".into(), cell);
    vec![
        row.mechanism.clone(),
        percent(row.test_accuracy, Some(row.error())),
        private(|private| three_digits_up(private.epsilon)),
        private(|private| three_digits_up(private.delta)),
        private(|private| format!("{:.5}", private.rms_loss)),
        row.learning_rate.to_string(),
        row.steps.to_string(),
        format!("{:.1}", row.seconds),
        format!("{:.2}", row.seconds_in_noise),
    ]
}

/// The comparison of a mechanism with another, in a sentence.
fn compared(row: &MechanismResult, other: &MechanismResult) -> String {
    let difference = row.difference(other);
    let epsilon = |of: &MechanismResult| three_digits_up(of.epsilon().unwrap_or(f64::NAN));
    let privacy = if row.has_privacy_of(other) {
        "At the same privacy".into()
    } else {
        format!("At epsilon {} against {}", epsilon(row), epsilon(other))
    };
    let (size, of) = (difference.size(), difference.of());
    let (one, two) = (&row.mechanism, &other.mechanism);
    if difference.is_beyond_error() == Some(false) {
        return format!("{privacy}, {one} and {two} show no difference beyond the error: {size} ({of}).");
    }
    let words = if difference.points >= 0.0 { "more accurate" } else { "less accurate" };
    format!("{privacy}, {one} is {size} {words} than {two} ({of}).")
}

/// A warning where the best learning rate is the smallest or the largest that was tried.
fn edge(row: &MechanismResult) -> Option<String> {
    let (mechanism, which) = (&row.mechanism, row.edge()?);
    Some(format!(
        "The best learning rate of {mechanism} is the {which} that was tried: another may do better (--learning-rate)."
    ))
}

/// How many private models were trained, and which of them epsilon covers.
fn covered(result: &StudyResult) -> String {
    let trained: usize = result.private().map(|(row, _)| row.models_trained).sum();
    if trained == 1 {
        return "One private model was trained on these data; epsilon is its own.".into();
    }
    let covered = match result.private().next().map_or(1, |(_, private)| private.models_published) {
        1 => "each one of them".into(),
        several => format!("{several} of them together"),
    };
    format!("{trained} private models were trained on these data; epsilon is that of {covered}.")
}

/// A sentence on the privacy unit.
fn unit(result: &StudyResult) -> Option<String> {
    let (_, private) = result.private().next()?;
    Some(match private.unit {
        PrivacyUnit::User => "Epsilon is that of a user with all of their examples.".into(),
        PrivacyUnit::Example => format!(
            "Epsilon is that of one example; for a person with several examples, that of one model is {} ({} protects \
             persons).",
            by_examples_in_words(&private.epsilon_by_examples),
            if result.is_of_table { "--user COLUMN" } else { "--users FILE" }
        ),
    })
}

/// Warnings for the owner of the data.
fn warnings(result: &StudyResult) -> Vec<String> {
    let audit = |(row, private): (&MechanismResult, &PrivateResult)| {
        Some(private.audit.as_ref()?.sentence(&row.mechanism))
    };
    let seed =
        "The noise came from a seed: anyone who knows it can subtract the noise. Not for private data.";
    let edges = result.runs.iter().filter_map(edge);
    edges
        .chain(result.private().filter_map(audit))
        .chain(result.private().any(|(_, private)| private.insecure_seed).then(|| seed.into()))
        .chain(
            result.runs.iter().any(|row| row.private.is_none()).then(|| {
                format!("\"{WITHOUT_NOISE}\" is not private: only for readers who may see the data.")
            }),
        )
        .collect()
}
