//! Refusals: ledgers of other runs, and inputs that do not fit.

use antinoise_federated::LocalSteps;
use antinoise_federated::{FederatedSetup, Federation, NonPrivateFederation};
use antinoise_ledger::Ledger;
use antinoise_noise::{Key, RunId};
use antinoise_plan::{Length, Request, Setting, choose};
use antinoise_train::optimizer::{OptimizerConfig, Schedule, UpdateRule};

use crate::pulls::{
    DIM, LOCAL, Pulls, ROUNDS, RULE, USERS, begin, folder, plan, plan_of, refused, resume, setup, there,
};

#[test]
fn ledgers_that_are_not_the_runs_are_refused() {
    let (plan, population, folder) = (plan(), Pulls::new(), folder());
    let path = folder.path().join("ledger.db");
    let advance = |to: usize| {
        let mut run = resume(setup(&plan, &population), folder.path()).unwrap();
        while run.step_count() < to {
            run.round(there).unwrap();
        }
    };
    drop(begin(setup(&plan, &population), folder.path()).unwrap());
    refused(begin(setup(&plan, &population), folder.path()), "begun");
    advance(4);
    let kept = std::fs::read(&path).unwrap();
    let put = |bytes: &[u8]| std::fs::write(&path, bytes).unwrap();

    // A user was added to a round that was recorded: the last one, whose sum is known, and an earlier one.
    for round in [3, 1] {
        put(&kept);
        let free = (0..USERS).map(|user| format!("user {user}")).find(|user| {
            let ledger = Ledger::open(&path, &plan, "0").unwrap();
            ledger.participations().unwrap().iter().all(|(other, _)| other != user)
        });
        if let Some(free) = free {
            let database = rusqlite::Connection::open(&path).unwrap();
            // In place of another user, so that the cohort is no larger.
            database
                .execute(
                    "UPDATE participations SET user = ?1 WHERE step = ?2 AND user = (SELECT MIN(user) FROM participations \
                     WHERE step = ?2)",
                    rusqlite::params![free, round],
                )
                .unwrap();
            drop(database);
            let named = format!("is damaged (the participants of step {round})");
            refused(resume(setup(&plan, &population), folder.path()), &named);
        }
    }

    // The ledger of another plan, of another key, of an earlier step, and none.
    let other = crate::pulls::folder();
    drop(begin(setup(&plan_of("identity", 0.5), &population), other.path()).unwrap());
    put(&std::fs::read(other.path().join("ledger.db")).unwrap());
    refused(resume(setup(&plan, &population), folder.path()), "of another run");
    let other = crate::pulls::folder();
    let key = Key::from_seed_insecure(8);
    drop(
        Federation::begin(setup(&plan, &population), other.path(), RunId::default(), vec![0.5; DIM], key)
            .unwrap(),
    );
    put(&std::fs::read(other.path().join("ledger.db")).unwrap());
    refused(resume(setup(&plan, &population), folder.path()), "origin");
    put(&kept);
    let mut run = resume(setup(&plan, &population), folder.path()).unwrap();
    (0..2).for_each(|_| drop(run.round(there).unwrap()));
    run.save().unwrap();
    drop(run);
    let fresh = crate::pulls::folder();
    drop(begin(setup(&plan, &population), fresh.path()).unwrap());
    put(&std::fs::read(fresh.path().join("ledger.db")).unwrap());
    refused(resume(setup(&plan, &population), folder.path()), "steps of the ledger");
    std::fs::remove_file(&path).unwrap();
    refused(resume(setup(&plan, &population), folder.path()), "absent");
}

/// A run that was killed after its noisy sums and before its checkpoint repeats them. With other data, each
/// would be a second sum under used noise, and the difference of the two sums has no noise: the last noisy
/// sum is refused, and so is an earlier one, before any parameter moves.
#[test]
fn a_recorded_round_is_not_made_again_of_other_data() {
    let (plan, population) = (plan(), Pulls::new());
    for recorded in [1, 3] {
        let folder = folder();
        drop(begin(setup(&plan, &population), folder.path()).unwrap());
        let mut run = resume(setup(&plan, &population), folder.path()).unwrap();
        let cohorts: Vec<_> = (0..recorded).map(|_| run.round(there).unwrap().cohort).collect();
        drop(run);
        let others = Pulls { broken: Some(cohorts[0][0]), ..Pulls::new() };
        let mut run = resume(setup(&plan, &others), folder.path()).unwrap();
        assert_eq!((run.step_count(), run.ledger().step()), (0, recorded));
        for _ in 0..2 {
            let again = run.round(there);
            assert_eq!(
                (run.parameters(), run.step_count(), run.ledger().step()),
                (&[0.5; DIM][..], 0, recorded)
            );
            refused(again, "noisy sum of step 0 in the ledger is another one but must be");
        }
        // A checkpoint of the refused round is one from before it.
        run.save().unwrap();
        drop(run);
        let mut run = resume(setup(&plan, &population), folder.path()).unwrap();
        let same: Vec<_> = (0..recorded).map(|_| run.round(there).unwrap().cohort).collect();
        assert_eq!(same, cohorts, "the same data are let through");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let (plan, population) = (plan(), Pulls::new());
    let twice = Pulls { names: vec!["a".into(); USERS], ..Pulls::new() };
    refused(begin(setup(&plan, &twice), folder().path()), "twice");
    let fewer = Pulls { names: population.names[1..].to_vec(), ..Pulls::new() };
    refused(begin(setup(&plan, &fewer), folder().path()), "examples of the plan");
    let cyclic = choose(&Request::new(USERS, 6, Length::Epochs(2), Setting::Cyclic)).unwrap().plan;
    refused(begin(setup(&cyclic, &population), folder().path()), "participation of the plan");
    let local = LocalSteps { most_steps: 0, ..LOCAL };
    refused(begin(FederatedSetup { local, ..setup(&plan, &population) }, folder().path()), "local_steps");
    let rule = UpdateRule::Adam { learning_rate: 0.1, beta1: 0.9, beta2: 0.999, epsilon: 0.0 };
    let of = |optimizer| FederatedSetup { optimizer, ..setup(&plan, &population) };
    refused(begin(of(rule.into()), folder().path()), "epsilon of Adam");
    let schedule = Schedule { warm_up: ROUNDS, ..Schedule::default() };
    refused(begin(of(OptimizerConfig { schedule, ..RULE.into() }), folder().path()), "warm_up");
    let local = LocalSteps { zero_beyond: Some(0.0), ..LOCAL };
    refused(
        begin(FederatedSetup { local, ..setup(&plan, &population) }, folder().path()),
        "local_zero_beyond",
    );
    let key = || Key::from_seed_insecure(1);
    let long =
        Federation::begin(setup(&plan, &population), folder().path(), RunId::default(), vec![0.0; 51], key());
    refused(long, "number of parameters");
    refused(resume(setup(&plan, &population), folder().path()), "checkpoint");
    let reference = NonPrivateFederation {
        population: &population,
        local: LOCAL,
        optimizer: RULE.into(),
        cohort: 0,
        rounds: 1,
        min_sep: 1,
        clip_norm: None,
    };
    refused(reference.train(vec![0.0; DIM], &key()), "cohort");
}

#[test]
fn a_finished_run_keeps_no_key_and_does_not_begin_again() {
    let (plan, population, folder) = (plan(), Pulls::new(), folder());
    let mut run = begin(setup(&plan, &population), folder.path()).unwrap();
    for _ in 0..ROUNDS {
        run.round(there).unwrap();
    }
    run.save().unwrap();
    assert!(run.round(there).is_err());
    assert_eq!(run.history().losses.len(), ROUNDS);
    drop(run);
    let names = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name());
    assert!(!names.into_iter().any(|name| name.to_string_lossy().contains("noise")));
    refused(begin(setup(&plan, &population), folder.path()), "begun");
    refused(resume(setup(&plan, &population), folder.path()), "no run that can be resumed");
}
