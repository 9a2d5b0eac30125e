//! Studies of characters: the bits of rounds from Rust, stopped and resumed, what is saved, and what is
//! refused.

mod common;

use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use antinoise_federated::lstm::{Lstm, SavedLstm, UserTexts};
use antinoise_federated::plays::{VOCAB_SIZE, parse_plays, truncated};
use antinoise_federated::{FederatedSetup, Federation, LocalSteps};
use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use antinoise_plan::{Length, Plan, Setting};
use antinoise_study::{Error, Local, ModelName, Outcome, Settings, StudyRun, Texts};
use common::{check_refused, trained, warns};

const ROUNDS: usize = 8;
const SPEAKERS: usize = 40;
const LOCAL: Local =
    Local { learning_rate: 0.3, batch_size: Some(2), epochs: 1, most_steps: Some(3), zero_beyond: Some(4.0) };

/// A line of a speaker.
fn line(speaker: usize, i: usize) -> String {
    const WORDS: [&str; 7] = ["Who", "goes", "there?", "Speak,", "my", "lord", "of night!"];
    (0..3 + (speaker + i) % 4).map(|j| WORDS[(speaker * 5 + i * 3 + j * j) % 7]).collect::<Vec<_>>().join(" ")
}

/// The number of lines of a speaker.
fn lines(speaker: usize) -> usize {
    1 + speaker % 5
}

/// The lines of some speakers as a table.
fn table(path: &Path, speakers: impl Iterator<Item = usize>) {
    let mut text = String::from("speaker,line\n");
    for speaker in speakers {
        (0..lines(speaker)).for_each(|i| writeln!(text, "S{speaker},\"{}\"", line(speaker, i)).unwrap());
    }
    std::fs::write(path, text).unwrap();
}

/// The same lines as a play.
fn play(speakers: impl Iterator<Item = usize>) -> String {
    let speech = |speaker| {
        let said: String = (0..lines(speaker)).map(|i| line(speaker, i) + "\n").collect();
        format!("S{speaker}:\n{said}\n")
    };
    speakers.map(speech).collect()
}

fn settings(folder: &Path) -> Settings {
    let (training, test) = (folder.join("training.csv"), folder.join("test.csv"));
    table(&training, 0..SPEAKERS);
    table(&test, SPEAKERS..SPEAKERS + 6);
    let texts = Texts {
        column: "line".into(),
        user: "speaker".into(),
        test: Some(test),
        test_share: 0.2,
        test_seed: 0,
        delimiter: b',',
        max_characters: 50,
        sequence_length: 12,
        embedding: 3,
        hidden: 5,
    };
    Settings {
        texts: Some(texts),
        mechanisms: Some(vec!["blt:2".parse().unwrap()]),
        lengths: vec![Length::Steps(ROUNDS)],
        batch_size: Some(10),
        settings: vec![Setting::Federated { min_sep: 4, max_participations: Some(2) }],
        learning_rates: vec![0.5],
        seed: Some(7),
        local: Some(LOCAL),
        ..Settings::new(format!("csv:{}", training.display()))
    }
}

fn bits(parameters: &[f32]) -> Vec<u32> {
    parameters.iter().map(|x| x.to_bits()).collect()
}

/// A study of a table has the bits of rounds from Rust on the same lines as a play, whole and stopped after
/// any round; its accuracy is that of the saved model on the test speakers.
#[test]
fn a_study_of_texts_has_the_bits_of_rounds_from_rust() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    let Outcome::One(result) = trained(&settings(folder.path()), &whole, usize::MAX).unwrap() else {
        panic!("one epsilon")
    };
    let saved = SavedLstm::load(&whole.join("model")).unwrap();

    let model = Lstm::new(VOCAB_SIZE, 3, 5).unwrap();
    let texts = truncated(parse_plays(&play(0..SPEAKERS)).unwrap(), 50).unwrap();
    let population = &UserTexts::new(model, texts, 12).unwrap();
    let plan = &Plan::load(&whole.join("model/plan.toml")).unwrap();
    let local =
        LocalSteps { learning_rate: 0.3, batch_size: 2, epochs: 1, most_steps: 3, zero_beyond: Some(4.0) };
    let settings = settings(folder.path());
    let optimizer = settings.optimizer.rule.with_learning_rate(0.5).into();
    let setup = FederatedSetup { plan, population, local, optimizer };
    let (key, run) = (Key::from_seed_insecure(7), RunId::new("seed 7/blt-2-lr0.5-0").unwrap());
    let start = model.initial_parameters(&mut KeyedRng::new(&key, &run, Purpose::Initialization, 0));
    let mut federation = Federation::begin(setup, &folder.path().join("rust"), run, start, key).unwrap();
    (0..ROUNDS).for_each(|_| drop(federation.round(|_, _| true).unwrap()));
    assert_eq!(bits(saved.parameters()), bits(federation.parameters()));

    for stop_after in [1, 5, ROUNDS - 1] {
        let part = folder.path().join(format!("part-{stop_after}"));
        let Err(stopped) = trained(&settings, &part, stop_after) else { panic!("not stopped") };
        assert!(matches!(stopped, Error::Stopped { at: Some((step, ROUNDS)), .. } if step == stop_after));
        trained(&settings, &part, usize::MAX).unwrap();
        assert_eq!(SavedLstm::load(&part.join("model")).unwrap(), saved);
    }

    let test = saved.users_of(parse_plays(&play(SPEAKERS..SPEAKERS + 6)).unwrap()).unwrap();
    let found = test.evaluate(saved.parameters());
    assert_eq!(result.runs[0].test_accuracy, found.accuracy);
    assert_eq!(result.runs[0].tested.count(), found.symbols);
    assert_eq!(result.largest_class_share, test.largest_share());
    let read = |name: &str| {
        let text = std::fs::read_to_string(whole.join("model").join(name)).unwrap();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(read("statement.txt").contains("rows with one name in the column \"speaker\""));
    assert!(read("README.md").contains("predicts the next of 64 characters from at most 12 before it"));
    assert!(read("README.md").contains("| training users | 40 |"));
}

/// A table that was altered after the study began is refused when it resumes.
#[test]
fn other_texts_are_refused_when_a_study_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    assert!(trained(&settings(folder.path()), &out, 3).is_err());
    let refused = || {
        let resumed = StudyRun::resumed(&out, None, None).unwrap();
        resumed.train(&AtomicBool::new(false), &|_| ()).expect_err("other texts").to_string()
    };
    let training = folder.path().join("training.csv");
    let text = std::fs::read_to_string(&training).unwrap();
    std::fs::write(&training, text.replacen("lord", "lady", 1)).unwrap();
    assert!(refused().contains("users and model"), "{}", refused());
    std::fs::write(&training, text).unwrap();
    let test = folder.path().join("test.csv");
    let text = std::fs::read_to_string(&test).unwrap();
    std::fs::write(&test, text.replacen("lord", "lady", 1)).unwrap();
    assert!(refused().contains("test data is altered"), "{}", refused());
    std::fs::write(&test, text).unwrap();
    StudyRun::resumed(&out, None, None).unwrap().train(&AtomicBool::new(false), &|_| ()).unwrap();
}

/// Names that may be one person's are warned of, those of test users too.
#[test]
fn similar_names_are_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    for (of_test, is_similar) in [("Z1", false), ("s7", true)] {
        let settings = settings(folder.path());
        std::fs::write(folder.path().join("test.csv"), format!("speaker,line\n{of_test},Who?\n")).unwrap();
        let out = folder.path().join(of_test);
        assert_eq!(warns(&settings, &out, "1 user has a name that differs"), is_similar, "{of_test}");
    }
}

/// A plan of other batches has no rounds to train in.
#[test]
fn plans_without_rounds_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    let cyclic = antinoise_plan::Request {
        dim: Lstm::new(VOCAB_SIZE, 3, 5).unwrap().parameters(),
        ..antinoise_plan::Request::new(SPEAKERS, 10, Length::Steps(ROUNDS), Setting::Cyclic)
    };
    std::fs::write(&path, antinoise_plan::choose(&cyclic).unwrap().plan.to_toml()).unwrap();
    let settings = Settings { plan: Some(path), lengths: Vec::new(), local: None, ..settings(folder.path()) };
    let words = "plan is one with cyclic batches but must be one of federated";
    check_refused(&settings, &folder.path().join("out"), words);
}

#[test]
fn settings_that_characters_do_not_have_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let settings = || settings(folder.path());
    let texts = || settings().texts.unwrap();
    let cyclic = vec![Setting::Cyclic];
    let with = |texts: Texts| Settings { texts: Some(texts), ..settings() };
    for (refused, words) in [
        (
            Settings { settings: cyclic, ..settings() },
            "setting is cyclic but must be federated where characters",
        ),
        (Settings { learning_rates: Vec::new(), ..settings() }, "learning_rate is absent"),
        (Settings { audit: Some(4), ..settings() }, "audit is given but must be left out where characters"),
        (Settings { without_noise: true, ..settings() }, "without_noise is given"),
        (Settings { model: Some(ModelName::Mlp), ..settings() }, "model is given"),
        (Settings { data: "digits".into(), ..settings() }, "data is \"digits\" but must be csv:PATH"),
        (with(Texts { column: "speaker".into(), ..texts() }), "another column than that of the texts"),
        (with(Texts { max_characters: 0, ..texts() }), "max_characters is 0"),
        (with(Texts { sequence_length: 0, ..texts() }), "sequence_length is 0"),
        (with(Texts { embedding: 0, ..texts() }), "is 0"),
        (with(Texts { hidden: usize::MAX, ..texts() }), "hidden"),
        (with(Texts { test: None, test_share: 1.0, ..texts() }), "test_share is 1"),
        (Settings { texts: None, ..settings() }, "data is \"csv:"),
        (Settings { model: Some(ModelName::Lstm), ..Settings::new("digits") }, "model is lstm but must be"),
    ] {
        check_refused(&refused, &out, words);
    }
}
