//! Users as units: their gradients clipped as one, against the definition and against hostile examples; users
//! of one example each; checkpoints; and the users of tables.

mod common;

use antinoise_input::BadInput;
use antinoise_noise::{Key, RunId};
use antinoise_plan::{Length, PrivacyUnit, Request, Setting, VerifiedPlan, choose};
use antinoise_train::checkpoint::Checkpoints;
use antinoise_train::clip::{
    Clipping, Groups, clipped_sum, clipped_user_sum, plain_sum, sum_margin, user_sum_margin,
};
use antinoise_train::data::{
    Column, Dataset, Examples, ImageShape, Missing, Schema, TableFile, TestPart, Users, Values, digits,
};
use antinoise_train::model::{Activation, Layer, Model, Pooling};
use antinoise_train::trainer::{Setup, Trainer};
use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
use common::{Case, HOSTILE, Random, SGD, plan};

const CLASSES: usize = 3;

impl Random {
    /// Users of 1 to 7 examples each, of consecutive examples.
    fn users(&mut self, count: usize) -> Vec<Vec<usize>> {
        let mut next = 0;
        let mut user = |size: usize| {
            next += size;
            (next - size..next).collect()
        };
        (0..count).map(|_| user([1, 1, 2, 3, 7][self.below(5)])).collect()
    }
}

fn slices(users: &[Vec<usize>]) -> Vec<&[usize]> {
    users.iter().map(Vec::as_slice).collect()
}

/// A linear or a convolutional model, in small chunks.
fn model(random: &mut Random) -> Model {
    let shape = ImageShape { height: 3, width: 3, channels: 1 };
    let mut layers = Vec::new();
    if random.below(2) == 0 {
        layers.extend([
            Layer::Convolution { outputs: 2, kernel: 2, stride: 1, padding: 1 },
            Layer::Pool { kind: Pooling::Max, size: 2, stride: 1 },
            Layer::Activation(Activation::Tanh),
        ]);
    }
    layers.push(Layer::Linear { outputs: CLASSES });
    let model = Model::new("random", shape, CLASSES, &layers).unwrap();
    model.with_chunk(1 + random.below(6)).unwrap()
}

fn length<'a>(x: impl IntoIterator<Item = &'a f64>) -> f64 {
    x.into_iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn examples(features: impl Iterator<Item = f32>, count: usize, random: &mut Random) -> Examples {
    let labels = (0..count).map(|_| random.below(CLASSES) as u32).collect();
    Examples::new(features.take(9 * count).collect(), labels, 9).unwrap()
}

#[test]
fn a_users_part_of_the_sum_is_the_clipped_mean_of_its_gradients() {
    let mut random = Random(ChaCha8Rng::seed_from_u64(1));
    let (mut clipped, mut users_seen) = (0, 0);
    for _ in 0..300 {
        let model = model(&mut random);
        let users = random.users(8);
        let count = users.concat().len();
        let features: Vec<f32> = (0..9 * count).map(|_| 6.0 * random.unit() as f32 - 3.0).collect();
        let examples = examples(features.into_iter(), count, &mut random);
        let start: Vec<f32> = (0..model.parameters()).map(|_| 2.0 * random.unit() as f32 - 1.0).collect();
        let groups = (random.below(2) == 0).then(|| Groups::by_layer(&model.layers()).unwrap());
        let clipping = Clipping { norm: 10f64.powf(2.0 * random.unit() - 0.5), groups: groups.as_ref() };
        let (mut wanted, mut clips, mut loss) = (vec![0.0; start.len()], 0, 0.0);
        for user in &users {
            let sum = plain_sum(&model, &start, &examples, user).unwrap();
            let mean: Vec<f64> = sum.gradient.iter().map(|x| x / user.len() as f64).collect();
            let mut ends = model.layers();
            (1..ends.len()).for_each(|i| ends[i] += ends[i - 1]);
            let parts = if groups.is_some() { ends } else { vec![start.len()] };
            let norm = clipping.norm / (parts.len() as f64).sqrt();
            let (mut from, mut is_clipped) = (0, false);
            for to in parts {
                let factor = (norm / length(&mean[from..to])).min(1.0);
                is_clipped |= factor < 1.0;
                (from..to).for_each(|j| wanted[j] += factor * mean[j]);
                from = to;
            }
            clips += usize::from(is_clipped);
            loss += sum.loss / user.len() as f64;
        }
        let found = clipped_user_sum(&model, &start, &examples, &slices(&users), clipping).unwrap();
        let apart: Vec<f64> = found.gradient.iter().zip(&wanted).map(|(x, y)| x - y).collect();
        assert!(length(&apart) <= 2e-5 * clipping.norm, "{}", length(&apart) / clipping.norm);
        assert!((found.loss - loss).abs() < 1e-5 * loss, "{} {loss}", found.loss);
        assert_eq!(found.clipped, clips);
        (clipped, users_seen) = (clipped + clips, users_seen + users.len());
    }
    assert!(clipped > 300 && clipped < users_seen - 300, "{clipped} of {users_seen}");
}

/// The law that privacy rests on. Examples of a user may be huge and cancel in the mean; they must not
/// disturb what others add.
#[test]
fn no_user_moves_a_sum_further_than_the_clip_norm_whatever_the_examples() {
    let mut random = Random(ChaCha8Rng::seed_from_u64(2));
    let (mut longest, mut left_out) = (0f64, 0);
    for _ in 0..4000 {
        let model = model(&mut random);
        let scale = 10f64.powf(4.0 * random.unit() - 2.0) as f32;
        let start: Vec<f32> =
            (0..model.parameters()).map(|_| scale * (2.0 * random.unit() as f32 - 1.0)).collect();
        let users = random.users(5);
        let mut features = Vec::new();
        for user in &users {
            let kind = random.below(4);
            for example in 0..user.len() {
                features.extend((0..9).map(|j| match kind {
                    0 => HOSTILE[random.below(HOSTILE.len())],
                    1 => HOSTILE[3 + random.below(HOSTILE.len() - 3)],
                    // They cancel, but for rounding.
                    2 => [3e18f32, -3e18, 1.0][(example + j) % 3],
                    _ => 4.0 * random.unit() as f32 - 2.0,
                }));
            }
        }
        let examples = examples(features.into_iter(), users.concat().len(), &mut random);
        let norm = 10f64.powf([-300.0, -6.0, 0.0, 3.0, 100.0][random.below(5)]) * (1.0 + random.unit());
        let groups = Groups::by_layer(&model.layers()).unwrap();
        let clipping = Clipping { norm, groups: (random.below(2) == 0).then_some(&groups) };
        let sum = |users: &[&[usize]]| {
            clipped_user_sum(&model, &start, &examples, users, clipping).unwrap().gradient
        };
        let all = slices(&users);
        let with = sum(&all);
        assert!(with.iter().all(|x| x.is_finite()));
        let gone = random.below(all.len());
        let others: Vec<&[usize]> =
            (0..all.len()).filter(|&user| user != gone).map(|user| all[user]).collect();
        let moved: Vec<f64> = with.iter().zip(&sum(&others)).map(|(x, y)| (x - y) / norm).collect();
        let most = 1.0 + user_sum_margin(all.len(), model.chunk()).unwrap();
        assert!(length(&moved) <= most, "{} clip norms", length(&moved));
        longest = longest.max(length(&moved));
        left_out += usize::from(length(&moved) == 0.0);
    }
    println!("moved by {longest:.9} clip norms at most, by nothing {left_out} times");
    assert!(longest > 0.999 && (40..2000).contains(&left_out), "{longest} {left_out}");
}

/// Users of the digits: `of(example)` is the name of its user.
fn with_users(of: impl Fn(usize) -> String) -> Dataset {
    let data = digits();
    let names: Vec<String> = (0..data.train.len()).map(of).collect();
    Dataset { users: Some(Users::new(names.iter().map(String::as_str)).unwrap()), ..data }
}

fn user_plan(users: usize, batch_size: usize, setting: Setting, most: usize) -> VerifiedPlan {
    let length = if setting == Setting::Poisson { Length::Steps(24) } else { Length::Epochs(2) };
    let mut request = Request::new(users, batch_size, length, setting);
    (request.epsilon, request.delta) = (4.0, 1e-5);
    (request.unit, request.max_examples_per_user) = (PrivacyUnit::User, Some(most));
    choose(&request).unwrap().plan
}

#[test]
fn training_with_users_of_one_example_is_training_with_examples_to_the_bit() {
    for setting in [Setting::Cyclic, Setting::Poisson] {
        for case in [Case::new, Case::small].map(|new| new(plan(setting, 4.0, 1.0), SGD)) {
            let dataset = with_users(|example| format!("user {example}"));
            let plan = user_plan(1440, 120, setting, 1);
            let users = Setup { plan: &plan, dataset: &dataset, ..case.setup() };
            let key = || Key::from_seed_insecure(common::KEY);
            let mut of_users = Trainer::new(users, RunId::default(), case.start(), key()).unwrap();
            let mut of_examples = case.trainer();
            for step in 0..plan.steps.min(8) {
                of_users.step().unwrap();
                of_examples.step().unwrap();
                assert_eq!(of_users.noisy_sum(), of_examples.noisy_sum(), "{setting:?}, step {step}");
                assert_eq!(of_users.parameters(), of_examples.parameters(), "{setting:?}, step {step}");
            }
            assert_eq!(of_users.history().losses, of_examples.history().losses);
            assert_eq!(of_users.history().clipped_shares, of_examples.history().clipped_shares);
        }
    }
}

#[test]
fn a_run_with_users_resumes_to_the_bit_and_not_with_other_users() {
    let dataset = with_users(|example| format!("writer {}", example % 45));
    let plan = user_plan(45, 15, Setting::Cyclic, 5);
    let case = Case::small(plan, SGD);
    let setup = Setup { dataset: &dataset, ..case.setup() };
    let key = || Key::from_seed_insecure(3);
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::open(folder.path(), RunId::default()).unwrap();
    let mut trainer = Trainer::new(setup, RunId::default(), case.start(), key()).unwrap();
    (0..3).for_each(|_| trainer.step().unwrap());
    trainer.save(&checkpoints).unwrap();
    let mut resumed = Trainer::resume(setup, &checkpoints).unwrap();
    for _ in 3..case.plan.steps {
        trainer.step().unwrap();
        resumed.step().unwrap();
    }
    assert_eq!(resumed.parameters(), trainer.parameters());
    // One example of another user; and the same users by other names.
    let moved = with_users(|example| format!("writer {}", if example == 90 { 1 } else { example % 45 }));
    let renamed = with_users(|example| format!("writer of {}", example % 45));
    for other in [&moved, &renamed] {
        let error =
            Trainer::resume(Setup { dataset: other, ..setup }, &checkpoints).err().expect("a refusal");
        assert!(error.is_bad_input() && error.to_string().contains("of another users"), "{error}");
    }
}

#[test]
fn plans_for_other_units_and_batches_without_users_are_refused() {
    let dataset = with_users(|example| format!("writer {}", example % 45));
    let (of_users, of_examples) = (user_plan(45, 15, Setting::Cyclic, 5), plan(Setting::Cyclic, 4.0, 1.0));
    let refused = |plan: &VerifiedPlan, dataset: &Dataset| {
        let case = Case::small(plan.clone(), SGD);
        let setup = Setup { dataset, ..case.setup() };
        let error = setup.check(&case.start()).unwrap_err();
        assert!(error.is_bad_input());
        error.to_string()
    };
    assert!(refused(&of_users, &digits()).starts_with("unit of the plan is user but must be example"));
    assert!(refused(&of_examples, &dataset).starts_with("unit of the plan is example but must be user"));
    let fewer = user_plan(44, 15, Setting::Cyclic, 5);
    assert!(
        refused(&fewer, &dataset)
            .starts_with("examples of the plan is 44 but must be 45, the training users")
    );
    let few = Dataset { users: Some(Users::new(["a"; 45]).unwrap()), ..digits() };
    let one = user_plan(1, 1, Setting::Cyclic, 5);
    assert!(refused(&one, &few).starts_with("examples of all users is 45 but must be 1440"));
    let (model, start) = (Model::logistic(dataset.shape, 10).unwrap(), vec![0.0; 650]);
    for users in [&[&[1][..], &[]][..], &[&[1, 2], &[2]], &[&[3, 3]], &[&[1440]]] {
        assert!(clipped_user_sum(&model, &start, &dataset.train, users, 1.0).is_err(), "{users:?}");
    }
    let none = clipped_user_sum(&model, &start, &dataset.train, &[], 1.0).unwrap();
    assert_eq!(none, clipped_sum(&model, &start, &dataset.train, &[], 1.0).unwrap());
    assert!(
        user_sum_margin(1000, 8).unwrap() >= sum_margin(1000, 8).unwrap() && user_sum_margin(1, 0).is_err()
    );
}

fn schema() -> Schema {
    Schema {
        label: "late".into(),
        classes: vec!["no".into(), "yes".into()],
        missing: Missing::Zero,
        columns: vec![Column { name: "x".into(), values: Values::Range(0.0, 1000.0) }],
    }
}

/// 60 rows of 20 persons; x is the row's number.
fn table() -> String {
    let row = |row: usize| format!("{row},p {},{}\n", row * 7 % 20, ["no", "yes"][row / 3 % 2]);
    "x,who,late\n".to_owned() + &(0..60).map(row).collect::<String>()
}

fn number(features: &[f32]) -> usize {
    ((features[0] + 1.0) * 500.0).round() as usize
}

#[test]
fn test_rows_are_those_of_whole_users() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    std::fs::write(&path, table()).unwrap();
    let file = TableFile::csv(&path, b',').with_users("who");
    let person = |row: usize| format!("p {}", row * 7 % 20);
    for seed in 0..20 {
        let part = TestPart::Drawn { share: 0.25, seed };
        let data = file.dataset(&schema(), part).unwrap();
        let users = data.users.as_ref().unwrap();
        assert_eq!((data.train.len(), data.test.len()), (3 * users.len(), 60 - 3 * users.len()));
        assert!((8..20).contains(&users.len()), "{seed}: {}", users.len());
        let known: Vec<&str> = (0..users.len()).map(|user| users.name(user)).collect();
        for row in 0..data.test.len() {
            let name = person(number(data.test.features(row)));
            assert!(!known.contains(&&*name), "{name} is trained on");
        }
        for (user, &name) in known.iter().enumerate() {
            let rows: Vec<usize> =
                users.of(user).iter().map(|&row| number(data.train.features(row))).collect();
            assert!(rows.len() == 3 && rows.iter().all(|&row| person(row) == name), "{name} {rows:?}");
        }
    }
    let last = file.dataset(&schema(), TestPart::Last(0.25)).unwrap_err();
    assert!(last.to_string().starts_with("test_rows is last but must be drawn"), "{last}");
}

/// A row more or less of one person, wherever it is, decides of nobody else whether they are trained on.
#[test]
fn the_rows_of_one_person_do_not_decide_who_is_trained_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    let trained = |text: &str| -> Vec<String> {
        std::fs::write(&path, text).unwrap();
        let file = TableFile::csv(&path, b',').with_users("who");
        let data = file.dataset(&schema(), TestPart::Drawn { share: 0.3, seed: 0 }).unwrap();
        let users = data.users.unwrap();
        let mut names: Vec<String> = (0..users.len()).map(|user| users.name(user).to_owned()).collect();
        names.sort();
        names
    };
    let (whole, mut cases) = (table(), 0);
    let all = trained(&whole);
    for row in 0..60 {
        let without: String = whole
            .lines()
            .enumerate()
            .filter(|(at, _)| *at != row + 1)
            .map(|(_, line)| line.to_owned() + "\n")
            .collect();
        assert_eq!(trained(&without), all, "without row {row}");
        let person = format!("p {}", row * 7 % 20);
        let nobody: String = whole
            .lines()
            .filter(|line| !line.contains(&format!(",{person},")))
            .map(|line| line.to_owned() + "\n")
            .collect();
        let others: Vec<String> = all.iter().filter(|name| **name != person).cloned().collect();
        assert_eq!(trained(&nobody), others, "without {person}");
        cases += 1;
    }
    assert_eq!(cases, 60);
}

#[test]
fn one_person_is_one_user_in_every_spelling_and_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let (csv, json, test) = ["t.csv", "t.jsonl", "test"].map(|name| folder.path().join(name)).into();
    let names = ["7", "7.0", " 007 ", "Ada Lovelace", " Ada Lovelace", "ada lovelace", "0", "-0.0"];
    let rows: String = names.iter().map(|name| format!("1,{name},no\n")).collect();
    std::fs::write(&csv, "x,who,late\n".to_owned() + &rows).unwrap();
    std::fs::write(&test, "x,who,late\n1,somebody else,no\n").unwrap();
    let read = |file: TableFile| file.with_users("who").dataset(&schema(), TestPart::File(&test));
    let of = |data: Dataset| -> Vec<(String, usize)> {
        let users = data.users.unwrap();
        (0..users.len()).map(|user| (users.name(user).to_owned(), users.of(user).len())).collect()
    };
    let wanted = [("7", 3), ("Ada Lovelace", 2), ("ada lovelace", 1), ("0", 2)];
    let wanted: Vec<(String, usize)> = wanted.map(|(name, rows)| (name.to_owned(), rows)).into();
    assert_eq!(of(read(TableFile::csv(&csv, b',')).unwrap()), wanted);
    let values =
        ["7", "7.0", "\"007\"", "\"Ada Lovelace\"", "\" Ada Lovelace\"", "\"ada lovelace\"", "0", "-0.0"];
    let rows: String =
        values.iter().map(|value| format!("{{\"x\": 1, \"who\": {value}, \"late\": \"no\"}}\n")).collect();
    std::fs::write(&json, rows).unwrap();
    std::fs::write(&test, "{\"x\": 1, \"who\": \"somebody\", \"late\": \"no\"}\n").unwrap();
    assert_eq!(of(read(TableFile::json_lines(&json)).unwrap()), wanted);
}

#[test]
fn rows_without_a_user_and_users_in_both_parts_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, test) = (folder.path().join("table.csv"), folder.path().join("test.csv"));
    let refused = |header: &str, name: &str, column: &str| {
        std::fs::write(&path, format!("{header}\n1,Ada,no\n2,{name},no\n3,Bob,yes\n")).unwrap();
        let file = TableFile::csv(&path, b',').with_users(column);
        let error = file.dataset(&schema(), TestPart::Drawn { share: 0.4, seed: 0 }).unwrap_err();
        assert!(error.is_bad_input(), "{error}");
        error.to_string()
    };
    for name in ["", "  ", "NA", "null", "NaN", "nan", "N/A", "inf", "7.5", "1e300", "9007199254740993.0"] {
        let said = refused("x,who,late", name, "who");
        assert!(said.contains("line 3") && said.contains("column \"who\""), "{name:?}: {said}");
    }
    assert!(refused("x,who,late", "Eve", "person").contains("with a column \"person\""));
    assert!(refused("x,who,late", "Eve", "late").contains("neither the label nor a feature"));
    assert!(refused("x,who,late", "Eve", "x").contains("neither the label nor a feature"));
    std::fs::write(&path, "x,who,late,who\n1,Ada,no,1\n2,Bob,no,2\n").unwrap();
    let file = TableFile::csv(&path, b',').with_users("who");
    let twice = file.dataset(&schema(), TestPart::Drawn { share: 0.5, seed: 0 }).unwrap_err().to_string();
    assert!(twice.contains("with two columns \"who\""), "{twice}");
    std::fs::write(&path, table()).unwrap();
    for (name, is_refused) in [("p 3", true), (" p 3 ", true), ("p 99", false)] {
        std::fs::write(&test, format!("x,who,late\n1,{name},no\n")).unwrap();
        let found = file.dataset(&schema(), TestPart::File(&test));
        assert_eq!(found.is_err(), is_refused, "{name}");
        assert!(found.err().is_none_or(|error| error.to_string().contains("rows of the user \"p 3\"")));
    }
    assert!(Users::new([]).is_err() && Users::new(["a", ""]).is_err());
}

#[test]
fn users_of_a_file_are_those_of_its_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.txt");
    let read = |contents: &[u8]| {
        std::fs::write(&path, contents).unwrap();
        Users::of_file(&path, 3).map_err(|error| {
            assert!(error.is_bad_input());
            let said = error.to_string();
            assert!(said.starts_with(&format!("data file {} is ", path.display())), "{said}");
            said
        })
    };
    let wanted = Users::new(["ada", "7", "ada"]).unwrap();
    let same = ["ada\n7\nada\n", "ada\n7\nada", "\u{feff}ada\r\n007\r\n ada \r\n"];
    for contents in same {
        assert_eq!(read(contents.as_bytes()).unwrap(), wanted, "{contents:?}");
    }
    let refused: [(&[u8], &str); 9] = [
        (b"", "of 0 lines but must be 3 lines"),
        (b"ada\n7\n", "of 2 lines but must be 3 lines"),
        (b"ada\n7\nada\n\n", "of more than 3 lines"),
        (b"ada\n7\nada\nada", "of more than 3 lines"),
        (b"ada\n\nada\n", "empty in line 2"),
        (b"ada\nNA\nada\n", "\"NA\" in line 2 but must be given"),
        (b"ada\n7\n7.5\n", "in line 3 but must be a name or a whole number"),
        (b"ada\n\xff\nada\n", "no text in line 2"),
        (b"9007199254740993.0\n7\n7\n", "in line 1 but must be below 2^53"),
    ];
    for (contents, words) in refused {
        let said = read(contents).unwrap_err();
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(Users::of_file(&folder.path().join("absent"), 3).unwrap_err().to_string().contains("absent"));
}
