//! A study from Rust: its events, its stop and resumption, and what it refuses.

use std::cell::{Cell, RefCell};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use antinoise_input::BadInput;
use antinoise_plan::{Length, Setting};
use antinoise_study::{Error, Event, ModelName, Outcome, Persons, Published, Settings, StudyRun, Table};
use antinoise_train::data::{Missing, Schema};

const STEPS: usize = 30;

/// One private training of one mechanism, whose noise follows from a seed, and one without privacy.
fn settings() -> Settings {
    Settings {
        model: Some(ModelName::Logistic),
        mechanisms: Some(vec!["blt:2".parse().unwrap()]),
        lengths: vec![Length::Steps(STEPS)],
        settings: vec![Setting::Cyclic],
        learning_rates: vec![0.5],
        repeats: Some(1),
        seed: Some(7),
        ..Settings::new("digits")
    }
}

fn model(folder: &Path) -> Vec<u8> {
    fs::read(folder.join("model/model.safetensors")).unwrap()
}

fn accuracies(outcome: Outcome) -> Vec<Vec<f64>> {
    let Outcome::One(result) = outcome else { panic!("one epsilon") };
    result.runs.into_iter().map(|run| run.test_accuracies).collect()
}

/// Wherever a study is stopped, it resumes to the bit, and its events add up to the steps of all runs.
#[test]
fn a_stopped_study_resumes_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    let never = AtomicBool::new(false);
    let run = StudyRun::new(&settings(), &whole, None, &|_| ()).unwrap();
    let wanted = accuracies(run.train(&never, &|_| ()).unwrap());
    for stop_after in [1, 17, STEPS + 5] {
        let part = folder.path().join(format!("part-{stop_after}"));
        let (stop, computed) = (AtomicBool::new(false), Cell::new(0));
        let on_event = |event: Event<'_>| {
            if event == Event::Stepped {
                computed.set(computed.get() + 1);
                stop.store(computed.get() >= stop_after, Ordering::Relaxed);
            }
        };
        let run = StudyRun::new(&settings(), &part, None, &|_| ()).unwrap();
        let stopped = run.train(&stop, &on_event).unwrap_err();
        assert!(matches!(&stopped, Error::Stopped { folder, .. } if *folder == part), "{stopped}");
        assert!(!stopped.is_bad_input());

        let events = RefCell::new(Vec::new());
        let count = |event: Event<'_>| {
            events.borrow_mut().push(match event {
                Event::Stepped => 1,
                Event::Skipped { steps } => steps,
                _ => 0,
            });
        };
        let resumed = StudyRun::resumed(&part, None, None).unwrap();
        assert_eq!(accuracies(resumed.train(&never, &count).unwrap()), wanted);
        assert_eq!(model(&part), model(&whole));
        assert_eq!(events.into_inner().iter().sum::<u64>(), 2 * STEPS as u64);
    }
}

/// Every refusal names its parameter, and leaves no folder.
#[test]
fn settings_that_cannot_be_trained_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let schema =
        Schema { label: "y".into(), classes: Vec::new(), missing: Missing::Refuse, columns: Vec::new() };
    let (test, test_seed, user) = (None, None, None);
    let table = Table { test, test_share: 0.2, test_seed, delimiter: b',', user, schema };
    let refused = [
        ("data", Settings::new("absent")),
        ("table", Settings { table: Some(table), ..settings() }),
        ("settings", Settings { settings: Vec::new(), ..settings() }),
        ("mechanisms", Settings { mechanisms: Some(Vec::new()), ..settings() }),
        ("learning_rate", Settings { learning_rates: vec![0.5, 0.5], ..settings() }),
        ("epsilon", Settings { epsilons: vec![1.0, 1.0], ..settings() }),
        ("epsilon", Settings { epsilons: vec![1.0], plan: Some("plan.toml".into()), ..settings() }),
        ("epsilon", Settings { epsilons: vec![1.0, 2.0], plan: Some("plan.toml".into()), ..settings() }),
        ("epochs", Settings { lengths: vec![Length::Epochs(2), Length::Epochs(2)], ..settings() }),
        ("length", Settings { lengths: vec![Length::Epochs(2), Length::Steps(30)], ..settings() }),
        ("length", Settings { plan: Some("plan.toml".into()), ..settings() }),
        (
            "epsilon",
            Settings {
                epsilons: vec![1.0, 2.0],
                lengths: vec![Length::Steps(9), Length::Steps(15)],
                ..settings()
            },
        ),
        ("repeats", Settings { repeats: Some(0), ..settings() }),
        ("published_models", Settings { published: Published::Some(0), ..settings() }),
        ("published_models", Settings { published: Published::Some(2), ..settings() }),
        ("max_examples_per_user", Settings { max_examples_per_user: Some(3), ..settings() }),
        ("unit of the plan", Settings { persons: Some(Persons::Folders), ..settings() }),
        ("audit", Settings { audit: Some(0), ..settings() }),
    ];
    for (name, settings) in &refused {
        let out = folder.path().join("out");
        let error = StudyRun::new(settings, &out, None, &|_| ()).err().expect(name);
        assert!(error.to_string().starts_with(name) && error.is_bad_input(), "{name}: {error}");
        assert!(!out.exists(), "{name}");
    }
    assert_eq!(refused.len(), 18);
}

/// A folder holds one study, which is resumed where it is.
#[test]
fn a_folder_that_holds_a_study_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    drop(StudyRun::new(&settings(), &out, None, &|_| ()).unwrap());
    let taken = StudyRun::new(&settings(), &out, None, &|_| ()).err().unwrap();
    assert!(matches!(&taken, Error::Taken(path) if *path == out), "{taken}");
    assert!(StudyRun::resumed(folder.path(), None, None).err().unwrap().is_bad_input());
    assert!(StudyRun::resumed(&out, Some(Published::All), None).is_ok());
}
