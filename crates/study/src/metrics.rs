//! Metrics: one line of JSON for each step of a running training.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use antinoise_input::InvalidParameter;
use antinoise_input::files::{Access, write_whole};
use antinoise_train::checkpoint::History;
use serde::{Deserialize, Serialize};

use crate::clip_by::ClipBy;
use crate::error::{Error, Result};

/// A file with a line for each step of a run, for the data's owner only: losses are those of private
/// examples.
pub struct Metrics {
    path: PathBuf,
    file: Mutex<File>,
}

/// Measurements of a step.
#[derive(Serialize, Deserialize)]
struct Line {
    run: String,
    /// Number of steps done.
    step: usize,
    /// Mean loss over the step's batch, without noise: computed from private data, and not covered by the
    /// statement; null for an empty batch.
    loss: Option<f64>,
    /// Share of the batch that was clipped (in any layer, if layers are clipped separately); not covered by
    /// the statement either.
    clipped_share: Option<f64>,
    /// Part of a gradient that is clipped as one.
    #[serde(default)]
    clip_by: ClipBy,
    /// Accuracy on the test rows, if the model was tested after this step.
    test_accuracy: Option<f64>,
    /// Seconds spent in steps and tests, over all resumptions.
    seconds: f64,
    /// Share of `seconds` spent in making and adding noise.
    noise_share: f64,
    /// Epsilon of the whole run, which the steps so far do not exceed.
    epsilon: f64,
}

impl Metrics {
    /// Opens the file at `path`. For a new study it must be absent or empty; a resumed study appends to it.
    pub fn open(path: &Path, resumed: bool) -> Result<Self> {
        // A pipe would be waited for until somebody reads it.
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            let must_be =
                "a regular file, or absent: a resumed run could not append to a pipe, a device or a folder";
            return Err(InvalidParameter::new("metrics", path.display(), must_be).into());
        }
        let lines = read(path)?;
        if !resumed && !lines.is_empty() {
            let must_be = "absent or empty: it has lines of another run";
            return Err(InvalidParameter::new("metrics", path.display(), must_be).into());
        }
        Ok(Self { path: path.to_owned(), file: Mutex::new(write(path, &lines)?) })
    }

    /// Deletes the records of `run` after `step`: those steps will be repeated.
    pub fn resume(&self, run: &str, step: usize) -> Result<()> {
        let mut lines = read(&self.path)?;
        let before = lines.len();
        lines.retain(|line| line.run != run || line.step <= step);
        if lines.len() < before {
            *self.file.lock().expect("no line is half written") = write(&self.path, &lines)?;
        }
        Ok(())
    }

    /// Appends a line for step `step` of `run`, its last one.
    pub fn tell(
        &self,
        run: &str,
        (epsilon, clip_by): (f64, ClipBy),
        (step, history): (usize, &History),
    ) -> Result<()> {
        let last = |values: &[f64]| values.last().copied().filter(|x| x.is_finite());
        let line = Line {
            run: run.into(),
            step,
            loss: last(&history.losses),
            clipped_share: last(&history.clipped_shares),
            clip_by,
            test_accuracy: history.accuracies.last().filter(|(at, _)| *at == step).map(|&(_, x)| x),
            seconds: history.seconds,
            noise_share: history.seconds_in_noise / history.seconds.max(f64::MIN_POSITIVE),
            epsilon,
        };
        let mut file = self.file.lock().expect("no line is half written");
        file.write_all(text(&[line]).as_bytes()).map_err(|error| failed(&self.path, error))
    }
}

/// Lines of the file at `path`; an incomplete last line, which a killed process left, is omitted.
fn read(path: &Path) -> Result<Vec<Line>> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(|error| failed(path, error))?,
    };
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let lines = text[..whole].lines().enumerate().map(|(i, line)| {
        serde_json::from_str(line).map_err(|_| {
            let must_be = format!("a file of metrics, which line {} is not", i + 1);
            InvalidParameter::new("metrics", path.display(), must_be).into()
        })
    });
    lines.collect()
}

/// Replaces the file by these lines; returns it open at its end.
fn write(path: &Path, lines: &[Line]) -> Result<File> {
    write_whole(path, Access::Owner, text(lines).as_bytes()).map_err(|error| failed(path, error))?;
    OpenOptions::new().append(true).open(path).map_err(|error| failed(path, error))
}

fn text(lines: &[Line]) -> String {
    let text = |line| serde_json::to_string(line).expect("numbers and texts have a form in JSON") + "\n";
    lines.iter().map(text).collect()
}

fn failed(path: &Path, error: std::io::Error) -> Error {
    Error::of_file("metrics", path, error)
}
