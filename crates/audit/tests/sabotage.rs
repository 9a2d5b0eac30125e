//! Every sabotaged mechanism is rejected at alpha = 1e-3 by the intended test, and the same harness without
//! sabotage is accepted.

mod common;

use antinoise_audit::{AuditInputs, BuiltinMechanism, Claim, Error, Mechanism, Report, Settings, audit};
use antinoise_mechanism::design::StrategySpec;
use antinoise_mechanism::{Adjacency, AnyStrategy, Participation, Recursion, Workload};
use antinoise_noise::{Cipher, Key, SeedNoise};
use antinoise_plan::ArithmeticKind;
use common::{design, sum_by_definition};

const STEPS: usize = 24;
const ALPHA: f64 = 1e-3;
const CYCLIC: Participation = Participation::Cyclic { min_sep: 8, max_participations: 3 };

fn strategies() -> Vec<AnyStrategy> {
    ["toeplitz", "banded-toeplitz:12", "blt:2", "banded:8", "dense", "tree", "honaker-full"]
        .iter()
        .map(|spec| design(spec.parse().unwrap(), STEPS, &CYCLIC))
        .collect()
}

fn claim(strategy: &AnyStrategy) -> Claim {
    Claim::of_strategy(strategy.clone(), CYCLIC, Adjacency::ZeroOut, 1.0, ArithmeticKind::PlainFloatingPoint)
        .unwrap()
}

fn settings() -> Settings {
    Settings { examples: 2000, units: 64, most_numbers: 0, ..Settings::new(ALPHA, STEPS) }
}

fn real(claim: &Claim) -> BuiltinMechanism {
    BuiltinMechanism::new(claim.clone(), 7)
}

fn run(claim: &Claim, mechanism: &mut dyn Mechanism) -> Report {
    audit(claim, mechanism, &settings()).unwrap()
}

/// Asserts a rejection, by the test of that name among others.
fn assert_rejected(report: &Report, by: &str) {
    assert!(!report.accepted, "{report:#?}");
    assert!(report.tests.iter().any(|test| test.rejected && test.name.contains(by)), "{by}: {report:#?}");
}

#[test]
fn a_sensitivity_that_is_a_fifth_too_low() {
    for strategy in strategies() {
        let mut claim = claim(&strategy);
        claim.noise_std *= 0.8;
        assert_rejected(&run(&claim, &mut real(&claim)), "sensitivity");
    }
}

/// The number of runs that proves the stated mu also proves that it is exceeded.
#[test]
fn a_low_sensitivity_shows_in_the_runs() {
    let strategy = &strategies()[1];
    let mut claim = Claim::of_strategy(
        strategy.clone(),
        CYCLIC,
        Adjacency::ZeroOut,
        0.5,
        ArithmeticKind::PlainFloatingPoint,
    )
    .unwrap();
    claim.noise_std *= 0.8;
    let settings = Settings { examples: 2000, ..Settings::new(ALPHA, STEPS) };
    let report = audit(&claim, &mut real(&claim), &settings).unwrap();
    assert_rejected(&report, "neighbours apart: the worst sequence");
}

/// A C with rows of norm 1, claimed to have the sensitivity of columns of norm 1.
#[test]
fn rows_normalised_instead_of_columns() {
    for strategy in strategies().iter().take(5) {
        let c = strategy.encoder().unwrap().to_dense();
        let row = |i: usize| {
            let row: Vec<f64> = (0..=i).map(|j| c[(i, j)]).collect();
            let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
            row.into_iter().map(|x| x / norm).collect()
        };
        let problem = antinoise_mechanism::Problem {
            steps: STEPS,
            workload: Workload::Matrix { rows: (0..STEPS).map(row).collect() },
            participation: Participation::Single,
            objective: antinoise_mechanism::design::Objective::Rms,
        };
        let strategy = "workload".parse::<StrategySpec>().unwrap().design(&problem).unwrap().value;
        let mut claim = Claim::of_strategy(
            strategy,
            Participation::Single,
            Adjacency::ZeroOut,
            1.0,
            ArithmeticKind::PlainFloatingPoint,
        )
        .unwrap();
        assert!(run(&claim, &mut real(&claim)).accepted);
        claim.noise_std = 1.0;
        assert_rejected(&run(&claim, &mut real(&claim)), "sensitivity");
    }
}

/// Noise for the clip norm without the rounding allowance of the grid.
#[test]
fn the_allowance_of_the_grid_dropped() {
    for strategy in strategies() {
        let of = |sigma| {
            Claim::of_strategy(strategy.clone(), CYCLIC, Adjacency::ZeroOut, sigma, ArithmeticKind::Grid)
                .unwrap()
        };
        let mut claim = of(1.0);
        assert!(claim.widened_clip_norm > claim.clip_norm);
        claim.noise_std *= claim.clip_norm / claim.widened_clip_norm;
        assert_rejected(&run(&claim, &mut real(&claim)), "sensitivity");
    }
}

/// Only the squared norms of co-participating columns.
#[test]
fn cross_terms_dropped() {
    let mut tried = 0;
    for strategy in strategies() {
        let mut claim = claim(&strategy);
        let squares = strategy.encoder().unwrap().gram_lag(0);
        let of_phase = |phase: usize| squares[phase..].iter().step_by(8).take(3).sum::<f64>();
        let without = (0..8).map(of_phase).fold(0.0, f64::max).sqrt();
        // Designs for this schema may have none.
        if without < 0.99 * claim.noise_std {
            claim.noise_std = without;
            assert_rejected(&run(&claim, &mut real(&claim)), "sensitivity");
            tried += 1;
        }
    }
    assert!(tried >= 3, "{tried}");
}

/// N Z by definition.
struct Naive {
    claim: Claim,
    real: BuiltinMechanism,
    /// N, one column per seed.
    columns: Vec<Vec<f64>>,
    seeds: SeedNoise,
    /// Whether seed noise is drawn again at each use.
    fresh: bool,
    run: u64,
    step: usize,
    draws: u64,
}

impl Naive {
    fn new(claim: &Claim, fresh: bool) -> Self {
        let recursion: Recursion = claim.strategy.recursion().unwrap();
        let seeds = recursion.seeds(STEPS);
        let column =
            |seed| recursion.apply(STEPS, &(0..seeds).map(|s| f64::from(s == seed)).collect::<Vec<_>>());
        Self {
            claim: claim.clone(),
            real: real(claim),
            columns: (0..seeds).map(column).collect(),
            seeds: SeedNoise::new(&Key::from_seed_insecure(11), Cipher::default()),
            fresh,
            run: 0,
            step: 0,
            draws: 0,
        }
    }
}

impl Mechanism for Naive {
    fn sum(&mut self, inputs: &AuditInputs, batch: &[usize]) -> Result<Vec<f64>, Error> {
        self.real.sum(inputs, batch)
    }

    fn begin(&mut self, run: u64, _: usize, _: usize) -> Result<(), Error> {
        (self.run, self.step) = (run, 0);
        Ok(())
    }

    /// It stores no past.
    fn interrupt(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn noisy_sum(&mut self, inputs: &AuditInputs, batch: &[usize]) -> Result<Vec<f64>, Error> {
        let mut out = self.sum(inputs, batch)?;
        let mut z = vec![0.0; out.len()];
        for (seed, column) in self.columns.iter().enumerate().filter(|(_, column)| column[self.step] != 0.0) {
            self.draws += 1;
            let number = if self.fresh { self.draws } else { seed as u64 };
            self.seeds.fill_f64(self.run << 32 | number, 0, &mut z);
            let weight = column[self.step] * self.claim.noise_std;
            out.iter_mut().zip(&z).for_each(|(out, z)| *out += weight * z);
        }
        self.step += 1;
        Ok(out)
    }
}

#[test]
fn seed_noise_drawn_anew_at_each_use() {
    for strategy in strategies() {
        let claim = claim(&strategy);
        let report = run(&claim, &mut Naive::new(&claim, false));
        assert!(report.accepted, "{report:#?}");
        assert_rejected(&run(&claim, &mut Naive::new(&claim, true)), "variance at each step");
    }
}

/// A fault in a run of the real mechanism.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    Nothing,
    /// The recursion's past is forgotten midway, and the run continues with another key, or with the same key
    /// from its start.
    Reset {
        same_key: bool,
    },
    /// The last two of eight runs share a key.
    OneKey,
    /// One row of noise is used for both halves of the coordinates.
    Halves,
    /// Every process counts its coordinates from 0.
    SharedCounters,
    /// The past of the noise is not in the checkpoint: it restarts after a resumption.
    PastLost,
    /// The resumed run repeats the previous step: an older checkpoint.
    StepRepeated,
    /// Momentum is applied to sums before noise is added.
    MomentumBeforeNoise,
    /// Each example's gradient is in the sum of the next step too.
    SumTwice,
}

/// Each fault, the test that detects it, and the strategies with which it can be detected: independent noise
/// has no past.
const FAULTS: [(Fault, &str); 9] = [
    // Which test detects it depends on how far back the strategy looks.
    (Fault::Reset { same_key: false }, ""),
    (Fault::Reset { same_key: true }, ""),
    (Fault::OneKey, "correlation between runs"),
    (Fault::Halves, "halves of the coordinates"),
    (Fault::SharedCounters, "processes"),
    (Fault::PastLost, "resumption"),
    (Fault::StepRepeated, "resumption"),
    (Fault::MomentumBeforeNoise, "variance of the noise"),
    (Fault::SumTwice, "variance"),
];

struct Broken {
    real: BuiltinMechanism,
    fault: Fault,
    run: u64,
    step: usize,
    dim: usize,
    processes: usize,
    /// The earlier sums that the fault keeps.
    kept: Vec<f64>,
    skipped: bool,
}

impl Broken {
    fn new(claim: &Claim, fault: Fault) -> Self {
        Self {
            real: real(claim),
            fault,
            run: 0,
            step: 0,
            dim: 0,
            processes: 1,
            kept: Vec::new(),
            skipped: false,
        }
    }

    fn restart(&mut self, run: u64) -> Result<(), Error> {
        self.real.begin(run, self.dim, 1)
    }

    /// The sum to which noise is added.
    fn spoiled(&mut self, sum: Vec<f64>) -> Vec<f64> {
        let (keep, own) = match self.fault {
            Fault::MomentumBeforeNoise => (0.9, 1.0),
            Fault::SumTwice => (0.0, 1.0),
            _ => return sum,
        };
        let before = self.kept.clone();
        self.kept = before.iter().zip(&sum).map(|(kept, sum)| keep * kept + own * sum).collect();
        match self.fault {
            Fault::SumTwice => before.iter().zip(&sum).map(|(before, sum)| before + sum).collect(),
            _ => self.kept.clone(),
        }
    }
}

impl Mechanism for Broken {
    fn sum(&mut self, inputs: &AuditInputs, batch: &[usize]) -> Result<Vec<f64>, Error> {
        self.real.sum(inputs, batch)
    }

    fn begin(&mut self, run: u64, dim: usize, processes: usize) -> Result<(), Error> {
        (self.run, self.step, self.dim, self.processes) = (run, 0, dim, processes);
        self.kept = vec![0.0; dim];
        match self.fault {
            Fault::OneKey => self.real.begin(run.min(6), dim, processes),
            Fault::SharedCounters => self.real.begin(run, dim, 1),
            _ => self.real.begin(run, dim, processes),
        }
    }

    fn interrupt(&mut self) -> Result<(), Error> {
        match self.fault {
            // A run with another number has an empty past of its own.
            Fault::PastLost => self.restart(self.run + 1000),
            Fault::StepRepeated => {
                self.skipped = true;
                self.restart(self.run)
            }
            _ => self.real.interrupt(),
        }
    }

    fn noisy_sum(&mut self, inputs: &AuditInputs, batch: &[usize]) -> Result<Vec<f64>, Error> {
        if let Fault::Reset { same_key } = self.fault
            && self.step == STEPS / 2
        {
            self.restart(self.run + if same_key { 0 } else { 1000 })?;
        }
        if std::mem::take(&mut self.skipped) {
            for _ in 1..self.step {
                self.real.noisy_sum(inputs, &[])?;
            }
        }
        self.step += 1;
        // The real noise: the noisy sum of an empty batch.
        let (sum, mut noise) = (self.sum(inputs, batch)?, self.real.noisy_sum(inputs, &[])?);
        match self.fault {
            Fault::Halves => {
                let half = noise.len() / 2;
                noise.copy_within(..half, half);
            }
            Fault::SharedCounters => {
                let cut = |process: usize| process * self.dim / self.processes;
                for process in 1..self.processes {
                    let (from, to) = (cut(process), cut(process + 1));
                    noise.copy_within(..to - from, from);
                }
            }
            _ => {}
        }
        Ok(self.spoiled(sum).into_iter().zip(noise).map(|(sum, noise)| sum + noise).collect())
    }
}

/// A table of each fault with each strategy.
#[test]
fn every_fault_of_a_run_is_rejected() {
    for strategy in strategies() {
        let claim = claim(&strategy);
        let report = run(&claim, &mut Broken::new(&claim, Fault::Nothing));
        assert!(report.accepted, "{report:#?}");
        for (fault, by) in FAULTS {
            let report = run(&claim, &mut Broken::new(&claim, fault));
            let by_all: Vec<&str> =
                report.tests.iter().filter(|test| test.rejected).map(|test| test.name.as_str()).collect();
            println!("{fault:?}: {by_all:?}");
            assert_rejected(&report, by);
        }
    }
}

#[test]
fn noise_a_tenth_too_small() {
    for strategy in strategies() {
        let claim = claim(&strategy);
        let smaller = Claim { noise_std: 0.9 * claim.noise_std, ..claim.clone() };
        assert_rejected(&run(&claim, &mut real(&smaller)), "variance of the noise");
    }
}

/// The definition of clipping, example by example, summed in the given precision, `chunk` examples at a time.
struct Summed {
    real: BuiltinMechanism,
    single: bool,
    chunk: usize,
}

impl Mechanism for Summed {
    fn sum(&mut self, inputs: &AuditInputs, batch: &[usize]) -> Result<Vec<f64>, Error> {
        Ok(sum_by_definition(inputs, batch, 1.0, self.single, self.chunk))
    }

    fn begin(&mut self, run: u64, dim: usize, processes: usize) -> Result<(), Error> {
        self.real.begin(run, dim, processes)
    }

    fn interrupt(&mut self) -> Result<(), Error> {
        self.real.interrupt()
    }

    fn noisy_sum(&mut self, inputs: &AuditInputs, batch: &[usize]) -> Result<Vec<f64>, Error> {
        // The real noise: the noisy sum of an empty batch.
        let noise = self.real.noisy_sum(inputs, &[])?;
        Ok(self.sum(inputs, batch)?.into_iter().zip(noise).map(|(sum, noise)| sum + noise).collect())
    }
}

#[test]
fn sums_in_single_precision() {
    let claim = claim(&strategies()[1]);
    let settings = Settings { examples: 60_000, ..settings() };
    for chunk in [1, 64] {
        for single in [false, true] {
            let mut mechanism = Summed { real: real(&claim), single, chunk };
            let report = audit(&claim, &mut mechanism, &settings).unwrap();
            println!("chunks of {chunk}, single {single}: {:?}", report.tests[1]);
            if single { assert_rejected(&report, "sum") } else { assert!(report.accepted, "{report:#?}") }
        }
    }
}

/// Twice the clip norm: as if an example occurred twice in a batch.
#[test]
fn gradients_clipped_to_twice_the_norm() {
    let claim = claim(&strategies()[1]);
    let longer = Claim { clip_norm: 2.0 * claim.clip_norm, ..claim.clone() };
    assert_rejected(&run(&claim, &mut real(&longer)), "sum");
}
