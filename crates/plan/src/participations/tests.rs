use antinoise_noise::{Key, KeyedRng, Purpose, RunId};

use super::*;
use crate::{Batches, Length, Request, Sampler, Setting, choose};

fn made(setting: Setting, epochs: usize) -> VerifiedPlan {
    choose(&Request::new(60, 5, Length::Epochs(epochs), setting)).unwrap().plan
}

/// The batches of a run of this plan, its participations checked at each step.
fn batches(plan: &VerifiedPlan) -> Vec<Vec<usize>> {
    let key = Key::from_seed_insecure(7);
    let rng = |purpose, step| KeyedRng::new(&key, &RunId::default(), purpose, step);
    let order = &mut rng(Purpose::DataOrder, 0);
    let sampled = Batches::new(plan.sampler, plan.examples, plan.batch_size, plan.steps, order).unwrap();
    (0..plan.steps).map(|step| sampled.at(step, &mut rng(Purpose::BatchSampling, step as u64))).collect()
}

fn recorded(plan: &VerifiedPlan, batches: &[Vec<usize>]) -> Participations {
    Participations::of_steps(plan, batches.len(), |step| Ok::<_, InvalidParameter>(batches[step].clone()))
        .unwrap()
}

#[test]
fn batches_of_each_sampler_are_accepted_and_others_refused() {
    for (setting, epochs) in [
        (Setting::Cyclic, 3),
        (Setting::Shuffled, 3),
        (Setting::Single, 1),
        (Setting::Stream, 1),
        (Setting::Poisson, 3),
        (Setting::BMinSep, 3),
    ] {
        let plan = made(setting, epochs);
        let batches = batches(&plan);
        let whole = recorded(&plan, &batches);
        assert_eq!(whole.next_step(), plan.steps, "{setting:?}");
        let Limits { min_sep, most, .. } = whole.limits;
        let first = &batches[0];
        assert!(!first.is_empty(), "{setting:?}");
        let after_first = recorded(&plan, &batches[..1]);
        for step in 1..plan.steps {
            let allowed = after_first.check(step, first).is_ok();
            assert!(!allowed || step >= min_sep && most > 1, "{setting:?}: {step}");
        }
    }
}

/// Each limit alone: distance, count, group, one example twice, no example, steps in their order.
#[test]
fn what_the_plan_does_not_account_for_is_refused() {
    let plan = made(Setting::Cyclic, 3);
    let mut taken = Participations::none(&plan);
    assert_eq!((taken.limits.min_sep, taken.limits.most, plan.steps), (12, 3, 36));
    assert!(
        taken
            .record(0, &[3, 4, 3])
            .unwrap_err()
            .to_string()
            .contains("batch of step 0 is with an example twice")
    );
    assert!(taken.record(0, &[60]).unwrap_err().to_string().contains("example numbers below 60"));
    assert_eq!(taken, Participations::none(&plan), "nothing is recorded of what is refused");
    taken.record(0, &[3, 5]).unwrap();
    assert!(taken.record(0, &[4]).unwrap_err().to_string().contains("step is 0 but must be from 1"));
    for step in [1, 11, 13, 23] {
        let error = taken.check(step, &[3]).unwrap_err().to_string();
        assert!(error.contains("at most 3 steps, any two of them a multiple of 12 steps apart"), "{error}");
    }
    for step in [12, 24] {
        taken.record(step, &[3]).unwrap();
    }
    assert!(taken.check(36, &[4]).unwrap_err().to_string().contains("step is 36"));
    taken.of[3].last = 12;
    assert!(taken.check(35, &[3]).is_err() && taken.check(35, &[4]).is_ok());
    assert!(taken.of[3].count == 3 && taken.check(25, &[3]).is_err(), "a fourth time");
}

/// Users who come by themselves may come at any distance from min_sep on; examples of a plan in bins, in
/// steps of their bin alone.
#[test]
fn distances_are_those_of_the_schema() {
    let federated = Setting::Federated { min_sep: 6, max_participations: Some(2) };
    let mut taken = Participations::none(&made(federated, 3));
    taken.record(0, &[1, 2]).unwrap();
    assert!(taken.check(5, &[1]).is_err());
    taken.record(7, &[1]).unwrap();
    assert!(taken.check(20, &[1]).unwrap_err().to_string().contains("at least 6 steps apart"));
    taken.record(20, &[2]).unwrap();
    let mut plan = made(Setting::Cyclic, 3).into_plan();
    plan.sampler = Sampler::BallsInBins { bins: 12 };
    let plan = plan.verify().unwrap();
    let mut taken = recorded(&plan, &batches(&plan)[..1]);
    let of_bin = batches(&plan)[0].clone();
    assert!(taken.check(13, &of_bin).is_err() && taken.record(24, &of_bin).is_ok());
}

/// The record after any number of steps is restored from its bytes, and a byte that was changed beyond the
/// limits is noticed.
#[test]
fn bytes_restore_what_was_recorded() {
    for setting in [Setting::Cyclic, Setting::Poisson] {
        let plan = made(setting, 3);
        let batches = batches(&plan);
        for steps in 0..=plan.steps {
            let taken = recorded(&plan, &batches[..steps]);
            let bytes = taken.to_bytes();
            assert_eq!(bytes.len(), 8 * 61);
            assert_eq!(Participations::from_bytes(&plan, &bytes).unwrap(), taken);
        }
        let bytes = recorded(&plan, &batches[..9]).to_bytes();
        for wrong in [&bytes[1..], &bytes[..bytes.len() - 8], &[]] {
            assert!(Participations::from_bytes(&plan, wrong).is_err());
        }
        for (at, value) in [(0, 200), (4, 1), (8 + 8 * 7, 200), (8 + 8 * 7 + 4, 200)] {
            let mut altered = bytes.clone();
            altered[at] = value;
            assert!(Participations::from_bytes(&plan, &altered).is_err(), "{setting:?}: byte {at}");
        }
    }
}

/// Users that come by themselves could take part in late steps of a phase alone, or in steps of two patterns.
#[test]
fn schemas_of_users_contain_all_that_their_limits_allow() {
    let federated = made(Setting::Federated { min_sep: 12, max_participations: Some(3) }, 3);
    let refused = |participation| {
        let mut plan = federated.clone().into_plan();
        plan.participation = participation;
        let error = plan.verify().map_err(|error| error.to_string()).err().unwrap_or_default();
        error.contains("participation") && error.contains("external")
    };
    assert_eq!(federated.steps, 36);
    let cyclic = |max_participations| Participation::Cyclic { min_sep: 12, max_participations };
    assert_eq!([1, 2, 3].map(|k| refused(cyclic(k))), [true, true, false]);
    assert!(refused(Participation::Patterns { patterns: vec![vec![0, 12, 24], vec![1, 20]] }));
    assert!(!refused(Participation::Single) && !refused(Participation::FullBatch));
}

/// Once in each epoch: at its last step and the next one's first, but not twice within one.
#[test]
fn shuffled_examples_take_part_once_in_each_epoch() {
    let plan = made(Setting::Shuffled, 3);
    assert_eq!((plan.sampler, plan.steps), (Sampler::Shuffled { groups: 12 }, 36));
    let mut taken = Participations::none(&plan);
    taken.record(0, &[7]).unwrap();
    let error = taken.record(11, &[7]).unwrap_err().to_string();
    assert!(error.contains("at most once in each epoch of 12 steps"), "{error}");
    taken.record(11, &[8]).unwrap();
    taken.record(12, &[7, 8]).unwrap();
    assert!(taken.check(23, &[8]).is_err() && taken.check(24, &[8]).is_ok());
    assert_eq!(Participations::from_bytes(&plan, &taken.to_bytes()).unwrap(), taken);
    let mut bytes = taken.to_bytes();
    // The count of example 8: three participations by step 12 would be two in one epoch.
    bytes[8 + 8 * 8] = 3;
    assert!(Participations::from_bytes(&plan, &bytes).is_err());
}
