//! A comparison at several epsilons: a folder for each epsilon, and accuracy against privacy.

use std::fmt;
use std::path::{Path, PathBuf};

use antinoise_input::InvalidParameter;
use antinoise_plan::write_atomically;
use serde::{Deserialize, Serialize};

use super::folder::{REPORT, has_a_run, is_of_a_run};
use super::options::Arguments;
use super::report::{Report, Row, percent};
use super::session::Session;
use super::study::Study;
use crate::failure::{Failure, Result};
use crate::numbers::short_up;
use crate::output;
use crate::report::{AtEpsilon, Epsilons as Page};
use crate::signals::Stop;

/// File that lists the folders. It is written once all folders exist, before any training.
const LIST: &str = "epsilons.toml";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    epsilons: Vec<f64>,
}

/// Name of an epsilon's folder, within the folder of all epsilons.
fn folder(epsilon: f64) -> String {
    format!("epsilon-{epsilon}")
}

/// Refuses `--metrics` before any file is written or changed.
fn refuse_metrics(arguments: &Arguments) -> Result<()> {
    let Some(path) = &arguments.metrics else { return Ok(()) };
    let must_be = "left out with several epsilons, whose runs have the same names";
    Err(InvalidParameter::new("metrics", path.display(), must_be).into())
}

/// Refuses folders that a killed process left without the file that lists them.
fn refuse_what_never_began(whole: &Path, epsilons: &[f64]) -> Result<()> {
    let left = epsilons.iter().map(|&epsilon| whole.join(folder(epsilon))).find(|part| is_of_a_run(part));
    match left {
        None => Ok(()),
        Some(part) => Err(Failure::input(format!(
            "out is {} but must be a folder without {}: that is a run of its own, or was left by a comparison that was \
             killed before it trained anything; name another folder",
            whole.display(),
            part.display()
        ))),
    }
}

/// A study for each epsilon, in increasing order.
pub struct Sessions {
    whole: PathBuf,
    epsilons: Vec<f64>,
    sessions: Vec<Session>,
}

impl Sessions {
    /// New studies, all saved before one starts; `None` for a single epsilon.
    pub fn new(arguments: &Arguments) -> Result<Option<Self>> {
        let whole = &arguments.out;
        if whole.join(LIST).exists() {
            return Err(has_a_run(whole));
        }
        if arguments.epsilon.len() < 2 {
            return Ok(None);
        }
        refuse_metrics(arguments)?;
        let mut epsilons = arguments.epsilon.clone();
        epsilons.sort_by(f64::total_cmp);
        if let Some(pair) = epsilons.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(InvalidParameter::new("epsilon", pair[0], "given once").into());
        }
        if whole.join(REPORT).symlink_metadata().is_ok() {
            let must_be = format!("a folder without {REPORT}, which the run would write over");
            return Err(InvalidParameter::new("out", whole.display(), must_be).into());
        }
        refuse_what_never_began(whole, &epsilons)?;
        let mut studies = Vec::new();
        for &epsilon in &epsilons {
            let mut study = Study::new(&Arguments { epsilon: vec![epsilon], ..arguments.clone() })?;
            if !studies.is_empty() {
                // It is the same at every epsilon.
                study.leave_out_reference();
            }
            study.trained_beside(epsilons.iter().copied().filter(|&other| other != epsilon).collect());
            studies.push(study);
        }
        // Nothing is written unless all of them can be trained.
        let begun = studies
            .into_iter()
            .zip(&epsilons)
            .map(|(study, &epsilon)| Session::begin(study, &whole.join(folder(epsilon))));
        let sessions = begun.collect::<Result<Vec<_>>>()?;
        let list = toml::to_string(&List { epsilons: epsilons.clone() }).map_err(Failure::other)?;
        write_atomically(&whole.join(LIST), list.as_bytes())?;
        Ok(Some(Self::within(whole, epsilons, sessions)))
    }

    /// The studies of the folder `whole`; `None` if it holds a single study.
    pub fn resumed(whole: &Path, arguments: &Arguments) -> Result<Option<Self>> {
        let path = whole.join(LIST);
        if !path.exists() {
            return Ok(None);
        }
        refuse_metrics(arguments)?;
        let refused =
            |error: &dyn fmt::Display| Failure::input(format!("resume: {}: {error}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(|error| refused(&error))?;
        let List { epsilons } = toml::from_str(&text).map_err(|error| refused(&error))?;
        let resumed =
            |&epsilon: &f64| Session::resumed(&whole.join(folder(epsilon)), arguments.released_models);
        let sessions = epsilons.iter().map(resumed).collect::<Result<Vec<_>>>()?;
        if sessions.is_empty() {
            return Err(refused(&"epsilons must be one or more"));
        }
        Ok(Some(Self::within(whole, epsilons, sessions)))
    }

    fn within(whole: &Path, epsilons: Vec<f64>, sessions: Vec<Session>) -> Self {
        let part = |session: Session| Session { folder: session.folder.part_of(whole), ..session };
        Self { whole: whole.to_path_buf(), epsilons, sessions: sessions.into_iter().map(part).collect() }
    }

    /// Completes all trainings, and writes the reports.
    pub fn train(mut self, stop: &Stop) -> Result<Epsilons> {
        let mut epsilons = Vec::new();
        for (epsilon, session) in self.epsilons.iter().zip(&mut self.sessions) {
            epsilons.push(Compared { epsilon: *epsilon, report: session.train(stop)? });
        }
        let found = Epsilons { epsilons, report: self.whole.join(REPORT) };
        write_atomically(&found.report, found.page().to_html()?.as_bytes())?;
        Ok(found)
    }
}

/// Output of `antinoise train` at several epsilons.
#[derive(Debug, Serialize)]
pub struct Epsilons {
    epsilons: Vec<Compared>,
    report: PathBuf,
}

/// The comparison at one epsilon.
#[derive(Debug, Serialize)]
struct Compared {
    /// Epsilon as the command line gave it.
    epsilon: f64,
    #[serde(flatten)]
    report: Report,
}

impl Epsilons {
    fn page(&self) -> Page {
        let mut rows = Vec::new();
        for compared in &self.epsilons {
            for row in &compared.report.runs {
                rows.push(AtEpsilon {
                    mechanism: row.mechanism.clone(),
                    series: self.series(row),
                    epsilon: row.epsilon,
                    accuracy: row.test_accuracy,
                    standard_error: row.standard_error,
                    learning_rate: row.learning_rate,
                    rms_loss: row.rms_loss,
                });
            }
        }
        let link = |of: &Compared| (of.epsilon, format!("{}/{REPORT}", folder(of.epsilon)));
        Page {
            title: self.epsilons[0].report.title.clone(),
            delta: self.epsilons[0].report.runs[0].delta,
            rows,
            links: self.epsilons.iter().map(link).collect(),
        }
    }

    /// Name of a row's series in a figure over all epsilons: its mechanism if that is compared at each
    /// epsilon, else "chosen".
    fn series(&self, row: &Row) -> String {
        let names = |of: &Compared| of.report.runs.iter().any(|other| other.mechanism == row.mechanism);
        if row.baseline.is_some() || self.epsilons.iter().all(names) {
            return row.mechanism.clone();
        }
        "chosen".into()
    }
}

impl fmt::Display for Epsilons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = ["epsilon", "mechanism", "test accuracy", "RMS loss", "learning rate", "in noise"];
        let mut cells = Vec::new();
        for row in self.epsilons.iter().flat_map(|compared| &compared.report.runs) {
            let private = row.epsilon.is_finite();
            cells.push(vec![
                if private { short_up(row.epsilon, 5) } else { "-".into() },
                row.mechanism.clone(),
                percent(row.test_accuracy, row.standard_error),
                if private { format!("{:.5}", row.rms_loss) } else { "-".into() },
                row.learning_rate.to_string(),
                format!("{:.1}%", 100.0 * row.seconds_in_noise / row.seconds),
            ]);
        }
        writeln!(f, "{}\n\n{}", self.epsilons[0].report.title, output::table(&header, &cells))?;
        writeln!(
            f,
            "Each row is the best of its learning rates by test accuracy; no standard error has that choice in it."
        )?;
        for row in self.epsilons.iter().flat_map(|compared| &compared.report.runs) {
            row.edge().map_or(Ok(()), |edge| writeln!(f, "{edge}"))?;
        }
        writeln!(f, "{}", crate::report::TOGETHER)?;
        writeln!(f, "Report: {}", self.report.display())
    }
}
