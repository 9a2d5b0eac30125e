//! Runs that are killed repeatedly, at random moments and before each change of a file, in processes of their
//! own.
//!
//! Each process of a run writes a diary: the number from which a fresh key is made, and a digest of the
//! parameters after each step, a function of all batches, gradients and noise so far. Whatever the kills, the
//! entries must equal those of an uninterrupted run with that key: otherwise the noise of one step hid two
//! different sums.
//!
//! `ANTINOISE_KILLS=200 cargo test --release -p antinoise-train --test kills -- --nocapture` for more kills.

mod common;

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use antinoise_noise::RunId;
use antinoise_plan::{ArithmeticKind, Plan, Setting, VerifiedPlan};
use antinoise_train::checkpoint::{Checkpoints, Committed, Finished};

use antinoise_train::trainer::{CheckpointInterval, Options, Outcome, Trainer};
use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use common::{ADAM, Case, SGD, planned};
use sha2::{Digest, Sha256};

/// The change of a file before which the process ends.
const FAILPOINT: &str = "ANTINOISE_FAILPOINT";
/// The folder of the run of this process.
const LIFE: &str = "ANTINOISE_TEST_LIFE";
const KILLS: usize = 12;
/// Number of processes of a run that are killed; the next one may end normally.
const KILLS_A_RUN: usize = 5;
const PLAN: &str = "plan.toml";
const DIARY: &str = "diary";
const RUN: &str = "run";
const MANIFEST: &str = "checkpoint.toml";

fn case(folder: &Path) -> Case {
    let plan = Plan::load(&folder.join(PLAN)).unwrap();
    // One of the two has second moments, which are saved too.
    let rule = if plan.arithmetic.kind() == ArithmeticKind::Grid { ADAM } else { SGD };
    Case::small(plan, rule)
}

fn digest(trainer: &Trainer) -> String {
    let mut digest = Sha256::new();
    trainer.parameters().iter().for_each(|x| digest.update(x.to_le_bytes()));
    format!("{:x?}", &digest.finalize()[..8])
}

/// A run of `case` whose key is made from `seed`.
fn anew(case: &Case, seed: u64) -> Trainer<'_> {
    case.trainer_with(seed)
}

/// One process of a run; the test below starts it.
#[test]
#[ignore = "a life of a run that is to be killed"]
fn life() {
    let Some(folder) = std::env::var_os(LIFE) else { return };
    let folder = Path::new(&folder);
    let case = case(folder);
    let mut diary = OpenOptions::new().append(true).create(true).open(folder.join(DIARY)).unwrap();
    println!("\nborn");
    let checkpoints = Checkpoints::open(&folder.join(RUN), RunId::default()).unwrap();
    let mut trainer = match checkpoints.committed().unwrap() {
        Committed::Empty => {
            let mut seed = [0; 8];
            // Later processes must not have it.
            std::io::Read::read_exact(&mut fs::File::open("/dev/urandom").unwrap(), &mut seed).unwrap();
            let seed = u64::from_le_bytes(seed);
            note(&mut diary, format!("anew {seed}\n"));
            anew(&case, seed)
        }
        Committed::Unfinished { .. } => Trainer::resume(case.setup(), &checkpoints).unwrap(),
        Committed::Finished => return,
    };
    let options =
        Options { test_every: 100, checkpoints: Some((&checkpoints, CheckpointInterval::every(2))) };
    let write_down = |trainer: &Trainer| {
        note(&mut diary, format!("step {} {}\n", trainer.step_count(), digest(trainer)));
    };
    assert_eq!(trainer.run(&options, &AtomicBool::new(false), write_down).unwrap(), Outcome::Finished);
}

/// Writes a whole line or nothing, even if killed.
fn note(diary: &mut fs::File, line: String) {
    assert_eq!(diary.write(line.as_bytes()).unwrap(), line.len());
}

/// Starts a process of the run in `folder`.
fn life_in(folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "life", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(LIFE, folder).env("RAYON_NUM_THREADS", "1");
    command
}

/// Starts a process, and waits until its run is about to begin.
fn born(folder: &Path) -> Child {
    let mut child = life_in(folder).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("born")));
    // Further output is discarded, but must not block the process.
    std::thread::spawn(move || lines.for_each(drop));
    child
}

#[derive(Debug, Default)]
struct Count {
    kills: usize,
    before_the_first_commit: usize,
    with_files_uncommitted: usize,
    resumed: usize,
    after_the_end: usize,
    runs: usize,
}

impl Count {
    /// Whether a process ended before the first commit, and left files that no commit names: with no commit,
    /// or next to the files of the last one.
    fn look_at(&mut self, folder: &Path) {
        let run = folder.join(RUN);
        let left = fs::read_dir(&run).map_or(0, |files| files.count());
        let committed = run.join(MANIFEST).exists();
        self.before_the_first_commit += usize::from(!committed);
        // The lock; the manifest and the two files that it names.
        self.with_files_uncommitted += usize::from(left > if committed { 4 } else { 1 });
    }
}

/// Kills a run up to a number of times, lets it end, and compares its diary with an uninterrupted run.
fn kill_and_compare(
    plan: &VerifiedPlan,
    kills: usize,
    whole_life: &mut Duration,
    rng: &mut ChaCha8Rng,
    count: &mut Count,
) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    plan.save(&folder.join(PLAN)).unwrap();
    let manifest = folder.join(RUN).join(MANIFEST);
    let births = || read_diary(folder).iter().filter(|line| line.starts_with("anew")).count();
    for _ in 0..kills {
        let (committed, before) = (manifest.exists(), births());
        let mut child = born(folder);
        // Early moments are tried more often, since they include the first save.
        let part = rng.next_u32() as f64 / f64::from(u32::MAX);
        std::thread::sleep(whole_life.mul_f64(part * part));
        let ended = child.try_wait().unwrap().is_some();
        child.kill().unwrap();
        child.wait().unwrap();
        // The speed of a machine varies: the estimate follows it.
        *whole_life = whole_life.mul_f64(if ended { 0.7 } else { 1.1 });
        count.kills += usize::from(!ended);
        count.after_the_end += usize::from(ended);
        assert!(!committed || births() == before, "a run with a checkpoint started anew");
        count.resumed += usize::from(committed);
        count.look_at(folder);
    }
    assert!(born(folder).wait().unwrap().success());
    count.runs += 1;
    compare(folder);
}

fn read_diary(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join(DIARY)).unwrap_or_default();
    text.lines().map(String::from).collect()
}

fn compare(folder: &Path) {
    let case = case(folder);
    let (mut expected, mut seen) = (Vec::new(), std::collections::HashSet::new());
    for line in read_diary(folder) {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["anew", seed] => {
                assert!(seen.insert(seed.to_owned()), "a key was used for two starts");
                let mut whole = anew(&case, seed.parse().unwrap());
                expected = (0..case.plan.steps)
                    .map(|_| {
                        whole.step().unwrap();
                        digest(&whole)
                    })
                    .collect();
            }
            ["step", step, ref rest @ ..] => {
                let step: usize = step.parse().unwrap();
                assert_eq!(rest.join(" "), expected[step - 1], "step {step} was made twice, not alike");
            }
            _ => panic!("{line:?}"),
        }
    }
    let checkpoints = Checkpoints::open(&folder.join(RUN), RunId::default()).unwrap();
    let finished = Finished::read(&case.setup().identity(), &checkpoints).unwrap();
    let mut digest = Sha256::new();
    finished.parameters.iter().for_each(|x| digest.update(x.to_le_bytes()));
    assert_eq!(&format!("{:x?}", &digest.finalize()[..8]), expected.last().unwrap());
    let mut names: Vec<_> = fs::read_dir(folder.join(RUN))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(!names.iter().any(|name| name.contains("noise")), "{names:?}");
}

#[test]
fn killed_runs_go_on_to_the_same_bits_or_start_anew_and_make_no_noise_twice() {
    let wanted = std::env::var("ANTINOISE_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let mut rng = ChaCha8Rng::seed_from_u64(wanted as u64);
    for plan in plans() {
        let mut count = Count::default();
        let folder = tempfile::tempdir().unwrap();
        plan.save(&folder.path().join(PLAN)).unwrap();
        let mut child = born(folder.path());
        let start = Instant::now();
        child.wait().unwrap();
        let mut whole_life = start.elapsed();
        while count.kills < wanted.div_ceil(2) || count.resumed == 0 {
            let kills = KILLS_A_RUN.min(wanted.div_ceil(2).saturating_sub(count.kills).max(2));
            kill_and_compare(&plan, kills, &mut whole_life, &mut rng, &mut count);
            assert!(count.runs < 10 * KILLS, "few runs can be killed: {count:?}");
        }
        println!("{:?}: {count:?}", plan.arithmetic);
    }
}

/// For each change of a file, in a run of its own, a process ends before that change, and the next process
/// ends normally. So every moment of a commit occurs: before the first, between two files, before the
/// manifest, before the old files or the key are wiped.
#[test]
fn a_run_that_ends_before_any_change_of_a_file_goes_on_to_the_same_bits() {
    for plan in plans() {
        let mut count = Count::default();
        let finished = (0..1000).find(|failpoint| !ends_before(&plan, *failpoint, &mut count));
        println!("{:?}: {count:?}", plan.arithmetic);
        // Twelve commits of a manifest and two files, and the two old files wiped: two failpoints each.
        assert!(finished.is_some_and(|changes| changes == count.kills && changes > 100), "{finished:?}");
        assert!(count.before_the_first_commit >= 6 && count.with_files_uncommitted >= 30, "{count:?}");
        assert!(count.resumed >= 90, "{count:?}");
    }
}

/// Whether a run's first process ended before that change of a file; if so, its second process resumes.
fn ends_before(plan: &VerifiedPlan, failpoint: usize, count: &mut Count) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    plan.save(&folder.join(PLAN)).unwrap();
    let live = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    };
    let ended = !live(life_in(folder).env(FAILPOINT, failpoint.to_string()));
    count.kills += usize::from(ended);
    count.look_at(folder);
    count.resumed += usize::from(ended && folder.join(RUN).join(MANIFEST).exists());
    assert!(live(&mut life_in(folder)), "{failpoint}");
    compare(folder);
    ended
}

fn plans() -> [VerifiedPlan; 2] {
    [ArithmeticKind::PlainFloatingPoint, ArithmeticKind::Grid]
        .map(|arithmetic| planned(Setting::Cyclic, 4.0, 1.0, arithmetic))
}
