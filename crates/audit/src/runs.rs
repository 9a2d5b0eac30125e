//! All runs of the mechanism, and the statistics of each.

use std::rc::Rc;

use crate::experiment::Experiment;
use crate::membership_test::{MembershipTest, guesses_for};
use crate::memo::Memo;
use crate::noise_tests::NoiseTests;
use crate::random::Random;
use crate::report::Test;
use crate::settings::Settings;
use crate::{Error, Mechanism};

/// Fraction of the stated mu that guesses about neighbours should prove.
const WANTED: f64 = 0.91;
/// Limits for neighbours that are too close to each other for `WANTED`. Guesses should prove at least the
/// fraction `LEAST_WANTED` of the stated mu. If that is more than the fraction `MOST_OF_APART` of the
/// neighbours' distance, they should prove `WANTED_OF_APART` of the distance instead.
const LEAST_WANTED: f64 = 0.904;
const MOST_OF_APART: f64 = 0.985;
const WANTED_OF_APART: f64 = 0.96;
/// Maximum number of processes; runs with tested noise use 1, 2, 3, 1, ... processes.
const PROCESSES: usize = 3;
/// Number of interruptions of a run that is compared with an uninterrupted run.
const INTERRUPTIONS: usize = 3;
/// Maximum number of steps of compared runs.
const COMPARED_STEPS: usize = 1 << 11;

/// Number of runs, and the number that would suffice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Count {
    pub(crate) runs: usize,
    /// Number of runs with which all but one in 700 audits prove `mu_wanted`.
    pub(crate) wanted: usize,
    pub(crate) mu_wanted: f64,
}

/// The runs of one audit.
pub(crate) struct Runs<'a> {
    experiment: &'a Experiment,
    mechanism: &'a mut dyn Mechanism,
    sums: Memo,
    random: Random,
}

/// How a run is divided among processes, and where it is interrupted.
#[derive(Clone)]
struct Course {
    run: u64,
    processes: usize,
    interrupted_before: Vec<usize>,
}

impl<'a> Runs<'a> {
    pub(crate) fn new(experiment: &'a Experiment, mechanism: &'a mut dyn Mechanism, seed: u64) -> Self {
        Self { experiment, mechanism, sums: Memo::default(), random: Random(seed) }
    }

    /// Makes runs until guesses about neighbours are expected to prove the wanted mu at confidence 1 -
    /// `alpha`, or up to the limit of the settings. The noise of the first runs is tested. Also returns the
    /// number of runs.
    pub(crate) fn all(
        &mut self,
        settings: &Settings,
        (alpha, mu): (f64, f64),
        watch: &mut dyn FnMut(usize, usize),
    ) -> Result<(NoiseTests, Vec<MembershipTest>, Count), Error> {
        let mut noise_tests = NoiseTests::new(self.experiment.steps, self.experiment.canaries.dim());
        let mut membership_tests = self.experiment.membership_tests();
        let count = self.count(settings, alpha, (mu, membership_tests[0].apart));
        let runs = count.runs;
        for run in 0..runs {
            watch(run, runs);
            if run < settings.runs {
                let residuals = self.tested(run, &mut membership_tests)?;
                noise_tests.add(&self.experiment.whitening, self.experiment.noise_std, &residuals);
            } else {
                let course = Course { run: run as u64, processes: 1, interrupted_before: Vec::new() };
                self.guessed(&course, &mut membership_tests, |_, _, _| Ok(()))?;
            }
        }
        Ok((noise_tests, membership_tests, count))
    }

    /// The number of runs, an even number: as many as suffice or as the settings allow.
    fn count(&self, settings: &Settings, alpha: f64, (mu, apart): (f64, f64)) -> Count {
        let mu_wanted = if LEAST_WANTED * mu <= MOST_OF_APART * apart {
            f64::min(WANTED * mu, f64::max(LEAST_WANTED * mu, WANTED_OF_APART * apart))
        } else {
            WANTED_OF_APART * apart
        };
        let wanted = guesses_for(apart, mu_wanted, alpha).div_ceil(self.experiment.units_of_worst());
        let each = (self.experiment.steps * self.experiment.canaries.dim()) as u64;
        let most = usize::try_from(settings.most_numbers / each).unwrap_or(usize::MAX);
        let runs = wanted.min(most).max(settings.runs).next_multiple_of(2);
        Count { runs, wanted, mu_wanted }
    }

    /// Makes a run that is divided among processes and, if its number is odd, interrupted. Returns R - G for
    /// each coordinate.
    fn tested(
        &mut self,
        run: usize,
        membership_tests: &mut [MembershipTest],
    ) -> Result<Vec<Vec<f64>>, Error> {
        let experiment = self.experiment;
        let interrupted = (run % 2 == 1).then(|| self.random.midway(experiment.steps));
        let course = Course {
            run: run as u64,
            processes: 1 + run % PROCESSES,
            interrupted_before: interrupted.into_iter().collect(),
        };
        let mut residuals = vec![vec![0.0; experiment.steps]; experiment.canaries.dim()];
        self.guessed(&course, membership_tests, |runs, t, noisy_sum| {
            let sum = runs.sum(&experiment.batches[run % 2][t])?;
            for ((residual, r), g) in residuals.iter_mut().zip(noisy_sum).zip(&*sum) {
                residual[t] = r - g;
            }
            Ok(())
        })?;
        Ok(residuals)
    }

    /// Makes a run, guesses about each unit, and calls `see` with each noisy sum.
    fn guessed(
        &mut self,
        course: &Course,
        membership_tests: &mut [MembershipTest],
        mut see: impl FnMut(&mut Self, usize, &[f64]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let experiment = self.experiment;
        let run = course.run as usize;
        let base = self.sum(&experiment.canaries.others())?;
        let base: Vec<f64> =
            (0..experiment.arms.len()).map(|j| experiment.canaries.along(&base, j)).collect();
        let mut statistics = vec![0.0; experiment.arms.len()];
        self.mechanism.begin(course.run, experiment.canaries.dim(), course.processes)?;
        for (t, batch) in experiment.batches[run % 2].iter().enumerate() {
            if course.interrupted_before.contains(&t) {
                self.mechanism.interrupt()?;
            }
            let noisy_sum = self.mechanism.noisy_sum(&experiment.canaries.inputs, batch)?;
            for (j, (arm, statistic)) in experiment.arms.iter().zip(&mut statistics).enumerate() {
                let moved = experiment.canaries.along(&noisy_sum, j) - base[j];
                *statistic += membership_tests[arm.attack].weights[t] * moved;
            }
            see(self, t, &noisy_sum)?;
        }
        for (arm, statistic) in experiment.arms.iter().zip(statistics) {
            membership_tests[arm.attack].add(arm.takes_part(run), statistic);
        }
        Ok(())
    }

    /// Compares a run in one process with the same run in three, and with the same run with interruptions;
    /// the statistics are the numbers of values that differ. Returns no tests for a mechanism that does not
    /// repeat its noise.
    pub(crate) fn compared(&mut self) -> Result<Vec<Test>, Error> {
        if !self.mechanism.repeats() {
            return Ok(Vec::new());
        }
        let steps = self.experiment.steps.min(COMPARED_STEPS);
        let plain = Course { run: 0, processes: 1, interrupted_before: Vec::new() };
        let interruptions = (0..INTERRUPTIONS).map(|_| self.random.midway(steps)).collect();
        let expected = self.noisy_sums(&plain, steps)?;
        let mut test = |name: &str, course: Course| -> Result<Test, Error> {
            let found = self.noisy_sums(&course, steps)?;
            let differ = expected.iter().zip(&found).filter(|(x, y)| x.to_bits() != y.to_bits()).count();
            let missing = expected.len().abs_diff(found.len());
            Ok(Test::new(name, (differ + missing) as f64, 0.0))
        };
        Ok(vec![
            test(
                "processes: numbers that differ from those of one process",
                Course { processes: PROCESSES, ..plain.clone() },
            )?,
            test(
                "resumption: numbers that differ from those of a run without interruptions",
                Course { interrupted_before: interruptions, ..plain.clone() },
            )?,
        ])
    }

    fn noisy_sums(&mut self, course: &Course, steps: usize) -> Result<Vec<f64>, Error> {
        self.mechanism.begin(course.run, self.experiment.canaries.dim(), course.processes)?;
        let mut all = Vec::with_capacity(steps * self.experiment.canaries.dim());
        for (t, batch) in self.experiment.batches[0][..steps].iter().enumerate() {
            if course.interrupted_before.contains(&t) {
                self.mechanism.interrupt()?;
            }
            all.extend(self.mechanism.noisy_sum(&self.experiment.canaries.inputs, batch)?);
        }
        Ok(all)
    }

    fn sum(&mut self, batch: &[usize]) -> Result<Rc<Vec<f64>>, Error> {
        let inputs = &self.experiment.canaries.inputs;
        self.sums.of(inputs, batch, || self.mechanism.sum(inputs, batch))
    }
}
