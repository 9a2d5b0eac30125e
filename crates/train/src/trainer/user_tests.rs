//! Tests of the privacy of users on random tables with persons: how far one person moves the sum of a step,
//! as the trainer computes it, and the epsilon that follows from the steps in which persons took part.

use std::collections::HashMap;
use std::f64::consts::{PI, SQRT_2};
use std::fmt::Write;

use antinoise_mechanism::Recursion;
use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use antinoise_plan::{Length, Plan, PrivacyUnit, Request, Setting, VerifiedPlan, choose};
use rand_core::Rng;

use super::{Setup, Trainer};
use crate::clip::user_sum_margin;
use crate::data::{Column, Dataset, Missing, Schema, TableFile, TestPart, Users, Values};
use crate::model::Model;
use crate::optimizer::UpdateRule;
use crate::private_model::PrivateModel;

const TABLES: u64 = 1000;
const CLASSES: [&str; 3] = ["low", "middle", "high"];

struct Random(KeyedRng);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.0.next_u64()) * bound as u128) >> 64) as usize
    }

    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn random(seed: u64) -> Random {
    Random(KeyedRng::new(&Key::from_seed_insecure(seed), &RunId::default(), Purpose::DataOrder, 0))
}

/// A name of person number `person`, in one of the spellings that are the same person.
fn spelled(person: usize, random: &mut Random) -> String {
    match person % 4 {
        0 => [format!("{person}"), format!("{person}.0"), format!("00{person}"), format!(" {person} ")]
            [random.below(4)]
        .clone(),
        1 => format!("Ada {person} de la Cruz"),
        2 => format!("\"O'Neil, {person}\""),
        _ => format!("{}\u{fc}\u{4f60}", person),
    }
}

/// The rows of a table: each a person and its other cells.
fn rows(random: &mut Random) -> Vec<(usize, String)> {
    let persons = 2 + random.below(24);
    let mut rows = Vec::new();
    for person in 0..persons {
        let most = [1, 4, 50][random.below(3)];
        for _ in 0..=random.below(most) {
            // Some numbers are out of range, and count as its end.
            let (x, y) = (240.0 * random.unit() - 20.0, 4.0 * random.unit() - 2.0);
            rows.push((person, format!("{x:.3},{y},{}", CLASSES[random.below(3)])));
        }
    }
    for i in (1..rows.len()).rev() {
        rows.swap(i, random.below(i + 1));
    }
    rows
}

fn schema() -> Schema {
    let column = |name: &str, (low, high)| Column { name: name.into(), values: Values::Range(low, high) };
    Schema {
        label: "class".into(),
        classes: CLASSES.map(str::to_owned).to_vec(),
        missing: Missing::Refuse,
        columns: vec![column("x", (0.0, 200.0)), column("y", (-1.5, 1.5))],
    }
}

/// Writes the rows as a CSV for training, and a CSV with one test row, and reads the data set of both.
fn read(rows: &[(usize, String)], folder: &std::path::Path, random: &mut Random) -> Dataset {
    let mut text = String::from("person,x,y,class\n");
    rows.iter().for_each(|(person, cells)| writeln!(text, "{},{cells}", spelled(*person, random)).unwrap());
    let (table, test) = (folder.join("table.csv"), folder.join("test.csv"));
    std::fs::write(&table, text).unwrap();
    std::fs::write(&test, "person,x,y,class\nnobody else,1,1,low\n").unwrap();
    TableFile::csv(&table, b',').with_users("person").dataset(&schema(), TestPart::File(&test)).unwrap()
}

/// Plans by number of users and variant: they are reused, since choosing a plan takes longer than a table.
#[derive(Default)]
struct Plans(HashMap<(usize, usize), VerifiedPlan>);

const VARIANTS: usize = 5;

impl Plans {
    fn of(&mut self, users: usize, variant: usize, dim: usize) -> &VerifiedPlan {
        self.0.entry((users, variant)).or_insert_with(|| planned(users, variant, dim))
    }
}

fn planned(users: usize, variant: usize, dim: usize) -> VerifiedPlan {
    let mut random = random((VARIANTS * users + variant) as u64 + 2 * TABLES);
    // Few with sampling, whose accountant takes long.
    let setting = match variant {
        0 if users.is_multiple_of(8) => Setting::Poisson,
        1 => Setting::Single,
        _ => Setting::Cyclic,
    };
    let batch_size = 1 + random.below(users);
    let epochs = if setting == Setting::Single { 1 } else { 1 + random.below(3) };
    let mut request = Request::new(users, batch_size, Length::Epochs(epochs), setting);
    (request.epsilon, request.delta) = (0.3 + 5.0 * random.unit(), 1e-5);
    (request.unit, request.max_examples_per_user) =
        (PrivacyUnit::User, Some([1, 2, 7, 100][random.below(4)]));
    (request.dim, request.thorough, request.clip_norm) = (dim, false, 0.05 + random.unit());
    let specs = [["identity", "blt:2", "banded-toeplitz:2"][random.below(3)], "identity"];
    let mut plan = specs.into_iter().filter_map(|spec| {
        request.specs = Some(vec![spec.parse().unwrap()]);
        choose(&request).ok().map(|choice| choice.plan)
    });
    plan.next().unwrap()
}

fn length(x: impl Iterator<Item = f64>) -> f64 {
    x.map(|x| x * x).sum::<f64>().sqrt()
}

/// Checks, for each person of a batch, that the sum without the person's gradient, and the sum for the table
/// read without the person's rows, differ from the sum by at most the stated norm. Returns the largest
/// difference, in clip norms.
fn check_step(
    (setup, model): (&Setup, &Model),
    (trainer, step): (&Trainer, usize),
    rows: &[(usize, String)],
    (folder, random): (&std::path::Path, &mut Random),
) -> f64 {
    let (plan, dataset) = (setup.plan, setup.dataset);
    let (users, noise) = (dataset.users.as_ref().unwrap(), &trainer.run.noise);
    let batch = trainer.batches.at(step, &mut noise.rng(Purpose::BatchSampling, step as u64));
    let sum = |batch: &[usize]| setup.sum(&trainer.run.parameters, (step, batch), noise).unwrap().gradient;
    let with = sum(&batch);
    let most = 1.0 + user_sum_margin(batch.len(), model.chunk()).unwrap();
    assert!(most * plan.clip_norm <= plan.widened_clip_norm());
    let mut longest = 0.0f64;
    for (place, &user) in batch.iter().enumerate() {
        let mut others = batch.clone();
        others.remove(place);
        let without = sum(&others);
        let moved = length(with.iter().zip(&without).map(|(x, y)| x - y)) / plan.clip_norm;
        assert!(moved <= most, "{moved} clip norms by user {user}");
        longest = longest.max(moved);
        // The person is gone from the file: others have other numbers, and other chunks.
        let gone = rows[users.of(user)[0]].0;
        let left: Vec<(usize, String)> = rows.iter().filter(|row| row.0 != gone).cloned().collect();
        assert_eq!(rows.len() - left.len(), users.of(user).len(), "all rows of a person are of one user");
        if left.is_empty() || random.below(4) > 0 {
            continue;
        }
        let read = read(&left, folder, random);
        let moved_to: Vec<usize> = (0..rows.len())
            .scan(0, |next, row| {
                let at = *next;
                *next += usize::from(rows[row].0 != gone);
                Some(at)
            })
            .collect();
        let taken: Vec<Vec<usize>> = others
            .iter()
            .map(|&user| {
                let number = 1 + (step * users.len() + user) as u64;
                let drawn = users.drawn(user, plan.max_examples_per_user.unwrap(), || {
                    noise.rng(Purpose::DataOrder, number)
                });
                drawn.into_iter().map(|row| moved_to[row]).collect()
            })
            .collect();
        let taken: Vec<&[usize]> = taken.iter().map(Vec::as_slice).collect();
        let parameters = &trainer.run.parameters;
        let absent = model.clipped_user_sum(parameters, &read.train, &taken, setup.clipping()).unwrap();
        let moved = length(with.iter().zip(&absent.gradient).map(|(x, y)| x - y)) / plan.clip_norm;
        assert!(moved <= most, "{moved} clip norms by user {user}, whose rows are gone");
        assert_eq!(without, absent.gradient, "others add the same, to the bit, wherever they are");
    }
    longest
}

/// The columns of C, computed from the noise of the stream.
fn columns(plan: &Plan) -> Vec<Vec<f64>> {
    let (recursion, n) = (plan.strategy.recursion().unwrap(), plan.steps);
    assert!(!matches!(recursion, Recursion::SeedCombination { .. }));
    let unit = |j: usize| -> Vec<f64> { (0..n).map(|t| f64::from(u8::from(t == j))).collect() };
    let inverse: Vec<Vec<f64>> = (0..n).map(|j| recursion.apply(n, &unit(j))).collect();
    let mut columns = vec![vec![0.0; n]; n];
    for (j, column) in columns.iter_mut().enumerate() {
        for t in j..n {
            let known: f64 = (j..t).map(|s| inverse[s][t] * column[s]).sum();
            column[t] = (f64::from(u8::from(t == j)) - known) / inverse[t][t];
        }
    }
    columns
}

/// Phi(-x), by a sum over the tail.
fn below(x: f64) -> f64 {
    const PARTS: usize = 4000;
    let width = 14.0 / PARTS as f64;
    let density = |i: usize| (-(x + i as f64 * width).powi(2) / 2.0).exp();
    let inner: f64 = (1..PARTS).map(|i| density(i) * if i % 2 == 1 { 4.0 } else { 2.0 }).sum();
    (density(0) + inner + density(PARTS)) * width / 3.0 / (2.0 * PI).sqrt()
}

fn delta_of(mu: f64, epsilon: f64) -> f64 {
    below(epsilon / mu - mu / 2.0) - epsilon.exp() * below(epsilon / mu + mu / 2.0)
}

/// Checks that epsilon without sampling, for the user with the worst participation in the run, is the epsilon
/// that the plan states, up to 1 in 1000.
fn check_epsilon(plan: &Plan, took_part: &[Vec<usize>]) {
    let columns = columns(plan);
    // Gradients in one direction are the worst if no two columns have a negative product, which holds here.
    let moved = took_part
        .iter()
        .map(|steps| length((0..plan.steps).map(|t| steps.iter().map(|&step| columns[step][t]).sum())));
    let mu = moved.fold(0.0, f64::max) * plan.widened_clip_norm() / plan.noise_std();
    let (epsilon, delta) = (plan.privacy.epsilon, plan.privacy.delta);
    let (at, less) = (delta_of(mu, epsilon), delta_of(mu, 0.999 * epsilon));
    assert!(at <= delta * (1.0 + 1e-6) && delta < less, "{epsilon}: delta {at:e}, {less:e} at 0.999 of it");
}

#[test]
fn in_a_thousand_tables_no_person_moves_a_sum_beyond_the_norm_and_epsilon_is_that_of_their_steps() {
    let (folder, mut plans) = (tempfile::tempdir().unwrap(), Plans::default());
    let (mut longest, mut most_rows, mut compared, mut unamplified) = (0f64, 0, 0, 0u64);
    for table in 0..TABLES {
        let mut random = random(table);
        let rows = rows(&mut random);
        let dataset = read(&rows, folder.path(), &mut random);
        let users: &Users = dataset.users.as_ref().unwrap();
        most_rows = most_rows.max((0..users.len()).map(|user| users.of(user).len()).max().unwrap());
        let chunk = 1 + random.below(9);
        let model = Model::logistic(dataset.shape, dataset.classes).unwrap().with_chunk(chunk).unwrap();
        let plan = plans.of(users.len(), random.below(VARIANTS), model.parameters());
        let rule = UpdateRule::Sgd { learning_rate: 2.0, momentum: 0.9 };
        let setup = Setup { plan, model: &model, dataset: &dataset, optimizer: rule.into(), groups: None };
        let start = (0..model.parameters()).map(|_| 4.0 * random.unit() as f32 - 2.0).collect();
        let key = Key::from_seed_insecure(table + TABLES);
        let mut trainer = Trainer::new(setup, RunId::default(), start, key).unwrap();
        let mut took_part = vec![Vec::new(); users.len()];
        for step in 0..plan.steps {
            let turn = trainer.turn(step).to_vec();
            turn.iter().for_each(|&user| took_part[user].push(step));
            if step < 3 {
                let around = (folder.path(), &mut random);
                longest = longest.max(check_step((&setup, &model), (&trainer, step), &rows, around));
                compared += 1;
            }
            trainer.step().unwrap();
        }
        if !plan.schedule().is_amplified() {
            check_epsilon(plan, &took_part);
            unamplified += 1;
        }
    }
    println!("{compared} steps: moved by {longest:.9} clip norms at most; {unamplified} epsilons");
    assert!(longest > 0.999 && most_rows == 50 && compared > 2000 && (900..TABLES).contains(&unamplified));
    assert!(below(0.0) - 0.5 < 1e-12 && (below(SQRT_2) - 0.078_649_603_525).abs() < 1e-10);
}
