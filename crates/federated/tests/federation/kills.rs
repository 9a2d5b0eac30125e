//! Runs that are killed at every stage.

use std::path::Path;
use std::process::{Command, Stdio};

use antinoise_ledger::Ledger;

use crate::pulls::{Pulls, ROUNDS, begin, folder, plan, plan_of, resume, setup, there, whole};

/// The folder of the run for this process, and the number of the gradient at which the process fails.
const LIFE: &str = "ANTINOISE_FEDERATED_LIFE";
const LAST: &str = "ANTINOISE_FEDERATED_LAST";

#[test]
fn a_run_that_stops_anywhere_goes_on_to_the_same_bits() {
    for mechanism in ["blt:2", "banded-toeplitz:3", "identity"] {
        let plan = plan_of(mechanism, 0.5);
        let expected = whole(&plan, &Pulls::new());
        // Each process computes a number of gradients before it fails, within a round that was charged; it
        // saves every few rounds, so that recorded rounds are repeated; and other users are available than
        // before.
        for (gradients, every) in [(1, 1), (7, 1), (13, 3), (40, 5), (25, 100)] {
            let folder = folder();
            drop(begin(setup(&plan, &Pulls::new()), folder.path()).unwrap());
            let (mut lives, mut done, mut failed) = (0, 0, 0);
            while done < ROUNDS {
                // Later processes live longer, since those that save nothing restart from the beginning.
                let population = Pulls::failing_after(gradients * (1 + lives));
                let mut run = resume(setup(&plan, &population), folder.path()).unwrap();
                let pending = run.ledger().charged_before().unwrap().map(|(charged, _)| charged.step());
                lives += 1;
                loop {
                    let step = run.step_count();
                    let again = step < run.ledger().step() || Some(step) == pending;
                    // The users available now must not matter to a round that was charged.
                    let found = run.round(|round, user| if again { user > 27 } else { there(round, user) });
                    if found.is_err() {
                        // Every user whose gradient was requested is charged, whatever happens after: never
                        // after the use.
                        let charged =
                            run.ledger().charged_before().unwrap().map(|(charged, _)| charged.step());
                        let is_recorded = step < run.ledger().step();
                        assert!(
                            is_recorded || charged == Some(step),
                            "round {step} was used and not charged"
                        );
                        failed += usize::from(!is_recorded);
                        break;
                    }
                    done = done.max(run.step_count());
                    if done == ROUNDS {
                        assert_eq!(run.parameters(), expected.0, "{mechanism} {gradients} {every}");
                        assert_eq!(run.ledger().participations().unwrap(), expected.1);
                        break;
                    }
                    if run.step_count().is_multiple_of(every) {
                        run.save().unwrap();
                    }
                }
            }
            assert!(
                lives > 2 && failed > 0,
                "{gradients} {every}: {lives} lives, {failed} ended in a round of their own"
            );
        }
    }
}

/// One process of a run; the test below starts it.
#[test]
#[ignore = "a life of a run that is to be killed"]
fn life() {
    let Some(folder) = std::env::var_os(LIFE) else { return };
    let (folder, plan) = (Path::new(&folder), plan());
    let last = std::env::var(LAST).unwrap().parse().unwrap();
    let population = Pulls { aborts: true, ..Pulls::failing_after(last) };
    let mut run = match resume(setup(&plan, &population), folder) {
        Ok(run) => run,
        Err(_) => begin(setup(&plan, &population), folder).unwrap(),
    };
    while run.step_count() < ROUNDS {
        run.round(there).unwrap();
        if run.step_count().is_multiple_of(4) && run.step_count() < ROUNDS {
            run.save().unwrap();
        }
    }
    let bytes: Vec<u8> = run.parameters().iter().flat_map(|x| x.to_le_bytes()).collect();
    std::fs::write(folder.join("parameters"), bytes).unwrap();
}

#[test]
fn a_process_that_is_killed_goes_on_to_the_same_bits() {
    let folder = folder();
    let (mut aborted, mut last) = (0, 3);
    loop {
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kills::life", "--ignored", "--test-threads=1"])
            .env(LIFE, folder.path())
            .env(LAST, last.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        if status.success() {
            break;
        }
        (aborted, last) = (aborted + 1, last + 11);
    }
    assert!(aborted > 3, "{aborted}");
    let (parameters, participations) = whole(&plan(), &Pulls::new());
    let bytes: Vec<u8> = parameters.iter().flat_map(|x| x.to_le_bytes()).collect();
    assert!(std::fs::read(folder.path().join("parameters")).unwrap() == bytes, "other parameters");
    let ledger = Ledger::open_begun(&folder.path().join("ledger.db"), &plan()).unwrap();
    assert_eq!(ledger.participations().unwrap(), participations);
}
