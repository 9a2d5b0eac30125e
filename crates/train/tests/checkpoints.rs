//! Checkpoints: bit-exact resumption, refusals, and which files stay.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use antinoise_input::BadInput;
use antinoise_input::damage::damages;
use antinoise_noise::RunId;
use antinoise_plan::{ArithmeticKind, Setting};
use antinoise_train::checkpoint::{Checkpoints, Committed, Finished};
use antinoise_train::data::Examples;
use antinoise_train::model::Model;
use antinoise_train::optimizer::{Decay, OptimizerConfig, Schedule, UpdateRule};

use antinoise_train::trainer::{CheckpointInterval, Options, Outcome, Trainer};
use common::{ADAM, Case, SGD, plan, planned};
use tempfile::TempDir;

const MANIFEST: &str = "checkpoint.toml";

fn small() -> Case {
    Case::small(plan(Setting::Cyclic, 4.0, 1.0), SGD)
}

fn open(folder: &Path) -> Checkpoints {
    Checkpoints::open(folder, RunId::default()).unwrap()
}

/// A folder with the checkpoint of step 8, its second, of a run with a key of its own.
fn saved(case: &Case, seed: u64) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = open(folder.path());
    let mut trainer = case.trainer_with(seed);
    for _ in 0..2 {
        (0..4).for_each(|_| trainer.step().unwrap());
        trainer.save(&checkpoints).unwrap();
    }
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The error of resuming the run in `folder`.
fn refusal(case: &Case, folder: &Path) -> String {
    let resumed =
        Checkpoints::open(folder, RunId::default()).and_then(|found| Trainer::resume(case.setup(), &found));
    let error = resumed.err().expect("a refusal");
    assert!(error.is_bad_input(), "{error:?}");
    error.to_string()
}

fn run(trainer: &mut Trainer, checkpoints: Option<&Checkpoints>) -> Outcome {
    let options = Options {
        test_every: 5,
        checkpoints: checkpoints.map(|checkpoints| (checkpoints, CheckpointInterval::every(4))),
    };
    trainer.run(&options, &AtomicBool::new(false), |_| ()).unwrap()
}

/// An optimizer with every option.
fn scheduled() -> OptimizerConfig {
    OptimizerConfig {
        rule: UpdateRule::Nesterov { learning_rate: 0.3, momentum: 0.9 },
        schedule: Schedule { warm_up: 6, decay: Decay::Cosine { last: 0.1 } },
        weight_decay: 0.01,
        zero_beyond: Some(0.05),
    }
}

#[test]
fn a_killed_run_resumes_to_the_same_bits() {
    let plain = planned(Setting::Cyclic, 4.0, 1.0, ArithmeticKind::PlainFloatingPoint);
    let cases = [
        (Setting::Cyclic, SGD.into()),
        (Setting::Poisson, SGD.into()),
        (Setting::Cyclic, ADAM.into()),
        (Setting::Cyclic, scheduled()),
    ];
    let cases = cases.map(|(setting, optimizer)| (plan(setting, 4.0, 1.0), optimizer));
    for (plan, optimizer) in cases.into_iter().chain([(plain, SGD.into())]) {
        let case = Case::new(plan, optimizer);
        let mut whole = case.trainer();
        run(&mut whole, None);
        let (folder, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        // The files right after step 10: the last checkpoint is of step 8.
        let checkpoints = open(folder.path());
        let options =
            Options { test_every: 5, checkpoints: Some((&checkpoints, CheckpointInterval::every(4))) };
        let progress = |trainer: &Trainer| {
            if trainer.step_count() == 10 {
                for name in names(folder.path()) {
                    fs::copy(folder.path().join(&name), copy.path().join(&name)).unwrap();
                }
            }
        };
        case.trainer().run(&options, &AtomicBool::new(false), progress).unwrap();
        let checkpoints = open(copy.path());
        assert_eq!(checkpoints.committed().unwrap(), Committed::Unfinished { step: 8 });
        let mut resumed = Trainer::resume(case.setup(), &checkpoints).unwrap();
        assert_eq!(resumed.step_count(), 8);
        run(&mut resumed, Some(&checkpoints));
        assert_eq!(resumed.parameters(), whole.parameters(), "{:?}, {optimizer:?}", case.plan.sampler);
        assert_eq!(resumed.history().losses, whole.history().losses);
        assert_eq!(resumed.history().clipped_shares, whole.history().clipped_shares);
        assert_eq!(resumed.history().accuracies, whole.history().accuracies);
        let finished = Finished::read(&case.setup().identity(), &checkpoints).unwrap();
        assert_eq!((&finished.parameters[..], &finished.history), (resumed.parameters(), resumed.history()));
    }
}

#[test]
fn a_run_that_is_told_to_stop_leaves_a_private_checkpoint_and_nothing_else() {
    let case = small();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("made/by/the/run");
    let checkpoints = open(&folder);
    let mut trainer = case.trainer();
    let options = Options { test_every: 5, checkpoints: Some((&checkpoints, CheckpointInterval::every(4))) };
    let stop = AtomicBool::new(false);
    let outcome =
        trainer.run(&options, &stop, |trainer| stop.store(trainer.step_count() == 6, Ordering::Relaxed));
    assert_eq!((outcome.unwrap(), trainer.step_count()), (Outcome::Stopped, 6));
    let left = [".lock", MANIFEST, "noise-1.safetensors", "training-1.safetensors"];
    assert_eq!(names(&folder), left);
    let resumed = Trainer::resume(case.setup(), &checkpoints).unwrap();
    assert_eq!((resumed.step_count(), resumed.parameters()), (6, trainer.parameters()));
}

#[cfg(unix)]
#[test]
fn folders_and_files_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let case = small();
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("made/by/the run");
    let checkpoints = open(&folder);
    let check = |count: usize| {
        assert_eq!((mode(&folder), mode(&above.path().join("made"))), (0o700, 0o700));
        let names = names(&folder);
        assert_eq!(names.len(), count, "{names:?}");
        names.iter().for_each(|name| assert_eq!(mode(&folder.join(name)), 0o600, "{name}"));
    };
    case.trainer().save(&checkpoints).unwrap();
    check(4);
    run(&mut Trainer::resume(case.setup(), &checkpoints).unwrap(), Some(&checkpoints));
    check(3);
}

#[test]
fn the_noise_of_another_run_is_refused() {
    let case = small();
    let (mine, other) = (saved(&case, 1), saved(&case, 2));
    let copy = |name: &str| fs::copy(other.path().join(name), mine.path().join(name)).unwrap();
    copy("noise-1.safetensors");
    let message = refusal(&case, mine.path());
    assert!(message.contains("noise-1") && message.contains("train in another folder"), "{message}");
    // Together with the manifest that names it, it does not fit the parameters.
    copy(MANIFEST);
    assert!(refusal(&case, mine.path()).contains("training-1"));
    copy("training-1.safetensors");
    assert!(Trainer::resume(case.setup(), &open(mine.path())).is_ok());
}

#[test]
fn a_damaged_file_is_refused_by_name() {
    let case = small();
    let (folder, other) = (saved(&case, 1), saved(&case, 2));
    let mut tried = 0;
    for name in [MANIFEST, "noise-1.safetensors", "training-1.safetensors"] {
        let path = folder.path().join(name);
        let whole = fs::read(&path).unwrap();
        for (kind, damaged) in damages(&whole, &[fs::read(other.path().join(name)).unwrap()]) {
            fs::write(&path, damaged).unwrap();
            assert!(refusal(&case, folder.path()).contains(name), "{name}: {kind}");
            tried += 1;
        }
        fs::write(&path, whole).unwrap();
    }
    assert!(tried > 3 * (400 + 50 + 12 + 5), "{tried}");
    assert_eq!(Trainer::resume(case.setup(), &open(folder.path())).unwrap().step_count(), 8);
}

#[test]
fn an_edited_step_is_refused() {
    let case = small();
    let folder = saved(&case, 1);
    for (name, from, to) in
        [(MANIFEST, "step = 8", "step = 0"), ("training-1.safetensors", "\"step\":\"8\"", "\"step\":\"0\"")]
    {
        let path = folder.path().join(name);
        let whole = fs::read(&path).unwrap();
        let at = whole.windows(from.len()).position(|bytes| bytes == from.as_bytes()).expect(from);
        let mut edited = whole.clone();
        edited[at..at + to.len()].copy_from_slice(to.as_bytes());
        fs::write(&path, edited).unwrap();
        assert!(refusal(&case, folder.path()).contains(name), "{name}");
        fs::write(&path, whole).unwrap();
    }
}

#[test]
fn files_that_are_cut_or_absent_are_refused_by_name() {
    let case = Case::small(plan(Setting::Cyclic, 4.0, 1.0), ADAM);
    let folder = saved(&case, 1);
    for name in ["noise-1.safetensors", "training-1.safetensors"] {
        let path = folder.path().join(name);
        let whole = fs::read(&path).unwrap();
        for length in [0, 1, 7, 8, 9, 100, whole.len() / 2, whole.len() - 1] {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(refusal(&case, folder.path()).contains(name), "{name}, {length} bytes");
        }
        fs::write(&path, [whole.as_slice(), &[0]].concat()).unwrap();
        assert!(refusal(&case, folder.path()).contains(name), "{name}, longer");
        fs::remove_file(&path).unwrap();
        assert!(refusal(&case, folder.path()).contains(name), "{name}, absent");
        fs::write(&path, whole).unwrap();
    }
    // Without a manifest, the second checkpoint is not a leftover of the first: it is kept.
    let kept = folder.path().join("kept");
    fs::rename(folder.path().join(MANIFEST), &kept).unwrap();
    assert!(refusal(&case, folder.path()).contains(MANIFEST));
    fs::rename(&kept, folder.path().join(MANIFEST)).unwrap();
    assert!(Trainer::resume(case.setup(), &open(folder.path())).is_ok());
}

#[test]
fn a_folder_has_one_run_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let held = open(folder.path());
    let message = Checkpoints::open(folder.path(), RunId::default()).unwrap_err().to_string();
    assert!(message.contains("in use by another run"), "{message}");
    assert!(message.contains(&folder.path().display().to_string()), "{message}");
    drop(held);
    open(folder.path());
}

#[test]
fn a_folder_has_one_run_for_ever() {
    let case = small();
    let folder = saved(&case, 1);
    let message = Checkpoints::open(folder.path(), RunId::from(1)).unwrap_err().to_string();
    assert!(message.contains("of run \"0\""), "{message}");
    let checkpoints = open(folder.path());
    let message = case.trainer_with(2).save(&checkpoints).unwrap_err().to_string();
    assert!(message.contains("another key"), "{message}");
    // The same key at an earlier step: its steps would be repeated.
    let message = case.trainer_with(1).save(&checkpoints).unwrap_err().to_string();
    assert!(message.contains("of step 8"), "{message}");
    assert_eq!(checkpoints.committed().unwrap(), Committed::Unfinished { step: 8 });
}

/// All files that a kill can leave before the first manifest: nothing was committed, so the run restarts.
#[test]
fn a_run_killed_within_its_first_save_starts_anew() {
    let case = small();
    let whole = tempfile::tempdir().unwrap();
    case.trainer().save(&open(whole.path())).unwrap();
    let files = ["noise-0.safetensors", "training-0.safetensors"];
    for left in [&files[..0], &files[..1], &files[..]] {
        let folder = tempfile::tempdir().unwrap();
        for name in left {
            fs::copy(whole.path().join(name), folder.path().join(name)).unwrap();
        }
        let checkpoints = open(folder.path());
        assert_eq!(checkpoints.committed().unwrap(), Committed::Empty);
        assert_eq!(names(folder.path()), [".lock"], "no key is left");
        let mut anew = case.trainer_with(77);
        assert_eq!(run(&mut anew, Some(&checkpoints)), Outcome::Finished);
    }
}

#[test]
fn leftovers_are_removed_and_nothing_else() {
    let case = small();
    let folder = saved(&case, 1);
    let write = |name: &str| fs::write(folder.path().join(name), b"key").unwrap();
    let committed = names(folder.path());
    ["noise-0.safetensors", "noise-2.safetensors", "training-2.safetensors"].into_iter().for_each(write);
    [".noise-2.safetensors.tmp-17-0", ".training-2.safetensors.tmp-17-1", ".checkpoint.toml.tmp-17-2"]
        .into_iter()
        .for_each(write);
    let others = ["notes.txt", "noise.safetensors", "noise-two.safetensors", ".notes.tmp"];
    others.into_iter().for_each(write);
    drop(open(folder.path()));
    let mut left = [committed, others.map(String::from).to_vec()].concat();
    left.sort();
    assert_eq!(names(folder.path()), left);
}

#[cfg(unix)]
#[test]
fn a_link_with_a_name_of_ours_is_not_followed() {
    let case = small();
    let folder = saved(&case, 1);
    let precious = folder.path().join("precious");
    fs::write(&precious, b"words").unwrap();
    std::os::unix::fs::symlink(&precious, folder.path().join("noise-7.safetensors")).unwrap();
    drop(open(folder.path()));
    assert_eq!(fs::read(&precious).unwrap(), b"words");
}

#[test]
fn keys_are_gone_after_success_and_the_results_stay() {
    let case = small();
    let folder = saved(&case, 1);
    let noise = folder.path().join("noise-1.safetensors");
    // A hard link to the same file shows what is written over its contents.
    let seen: PathBuf = folder.path().join("seen");
    fs::hard_link(&noise, &seen).unwrap();
    let checkpoints = open(folder.path());
    let mut trainer = Trainer::resume(case.setup(), &checkpoints).unwrap();
    assert!(fs::read(&seen).unwrap().iter().any(|&byte| byte != 0));
    run(&mut trainer, Some(&checkpoints));
    assert!(fs::read(&seen).unwrap().iter().all(|&byte| byte == 0), "the key was written over");
    fs::remove_file(&seen).unwrap();
    assert_eq!(names(folder.path()).len(), 3, "{:?}", names(folder.path()));
    assert!(!names(folder.path()).iter().any(|name| name.contains("noise")));
    assert_eq!(checkpoints.committed().unwrap(), Committed::Finished);
    let finished = Finished::read(&case.setup().identity(), &checkpoints).unwrap();
    assert_eq!((&finished.parameters[..], &finished.history), (trainer.parameters(), trainer.history()));
    assert!(finished.day.starts_with("20") && finished.day.len() == 10, "{}", finished.day);
    trainer.save(&checkpoints).unwrap();
    assert!(refusal_of_finished(&case, &checkpoints).contains("no run that can be resumed"));
}

fn refusal_of_finished(case: &Case, checkpoints: &Checkpoints) -> String {
    Trainer::resume(case.setup(), checkpoints).err().unwrap().to_string()
}

#[test]
fn a_checkpoint_of_another_run_is_refused_by_what_differs() {
    let case = Case::new(plan(Setting::Cyclic, 4.0, 1.0), SGD);
    let folder = saved(&case, 1);
    let refusal = |case: &Case| refusal(case, folder.path());
    assert!(refusal(&Case::new(plan(Setting::Cyclic, 3.0, 1.0), SGD)).contains("another plan"));
    assert!(refusal(&Case::new(case.plan.clone(), ADAM)).contains("another optimizer"));
    let schedule = Schedule { warm_up: 3, ..Schedule::default() };
    for optimizer in [
        OptimizerConfig { schedule, ..SGD.into() },
        OptimizerConfig { weight_decay: 0.1, ..SGD.into() },
        OptimizerConfig { zero_beyond: Some(1e9), ..SGD.into() },
    ] {
        assert!(
            refusal(&Case::new(case.plan.clone(), optimizer)).contains("another optimizer"),
            "{optimizer:?}"
        );
    }
    let mut other = Case::new(case.plan.clone(), SGD);
    other.model = Model::mlp(other.dataset.shape, 10, 8).unwrap();
    assert!(refusal(&other).contains("another model"));
    let mut other = Case::new(case.plan.clone(), SGD);
    let mut features: Vec<f32> = (0..1440).flat_map(|i| other.dataset.train.features(i).to_vec()).collect();
    features[1000] += 1.0;
    other.dataset.train = Examples::new(features, other.dataset.train.labels().to_vec(), 64).unwrap();
    assert!(refusal(&other).contains("another data set"));
}
