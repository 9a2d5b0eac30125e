//! An audit of a continual release through its folder: frozen and published period by period.

use antinoise_audit::{AuditInputs, Claim, Error, Mechanism, Settings, audit};
use antinoise_release::{Period, Release, Unit};
use antinoise_train::clip::clipped_sum;
use tempfile::TempDir;

const STEPS: usize = 10;
/// Rows per clip norm of a unit's gradient: rounding to whole rows is then fine compared with the grid.
const ROWS: usize = 1 << 20;

/// A release whose counts are the coordinates of clipped sums, multiplied and rounded.
struct Counted {
    times: f64,
    step: i64,
    release: Option<(Release, TempDir)>,
    last: Vec<f64>,
}

fn begun(dim: usize) -> (Release, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let keys = (0..dim).map(|key| key.to_string()).collect();
    let settings = antinoise_release::Settings {
        max_periods: 3,
        max_rows: ROWS,
        epsilon: 20.0,
        ..antinoise_release::Settings::new(keys, STEPS, Unit::User)
    };
    (Release::create(folder.path(), &settings).unwrap(), folder)
}

impl Mechanism for Counted {
    fn sum(&mut self, inputs: &AuditInputs, batch: &[usize]) -> Result<Vec<f64>, Error> {
        let (model, parameters, examples) = inputs.model();
        let sum = clipped_sum(model, parameters, examples, batch, ROWS as f64)?.gradient;
        Ok(sum.into_iter().map(|x| (self.times * x).round_ties_even()).collect())
    }

    /// In one process, since a folder has one writer.
    fn begin(&mut self, _run: u64, dim: usize, _processes: usize) -> Result<(), Error> {
        self.release = Some(begun(dim));
        (self.step, self.last) = (0, vec![0.0; dim]);
        Ok(())
    }

    /// A release takes a key of its own from the operating system.
    fn repeats(&self) -> bool {
        false
    }

    fn interrupt(&mut self) -> Result<(), Error> {
        let (release, folder) = self.release.take().expect("a run was begun");
        drop(release);
        self.release = Some((Release::open(folder.path()).unwrap(), folder));
        Ok(())
    }

    fn noisy_sum(&mut self, inputs: &AuditInputs, batch: &[usize]) -> Result<Vec<f64>, Error> {
        let counts: Vec<i64> = self.sum(inputs, batch)?.into_iter().map(|x| x as i64).collect();
        let (release, _) = self.release.as_mut().expect("a run was begun");
        let period = Period::Number(self.step);
        self.step += 1;
        release.freeze_counts(&period, &counts).unwrap();
        let sums: Vec<f64> = release.publish().unwrap().iter().map(|row| row.value.value()).collect();
        let noisy_sum = sums.iter().zip(&self.last).map(|(sum, last)| sum - last).collect();
        self.last = sums;
        Ok(noisy_sum)
    }
}

fn audited(times: f64) -> antinoise_audit::Report {
    let settings =
        Settings { runs: 16, most_numbers: 0, units: 64, examples: 200, ..Settings::new(1e-5, STEPS) };
    // The plan does not depend on the number of keys, except for the rounding allowance.
    let claim = Claim::of_plan(begun(200).0.plan()).unwrap();
    let mut mechanism = Counted { times, step: 0, release: None, last: Vec::new() };
    audit(&claim, &mut mechanism, &settings).unwrap()
}

#[test]
fn a_release_is_accepted_and_one_with_doubled_contributions_is_rejected() {
    let report = audited(1.0);
    assert!(report.accepted, "{report:#?}");
    // Releases draw their keys from the operating system. Over ten audits this share was 0.80 on average,
    // with a standard deviation of 0.04: it is below a half by chance in fewer than one of 1e9.
    assert!(report.mu_lower > 0.5 * report.mu_stated, "an audit that sees nothing: {report:#?}");
    let report = audited(2.0);
    assert!(!report.accepted, "{report:#?}");
    let rejected = |name: &str| report.tests.iter().any(|test| test.rejected && test.name.contains(name));
    assert!(rejected("movement by one example"), "{report:#?}");
}
