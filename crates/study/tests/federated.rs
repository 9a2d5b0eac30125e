//! Studies in federated rounds: the same bits as rounds from Rust, stopped and resumed, and what is refused.

mod common;

use std::path::Path;

use antinoise_federated::{FederatedSetup, Federation, LocalSteps, UserExamples};
use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use antinoise_plan::{Length, Plan, Setting};
use antinoise_study::{ClipBy, Error, Local, ModelName, Persons, Settings, load};
use antinoise_train::optimizer::{OptimizerConfig, Schedule, UpdateRule};
use antinoise_train::saved_model::SavedModel;
use common::{check_refused, trained, warns};

const ROUNDS: usize = 12;
const LOCAL: Local =
    Local { learning_rate: 0.3, batch_size: Some(5), epochs: 2, most_steps: Some(7), zero_beyond: Some(4.0) };

/// Digits of 90 writers, 16 each, in rounds of 15.
fn settings(folder: &Path) -> Settings {
    let writers = folder.join("writers.txt");
    let names: String = (0..1440).map(|i| format!("writer {}\n", i % 90)).collect();
    std::fs::write(&writers, names).unwrap();
    Settings {
        persons: Some(Persons::Lines(writers)),
        model: Some(ModelName::Mlp),
        mechanisms: Some(vec!["blt:2".parse().unwrap()]),
        lengths: vec![Length::Steps(ROUNDS)],
        batch_size: Some(15),
        settings: vec![Setting::Federated { min_sep: 4, max_participations: Some(2) }],
        learning_rates: vec![0.5],
        optimizer: OptimizerConfig {
            schedule: Schedule { warm_up: 0, decay: "cooldown:0.25,0.05".parse().unwrap() },
            weight_decay: 0.01,
            ..UpdateRule::Sgd { learning_rate: 1.0, momentum: 0.9 }.into()
        },
        repeats: Some(1),
        seed: Some(7),
        local: Some(LOCAL),
        ..Settings::new("digits")
    }
}

fn parameters(out: &Path) -> Vec<u32> {
    let model = SavedModel::load(&out.join("model")).unwrap();
    model.parameters().iter().map(|x| x.to_bits()).collect()
}

/// A study's model has the bits of rounds from Rust under the same key, whole and stopped after any round.
#[test]
fn a_study_in_rounds_has_the_bits_of_rounds_from_rust() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    trained(&settings(folder.path()), &whole, usize::MAX).unwrap();

    let settings = settings(folder.path());
    let dataset = load("digits", None, settings.persons.as_ref()).unwrap();
    let model = ModelName::Mlp.build(&dataset).unwrap();
    let plan = &Plan::load(&whole.join("model/plan.toml")).unwrap();
    let population = &UserExamples::new(&model, &dataset.train, dataset.users.as_ref().unwrap()).unwrap();
    let local =
        LocalSteps { learning_rate: 0.3, batch_size: 5, epochs: 2, most_steps: 7, zero_beyond: Some(4.0) };
    let rule = settings.optimizer.rule.with_learning_rate(0.5);
    let setup =
        FederatedSetup { plan, population, local, optimizer: OptimizerConfig { rule, ..settings.optimizer } };
    let (key, run) = (Key::from_seed_insecure(7), RunId::new("seed 7/blt-2-lr0.5-0").unwrap());
    let start = model.initial_parameters(&mut KeyedRng::new(&key, &run, Purpose::Initialization, 0));
    let mut federation = Federation::begin(setup, &folder.path().join("rust"), run, start, key).unwrap();
    (0..ROUNDS).for_each(|_| drop(federation.round(|_, _| true).unwrap()));
    let bits: Vec<u32> = federation.parameters().iter().map(|x| x.to_bits()).collect();
    assert_eq!(parameters(&whole), bits);

    for stop_after in [1, 5, ROUNDS - 1] {
        let part = folder.path().join(format!("part-{stop_after}"));
        let stopped = trained(&settings, &part, stop_after).unwrap_err();
        assert!(matches!(stopped, Error::Stopped { at: Some((step, ROUNDS)), .. } if step == stop_after));
        trained(&settings, &part, usize::MAX).unwrap();
        assert_eq!(parameters(&part), bits);
    }
    let statement = std::fs::read_to_string(whole.join("model/statement.txt")).unwrap();
    assert!(
        statement
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .contains("2 passes over batches of at most 5, at most 7 steps")
    );
}

#[test]
fn rounds_that_do_not_fill_are_said() {
    let folder = tempfile::tempdir().unwrap();
    for (min_sep, max_participations, is_short) in [(6, None, false), (7, None, true), (1, Some(1), true)] {
        let setting = Setting::Federated { min_sep, max_participations };
        let settings = Settings { settings: vec![setting], ..settings(folder.path()) };
        let out = folder.path().join(format!("{min_sep}"));
        assert_eq!(
            warns(&settings, &out, "a round on average, not the 15 of the plan"),
            is_short,
            "{min_sep}"
        );
    }
}

#[test]
fn settings_that_rounds_do_not_have_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let settings = || settings(folder.path());
    let cyclic = vec![Setting::Cyclic];
    for (refused, words) in [
        (Settings { persons: None, ..settings() }, "setting is federated but must be one for examples"),
        (Settings { clip_by: ClipBy::Layer, ..settings() }, "clip_by is layer but must be whole"),
        (Settings { max_examples_per_user: Some(3), ..settings() }, "max_examples_per_user is given"),
        (Settings { settings: cyclic, ..settings() }, "local training is given but must be left out"),
        (Settings { local: Some(Local { learning_rate: 0.0, ..LOCAL }), ..settings() }, "local_rate is 0"),
        (Settings { audit: Some(4), ..settings() }, "audit is 4"),
    ] {
        check_refused(&refused, &out, words);
    }
}
