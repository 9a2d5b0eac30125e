//! Each sampler against its definition: bad numbers are refused by name, and a million runs have the law
//! that their accountant assumes.
//!
//! Every figure that is tested is the number of runs, or of examples in all runs, in which an event of known
//! probability p happened. With n of them independent, a share k / n as far from p has probability 2 exp(-n
//! KL(k / n, p)) at most, whatever n is. Bonferroni: each of a law's figures is tested at [`ALPHA`] over
//! their number. Keys are those of the run's number, so that nothing differs from one machine or day to
//! another; with other keys a correct sampler would fail in one of 10^6 of these laws.

mod sampled_runs;

use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use antinoise_plan::{Batches, Sampler};
use rand_core::Rng;
use sampled_runs::{Draw, Law, Runs, STEPS, Seeded};

/// False alarms of one law, all its figures together.
const ALPHA: f64 = 1e-6;

fn rng(run: u64, purpose: Purpose, step: usize) -> KeyedRng {
    KeyedRng::new(&Key::from_seed_insecure(run), &RunId::default(), purpose, step as u64)
}

/// The batches of a run from generators that `rng` makes of (run, purpose, step).
fn made<R: Rng>(law: &Law, run: u64, rng: impl Fn(u64, Purpose, usize) -> R) -> Batches {
    Batches::new(law.sampler, law.examples, law.batch_size, STEPS, &mut rng(run, Purpose::DataOrder, 0))
        .unwrap()
}

fn at<R: Rng>(
    batches: &Batches,
    run: u64,
    step: usize,
    rng: impl Fn(u64, Purpose, usize) -> R,
) -> Vec<usize> {
    batches.at(step, &mut rng(run, Purpose::BatchSampling, step))
}

fn whole(law: &Law, run: u64) -> Draw {
    let batches = made(law, run, Seeded::new);
    std::array::from_fn(|step| at(&batches, run, step, Seeded::new))
}

/// The same run, stopped before a step that differs from run to run and resumed from its seed alone.
fn resumed(law: &Law, run: u64) -> Draw {
    let cut = Seeded::new(run, Purpose::Token, 0).next_u64() as usize % (STEPS + 1);
    let (before, after) = (made(law, run, Seeded::new), made(law, run, Seeded::new));
    std::array::from_fn(|step| at(if step < cut { &before } else { &after }, run, step, Seeded::new))
}

fn holds(law: &Law) {
    for (name, draw) in [("whole", whole as fn(&Law, u64) -> Draw), ("resumed", resumed)] {
        let runs = Runs::new(law.examples, |run| draw(law, run));
        let found = runs.against(law, ALPHA);
        assert!(found.departures.is_empty(), "{:?}, {name}: {:?}", law.sampler, found.departures);
        assert!(found.tested > 2000, "{:?}: {} figures were tested", law.sampler, found.tested);
    }
}

fn is_rejected(law: &Law, fault: &str, draw: impl Fn(u64) -> Draw + Sync) {
    let found = Runs::new(law.examples, draw).against(law, ALPHA);
    assert!(!found.departures.is_empty(), "{:?}: {fault}", law.sampler);
}

#[test]
fn cyclic_batches_are_a_uniform_order_cut_into_groups() {
    let law = Law::grouped(Sampler::Cyclic { groups: 3 }, 11, 3);
    holds(&law);
    is_rejected(&law, "shuffled anew in each epoch", |run| {
        let epochs = [run, run ^ 1 << 40].map(|run| made(&law, run, Seeded::new));
        std::array::from_fn(|step| at(&epochs[step / 3], run, step, Seeded::new))
    });
    is_rejected(&law, "in the order of the data", |_| {
        std::array::from_fn(|step| [0..3, 3..7, 7..11][step % 3].clone().collect())
    });
}

#[test]
fn shuffled_batches_are_a_uniform_order_in_each_epoch() {
    let law = Law::shuffled(11, 3);
    holds(&law);
    is_rejected(&law, "the same order in each epoch", |run| {
        let epoch = made(&law, run, Seeded::new);
        std::array::from_fn(|step| at(&epoch, run, step % 3, Seeded::new))
    });
    is_rejected(&law, "an order that is turned by one place", |run| {
        let epoch = made(&law, run, Seeded::new);
        std::array::from_fn(|step| {
            let batch = at(&epoch, run, step % 3, Seeded::new);
            batch.into_iter().map(|example| (example + step / 3) % 11).collect()
        })
    });
}

#[test]
fn poisson_batches_are_coins_of_one_probability() {
    let law = Law::grouped(Sampler::Poisson { groups: 1 }, 11, 4);
    holds(&law);
    is_rejected(&law, "a probability 1% too small", |run| {
        let mut rng = Seeded::new(run, Purpose::Token, 0);
        whole(&law, run).map(|batch| thinned(batch, &mut rng))
    });
}

/// Without 1% of its examples.
fn thinned(batch: Vec<usize>, rng: &mut impl Rng) -> Vec<usize> {
    batch.into_iter().filter(|_| !rng.next_u64().is_multiple_of(100)).collect()
}

#[test]
fn block_cyclic_poisson_batches_are_coins_within_groups() {
    let law = Law::grouped(Sampler::Poisson { groups: 3 }, 11, 2);
    holds(&law);
    is_rejected(&law, "a probability 1% too small", |run| {
        let mut rng = Seeded::new(run, Purpose::Token, 0);
        whole(&law, run).map(|batch| thinned(batch, &mut rng))
    });
    is_rejected(&law, "the same coins at each step", |run| {
        let batches = made(&law, run, Seeded::new);
        std::array::from_fn(|step| batches.at(step, &mut Seeded::new(run, Purpose::BatchSampling, 0)))
    });
}

/// Inclusion of each example, of each two, and the sizes, where batches are often cut.
#[test]
fn truncated_batches_are_uniform_cuts_of_poisson_batches() {
    for law in [Law::truncated(1, 11, 4, 5), Law::truncated(3, 11, 2, 2)] {
        holds(&law);
        let uncut = |run| {
            Batches::new(
                match law.sampler {
                    Sampler::TruncatedPoisson { groups, .. } => Sampler::Poisson { groups },
                    other => panic!("{other:?}"),
                },
                11,
                law.batch_size,
                STEPS,
                &mut Seeded::new(run, Purpose::DataOrder, 0),
            )
            .unwrap()
        };
        let most = law.sampler.max_batch_size().unwrap();
        is_rejected(&law, "batches that are not cut", |run| {
            let batches = uncut(run);
            std::array::from_fn(|step| at(&batches, run, step, Seeded::new))
        });
        is_rejected(&law, "the first examples are kept", |run| {
            let batches = uncut(run);
            std::array::from_fn(|step| at(&batches, run, step, Seeded::new).into_iter().take(most).collect())
        });
    }
}

#[test]
fn bins_are_drawn_once_for_each_example_on_its_own() {
    let law = Law::bins(11, 3);
    holds(&law);
    is_rejected(&law, "bins anew in each round", |run| {
        let rounds = [run, run ^ 1 << 40].map(|run| made(&law, run, Seeded::new));
        std::array::from_fn(|step| at(&rounds[step / 3], run, step, Seeded::new))
    });
}

#[test]
fn b_min_sep_batches_are_waits_and_coins() {
    let law = Law::b_min_sep(12, 3, 3);
    holds(&law);
    // The definition itself, with other generators, is no departure; with a wait one step short it is.
    let by_definition = |run, first: usize, wait: usize| {
        law.by_definition(&mut Seeded::new(run, Purpose::Token, 0), first, wait)
    };
    let found = Runs::new(law.examples, |run| by_definition(run, 3, 3)).against(&law, ALPHA);
    assert!(found.departures.is_empty(), "{:?}", found.departures);
    is_rejected(&law, "a wait one step short", |run| by_definition(run, 3, 2));
    is_rejected(&law, "no wait at first", |run| by_definition(run, 1, 3));
}

#[test]
fn a_stream_is_its_examples_in_their_order() {
    for (examples, batch_size) in [(11, 2), (7, 7), (5, 1), (100, 9)] {
        for run in 0..100 {
            let (sampler, order) = (Sampler::Stream, &mut rng(run, Purpose::DataOrder, 0));
            let batches = Batches::new(sampler, examples, batch_size, 1, order).unwrap();
            for step in 0..2 * examples {
                let from = step * batch_size;
                let wanted = from..if from + batch_size <= examples { from + batch_size } else { from };
                assert_eq!(at(&batches, run, step, rng), wanted.collect::<Vec<_>>());
            }
        }
    }
}

/// Steps in an order other than the run's, each from batches that are made for it alone.
#[test]
fn batches_depend_on_key_and_step_alone() {
    let laws = [
        Law::grouped(Sampler::Cyclic { groups: 3 }, 11, 3),
        Law::shuffled(11, 3),
        Law::grouped(Sampler::Poisson { groups: 1 }, 11, 4),
        Law::grouped(Sampler::Poisson { groups: 3 }, 11, 2),
        Law::truncated(1, 11, 4, 5),
        Law::bins(11, 3),
        Law::b_min_sep(12, 3, 3),
    ];
    for law in laws {
        let in_order = |run| -> Draw {
            let batches = made(&law, run, rng);
            std::array::from_fn(|step| at(&batches, run, step, rng))
        };
        let mut differing = 0;
        for run in 0..1000 {
            let batches = in_order(run);
            for step in (0..STEPS).rev() {
                assert_eq!(
                    at(&made(&law, run, rng), run, step, rng),
                    batches[step],
                    "{:?}: {run}, {step}",
                    law.sampler
                );
            }
            differing += usize::from(batches != in_order(run + 1));
        }
        assert!(differing > 950, "{:?}: {differing} of 1000 keys give other batches", law.sampler);
    }
}

const NUMBERS: [usize; 17] = [
    0,
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    12,
    31,
    (1 << 31) + 1,
    1 << 32,
    1 << 53,
    1 << 62,
    usize::MAX / 2,
    usize::MAX - 1,
    usize::MAX,
];

/// Every sampler with every four of [`NUMBERS`]: an error that names a parameter where the definition has no
/// meaning, else batches that obey it. Built with overflow checks, so that nothing wraps unseen.
#[test]
fn bad_numbers_are_refused_by_name_and_good_ones_give_the_definition() {
    let (mut refused, mut taken) = (0, 0);
    for examples in NUMBERS {
        for number in NUMBERS {
            for batch_size in NUMBERS {
                for steps in NUMBERS {
                    let is_good = one_of_each(examples, number, batch_size, steps);
                    taken += is_good;
                    refused += 7 - is_good;
                }
            }
        }
    }
    assert!(taken > 10_000 && refused > 10_000, "{taken} taken, {refused} refused");
}

/// The seven samplers with these numbers, of which `steps` is also the maximum size of a batch; how many are
/// taken.
fn one_of_each(examples: usize, number: usize, batch_size: usize, steps: usize) -> usize {
    let fits =
        |k: usize, size: usize| k >= 1 && size >= 1 && k.checked_mul(size).is_some_and(|all| all <= examples);
    let is_held = examples <= 1 << 31;
    let samplers = [
        (Sampler::Cyclic { groups: number }, fits(number, 1)),
        (
            Sampler::Shuffled { groups: number },
            is_held
                && fits(number, 1)
                && (1..=1 << 26).contains(&steps)
                && steps.div_ceil(number) * examples <= 1 << 31,
        ),
        (Sampler::Poisson { groups: number }, fits(number, batch_size)),
        (
            Sampler::TruncatedPoisson { groups: number, max_batch_size: steps },
            fits(number, batch_size) && steps >= 1,
        ),
        (Sampler::BallsInBins { bins: number }, fits(number, 1)),
        (Sampler::BMinSep { min_sep: number }, fits(number, batch_size) && (1..=1 << 26).contains(&steps)),
        (Sampler::Stream, fits(1, batch_size)),
    ];
    let mut taken = 0;
    for (sampler, has_meaning) in samplers {
        let run = (examples ^ number << 4 ^ batch_size << 8) as u64;
        let made = Batches::new(sampler, examples, batch_size, steps, &mut rng(run, Purpose::DataOrder, 0));
        let case = format!("{sampler:?}, {examples} examples, {batch_size} a batch, {steps} steps");
        match made {
            Ok(batches) => {
                assert!(has_meaning && is_held, "{case} is taken");
                obeys(&batches, sampler, (examples, batch_size), run, steps.min(40))
                    .unwrap_or_else(|why| panic!("{case}: {why}"));
                taken += 1;
            }
            Err(error) => {
                assert!(!(has_meaning && is_held), "{case}: {error}");
                let names =
                    ["examples", "groups", "bins", "batch_size", "max_batch_size", "min_sep", "steps"];
                assert!(names.contains(&&*error.parameter), "{case}: {error}");
            }
        }
    }
    taken
}

/// What holds of every draw.
fn obeys(
    batches: &Batches,
    sampler: Sampler,
    (examples, batch_size): (usize, usize),
    run: u64,
    steps: usize,
) -> Result<(), String> {
    let mut turns = vec![Vec::new(); examples];
    for step in 0..steps {
        let batch = at(batches, run, step, rng);
        for &example in &batch {
            turns.get_mut(example).ok_or("no such example")?.push(step);
        }
        let is_of_its_size = match sampler {
            Sampler::Cyclic { groups } | Sampler::Shuffled { groups } => {
                (examples / groups..=examples.div_ceil(groups)).contains(&batch.len())
            }
            Sampler::Stream => batch.len() == if step < examples / batch_size { batch_size } else { 0 },
            Sampler::TruncatedPoisson { max_batch_size, .. } => batch.len() <= max_batch_size,
            _ => true,
        };
        if !is_of_its_size {
            return Err(format!("step {step} has {} examples", batch.len()));
        }
    }
    let apart = |gaps: fn(usize, usize) -> bool, by: usize| {
        turns
            .iter()
            .all(|turns| turns.windows(2).all(|pair| pair[1] > pair[0] && gaps(pair[1] - pair[0], by)))
    };
    let holds = match sampler {
        Sampler::Cyclic { groups } | Sampler::BallsInBins { bins: groups } => {
            apart(|gap, groups| gap == groups, groups)
                && (steps < groups || turns.iter().all(|turns| !turns.is_empty()))
        }
        Sampler::Shuffled { groups } => turns.iter().all(|turns| {
            turns.windows(2).all(|pair| pair[1] / groups == pair[0] / groups + 1)
                && turns.len() >= steps / groups
        }),
        Sampler::Poisson { groups } | Sampler::TruncatedPoisson { groups, .. } => {
            apart(|gap, groups| gap % groups == 0, groups)
        }
        Sampler::BMinSep { min_sep } => apart(|gap, min_sep| gap >= min_sep, min_sep),
        _ => turns.iter().all(|turns| turns.len() <= 1),
    };
    if holds { Ok(()) } else { Err(format!("turns are {turns:?}")) }
}
