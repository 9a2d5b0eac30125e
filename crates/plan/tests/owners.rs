//! Batches of examples with several owners, on random graphs of ownership: what one owner moves, by brute
//! force, is within the plan's sensitivity, and no example that could be used is left out.

use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use antinoise_plan::{Length, OwnedExamples, PrivacyUnit, Request, Setting, VerifiedPlan, choose};
use rand_core::Rng;

fn rng(graph: u64) -> KeyedRng {
    KeyedRng::new(&Key::from_seed_insecure(graph), &RunId::default(), Purpose::DataOrder, 0)
}

fn plan(users: usize, batch_size: usize, steps: usize, limits: (usize, usize), class: &str) -> VerifiedPlan {
    let setting = Setting::Federated { min_sep: limits.0, max_participations: Some(limits.1) };
    let request = Request::new(users, batch_size, Length::Steps(steps), setting);
    let specs = Some(vec![class.parse().unwrap()]);
    choose(&Request { unit: PrivacyUnit::User, specs, ..request }).unwrap().plan
}

/// Examples with up to three owners each, and the owners as strings.
fn graph(rng: &mut KeyedRng) -> OwnedExamples {
    let mut below = |bound: u64| rng.next_u64() % bound;
    let (users, examples) = (1 + below(12), 1 + below(30));
    let owners: Vec<Vec<String>> =
        (0..examples).map(|_| (0..=below(3)).map(|_| format!("user {}", below(users))).collect()).collect();
    OwnedExamples::new(owners.iter().map(|of| of.iter().map(String::as_str))).unwrap()
}

/// The largest |C u| over vectors u of a sign for each of `steps`, and 0 elsewhere.
fn moved(columns: &[Vec<f64>], steps: &[usize]) -> f64 {
    let norm = |signs: usize| {
        let mut sum = vec![0.0; columns.len()];
        for (i, &step) in steps.iter().enumerate() {
            let sign = if signs >> i & 1 == 0 { 1.0 } else { -1.0 };
            sum.iter_mut().zip(&columns[step]).for_each(|(sum, entry)| *sum += sign * entry);
        }
        sum.iter().map(|x| x * x).sum::<f64>().sqrt()
    };
    (0..1 << steps.len()).map(norm).fold(0.0, f64::max)
}

#[test]
fn spellings_of_one_name_are_one_owner_and_similar_names_are_warned_of() {
    let examples = [vec!["7", "7.0"], vec!["7e0"], vec!["007", "ada "], vec!["ada"], vec!["Ada"]];
    let examples = OwnedExamples::new(examples).unwrap();
    let names: Vec<&str> = (0..examples.users()).map(|user| examples.name(user)).collect();
    assert_eq!(names, ["7", "ada", "Ada"]);
    assert_eq!((examples.of(0), examples.of(1), examples.of(2)), (&[0][..], &[0][..], &[0, 1][..]));
    assert_eq!(examples.similar_names().examples, [("Ada".into(), "ada".into())]);
    for refused in ["", " ", "NA", "null", "7.5", "1e400"] {
        let error = OwnedExamples::new([vec!["ada", refused]]).unwrap_err().to_string();
        assert!(error.starts_with("owner of example 0 is "), "{error}");
    }
    // Of three examples of one person under three spellings, two are never nearer than the plan allows.
    let examples = OwnedExamples::new([["7"], ["7.0"], ["7e0"], ["a"], ["b"], ["c"]]).unwrap();
    let plan = plan(examples.users(), 1, 6, (2, 3), "identity");
    let batches = examples.batches(&plan, &mut rng(0)).unwrap();
    let of_seven = |batch: &Vec<usize>| batch.iter().any(|&example| example < 3);
    assert!(batches.windows(2).all(|pair| !(of_seven(&pair[0]) && of_seven(&pair[1]))), "{batches:?}");
    assert!(batches.iter().any(of_seven));
}

#[test]
fn an_owner_moves_no_more_than_the_plan_says_on_random_graphs() {
    let (mut largest, mut full) = (0.0f64, 0);
    for case in 0..1000 {
        let rng = &mut rng(case);
        let examples = graph(rng);
        let steps = 2 + (rng.next_u64() % 7) as usize;
        let min_sep = 1 + (rng.next_u64() % steps as u64) as usize;
        let most = 1 + (rng.next_u64() % ((steps - 1) / min_sep + 1) as u64) as usize;
        let batch_size = 1 + (rng.next_u64() % examples.users() as u64) as usize;
        let class = ["identity", "toeplitz", "blt:2", "tree"][(case % 4) as usize];
        let plan = plan(examples.users(), batch_size, steps, (min_sep, most), class);
        let batches = examples.batches(&plan, rng).unwrap();
        assert_eq!(batches.len(), steps);
        let columns: Vec<Vec<f64>> = {
            let dense = plan.strategy.encoder().unwrap().to_dense();
            (0..steps).map(|j| (0..dense.nrows()).map(|i| dense[(i, j)]).collect()).collect()
        };
        let sensitivity = plan.sensitivity.value;
        for user in 0..examples.users() {
            let own = |batch: &Vec<usize>| batch.iter().filter(|&&e| examples.of(e).contains(&user)).count();
            let of_steps: Vec<usize> = batches.iter().map(own).collect();
            let taken: Vec<usize> = (0..steps).filter(|&step| of_steps[step] > 0).collect();
            assert!(of_steps.iter().all(|&count| count <= 1), "case {case}: {of_steps:?}");
            assert!(taken.len() <= most && taken.windows(2).all(|pair| pair[1] - pair[0] >= min_sep));
            let moved = moved(&columns, &taken);
            assert!(moved <= sensitivity * (1.0 + 1e-12), "case {case}: {moved} {sensitivity}");
            largest = largest.max(moved / sensitivity);
        }
        // A batch that is not full leaves out only examples with an owner who may not take part.
        for (step, batch) in batches.iter().enumerate().filter(|(_, batch)| batch.len() < batch_size) {
            for left in (0..examples.examples()).filter(|example| !batch.contains(example)) {
                let may = |&owner: &usize| {
                    let near = (step + 1).saturating_sub(min_sep)..=step;
                    let of = |batch: &Vec<usize>| examples.owners(batch).contains(&owner);
                    !near.clone().any(|step| of(&batches[step]))
                        && batches[..step].iter().filter(|b| of(b)).count() < most
                };
                assert!(!examples.of(left).iter().all(may), "case {case}: step {step} leaves out {left}");
            }
        }
        full += batches.iter().filter(|batch| batch.len() == batch_size).count();
    }
    assert!(largest > 0.999 && full > 1000, "{largest} of the sensitivity is reached, {full} full batches");
}

#[test]
fn bad_owners_and_other_plans_are_refused() {
    let refused = |of: Vec<Vec<&str>>| OwnedExamples::new(of).unwrap_err().to_string();
    assert!(refused(vec![]).starts_with("number of examples is 0"));
    assert!(refused(vec![vec!["a"], vec![]]).starts_with("owners of example 1 is absent"));
    assert!(refused(vec![vec!["a", ""]]).starts_with("owner of example 0 is empty but must be given"));
    let examples = OwnedExamples::new([vec!["a", "b", "a"], vec!["c"]]).unwrap();
    assert_eq!(examples.of(0), [0, 1]);
    let error = examples.batches(&plan(4, 2, 3, (2, 2), "identity"), &mut rng(0)).unwrap_err().to_string();
    assert!(error.contains("examples of the plan is 4 but must be 3"), "{error}");
    let cyclic = choose(&Request::new(3, 1, Length::Epochs(1), Setting::Cyclic)).unwrap().plan;
    assert!(
        examples.batches(&cyclic, &mut rng(0)).unwrap_err().to_string().contains("participation of the plan")
    );
}
