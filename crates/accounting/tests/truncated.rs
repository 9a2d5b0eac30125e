//! Poisson batches that are cut at a maximum size: no figure below the truth, by enumeration, and order in
//! every parameter.

mod common;

use antinoise_accounting::{Bounds, Composition, PoissonSampledGaussian};

use common::is_swept;

fn run(sigma: f64, rate: f64, steps: u64) -> PoissonSampledGaussian {
    PoissonSampledGaussian::new(sigma, rate, steps).unwrap()
}

fn composed(run: PoissonSampledGaussian) -> Composition {
    Composition::new([run]).unwrap()
}

fn epsilon(run: PoissonSampledGaussian, delta: f64) -> Bounds {
    composed(run).epsilon(delta).unwrap()
}

/// The generator is scripts/accounting/truncated.py: all batches, and all contributions -1, 0 and 1 of the
/// others, good to about 3e-4, and 2e-3 for more than two steps. The bounds hold, and mean something: without
/// the cost of the cut the upper one would be wrong.
#[test]
fn no_bound_is_on_the_wrong_side_of_an_enumeration() {
    let (mut rows, mut checked, mut wrong_without) = (0, 0, 0);
    for line in include_str!("golden/truncated_delta.csv").lines().skip(1) {
        rows += 1;
        if !is_swept(rows, 6) {
            continue;
        }
        let fields: Vec<&str> = line.split(',').collect();
        let number = |i: usize| fields[i].parse::<f64>().unwrap();
        let whole = |i: usize| fields[i].parse::<u64>().unwrap();
        let uncut = run(number(0), number(1), whole(2));
        let uncut = if fields[5] == "replace-one" { uncut.replaced() } else { uncut };
        let cut = composed(uncut.truncated(whole(4), whole(3)).unwrap());
        let (at, truth) = (number(6), number(7));
        let found = cut.delta(at).unwrap();
        let error = if whole(2) > 2 { 2e-3 } else { 3e-4 };
        assert!(found.upper >= truth * (1.0 - error), "{line}: {found:?}");
        assert!(found.lower <= truth * (1.0 + error), "{line}: {found:?}");
        // The same at the epsilon that is stated for this delta, which takes longer.
        if checked % 10 == 0 {
            let stated = cut.epsilon(truth).unwrap();
            assert!(stated.upper >= at * (1.0 - 3e-3) - 1e-3, "{line}: {stated:?}");
            assert!(stated.lower <= at * (1.0 + 3e-3) + 1e-3, "{line}: {stated:?}");
        }
        let cost = uncut.truncated(whole(4), whole(3)).unwrap().truncation_delta_upper();
        wrong_without += usize::from(found.upper - cost < truth * (1.0 - 3e-3));
        checked += 1;
    }
    assert_eq!((rows, checked % 40), (240, 0));
    assert!(checked > 0 && 12 * wrong_without > checked, "{wrong_without} of {checked}");
}

/// More examples, a higher rate, more steps and a smaller batch are less private; with room for all examples
/// nothing is cut.
#[test]
fn bounds_are_ordered_in_every_parameter() {
    let (sigma, rate, steps, examples, size, delta) = (1.0, 0.01, 500, 20_000, 280, 1e-6);
    let at = |rate, steps, examples, size| {
        epsilon(run(sigma, rate, steps).truncated(size, examples).unwrap(), delta)
    };
    let upper = |values: Vec<Bounds>| values.into_iter().map(|it| it.upper).collect::<Vec<_>>();
    let increasing = [
        upper([400, 300, 285, 280, 276, 273, 1].map(|size| at(rate, steps, examples, size)).to_vec()),
        upper([100, 280, 10_000, 20_000, 22_000, 40_000].map(|n| at(rate, steps, n, size)).to_vec()),
        upper([0.001, 0.008, 0.01, 0.0105, 0.011, 0.02, 1.0].map(|q| at(q, steps, examples, size)).to_vec()),
        upper([1, 10, 500, 5_000, 100_000].map(|steps| at(rate, steps, examples, size)).to_vec()),
    ];
    for values in increasing {
        assert!(values.is_sorted() && values[0] < values[values.len() - 1], "{values:?}");
    }
    let uncut = epsilon(run(sigma, rate, steps), delta);
    assert_eq!(at(rate, steps, examples, 20_000), uncut);
    assert_eq!(at(rate, steps, 100, 280), uncut);
    let free = at(rate, steps, examples, 400);
    assert!(free.upper >= uncut.upper && free.upper <= uncut.upper * (1.0 + 1e-6), "{free:?} {uncut:?}");
    let heavy = at(rate, steps, examples, 1);
    assert!(heavy.lower <= heavy.upper && heavy.upper.is_finite(), "{heavy:?}");
}

/// delta and epsilon are inverse of each other, and the noise of a target meets it.
#[test]
fn a_target_is_met() {
    for (rate, steps, examples, size, at, delta) in [
        (0.01, 1000, 50_000, 620, 2.0, 1e-6),
        (0.1, 100, 1000, 150, 1.0, 1e-5),
        (0.5, 20, 60, 45, 4.0, 1e-3),
        (0.01, 1000, 50_000, 505, 2.0, 1e-6),
    ] {
        for replaced in [false, true] {
            let one = run(1.0, rate, steps).truncated(size, examples).unwrap();
            let one = if replaced { one.replaced() } else { one };
            let sigma = one.noise_multiplier_upper(at, delta).unwrap();
            let met = composed(one.with_noise_multiplier(sigma).unwrap());
            let found = met.epsilon(delta).unwrap();
            assert!(found.upper <= at && found.upper > 0.99 * at, "{rate} {size}: {found:?}");
            assert!(met.delta(at).unwrap().upper <= delta * (1.0 + 1e-3), "{rate} {size}");
        }
    }
}

/// A group of members, each drawn independently, is no safer than one of them, and a phase with a maximum
/// size composes with others.
#[test]
fn groups_and_other_phases_compose() {
    let one = run(2.0, 0.01, 300).truncated(640, 50_000).unwrap();
    let by_size: Vec<f64> =
        [1, 2, 5, 64].map(|size| epsilon(one.of_group(size).unwrap(), 1e-6).upper).to_vec();
    assert!(by_size.windows(2).all(|pair| 1.5 * pair[0] < pair[1]), "{by_size:?}");
    // By conversion, the cost is not multiplied by e^epsilon.
    let (cut, uncut) = (composed(one), composed(run(2.0, 0.01, 300)));
    for size in [2, 5] {
        let (cut, uncut) = (cut.group_epsilon(1e-6, size).unwrap(), uncut.group_epsilon(1e-6, size).unwrap());
        assert!(cut.lower <= cut.upper && cut.upper >= uncut.lower, "{size}: {cut:?} {uncut:?}");
        assert!(cut.upper < 1.02 * uncut.upper, "{size}: {cut:?} {uncut:?}");
    }
    let both = Composition::new([one, run(4.0, 1.0, 2), run(3.0, 0.1, 10)]).unwrap();
    let uncut = Composition::new([run(2.0, 0.01, 300), run(4.0, 1.0, 2), run(3.0, 0.1, 10)]).unwrap();
    let (found, least) = (both.epsilon(1e-6).unwrap(), uncut.epsilon(1e-6).unwrap());
    assert!(found.lower <= found.upper && found.upper >= least.upper, "{found:?} {least:?}");
    assert!(found.upper < 1.01 * least.upper, "{found:?} {least:?}");
    for (size, examples) in [(0, 5), (5, 0), (5, u64::MAX)] {
        let error = run(1.0, 0.1, 1).truncated(size, examples).unwrap_err().to_string();
        assert!(error.starts_with(if size == 0 { "max_batch_size is 0" } else { "examples is " }), "{error}");
    }
}
