//! Sensitivity of trees under min-sep: brute force over all patterns, and the bound for any C.

#[expect(dead_code, reason = "the laws use the rest of it")]
mod oracle;

use antinoise_mechanism::design::StrategySpec;
use antinoise_mechanism::sensitivity::{Kind, Sensitivity};
use antinoise_mechanism::strategy::WeightedTree;
use antinoise_mechanism::{AnyStrategy, Participation, Problem};

/// Pseudo-random numbers between 0 and 1.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() * end as f64) as usize
    }
}

fn weighted(steps: usize, numbers: &mut Numbers) -> AnyStrategy {
    let height = steps.next_power_of_two().trailing_zeros() as usize;
    let weights = (0..=height).map(|_| 0.05 + 2.0 * numbers.next()).collect();
    AnyStrategy::WeightedTree(WeightedTree::new(steps, weights).unwrap())
}

fn named(name: &str, steps: usize) -> AnyStrategy {
    name.parse::<StrategySpec>().unwrap().design(&Problem::prefix(steps)).unwrap().value
}

/// Trees of every kind, and trees that follow one another.
fn trees(steps: usize, numbers: &mut Numbers) -> Vec<AnyStrategy> {
    let mut all: Vec<AnyStrategy> = (0..4).map(|_| weighted(steps, numbers)).collect();
    all.extend(["tree", "smooth-tree", "honaker-full"].map(|name| named(name, steps)));
    if steps > 2 {
        all.extend(["tree+x2", "smooth-tree+x2", "honaker-full+x3"].map(|name| named(name, steps)));
    }
    all
}

fn min_sep(strategy: &AnyStrategy, min_sep: usize, max_participations: usize) -> Sensitivity {
    strategy.sensitivity(&Participation::MinSep { min_sep, max_participations }).unwrap()
}

/// For each k, the largest squared norm of the sum of at most k columns that are at least b apart.
fn brute(columns: &oracle::Matrix, b: usize) -> Vec<f64> {
    fn extend(columns: &oracle::Matrix, b: usize, from: usize, sum: &[f64], count: usize, best: &mut [f64]) {
        best[count] = best[count].max(sum.iter().map(|x| x * x).sum());
        for t in from..columns.len() {
            let sum: Vec<f64> = sum.iter().zip(&columns[t]).map(|(x, c)| x + c).collect();
            extend(columns, b, t + b, &sum, count + 1, best);
        }
    }
    let mut best = vec![0.0; columns.len() + 1];
    extend(columns, b, 0, &vec![0.0; columns[0].len()], 0, &mut best);
    // Fewer participations may be worse, since more must be nearer to each other.
    (1..best.len()).for_each(|count| best[count] = best[count].max(best[count - 1]));
    best
}

fn dense(strategy: &AnyStrategy) -> oracle::Matrix {
    let c = strategy.encoder().unwrap().to_dense();
    (0..c.ncols()).map(|j| c.column(j).to_vec()).collect()
}

#[test]
fn trees_are_exact_under_min_sep() {
    let (mut numbers, mut compared) = (Numbers(5), 0);
    for steps in 1..=13 {
        for tree in trees(steps, &mut numbers) {
            let columns = dense(&tree);
            for b in 1..=steps {
                let expected = brute(&columns, b);
                for k in 1..=(steps - 1) / b + 1 {
                    let found = min_sep(&tree, b, k);
                    let what =
                        format!("{:?} n={steps} b={b} k={k}: {found:?} {}", tree.class(), expected[k].sqrt());
                    assert_eq!(found.kind, Kind::Exact, "{what}");
                    assert!((found.value / expected[k].sqrt() - 1.0).abs() < 1e-12, "{what}");
                    compared += 1;
                }
            }
        }
    }
    assert_eq!(compared, 2808);
}

/// The bound that holds for any C, and patterns with gaps of their own, on both sides of the exact value.
#[test]
fn trees_over_more_steps_lie_between_patterns_and_the_bound() {
    let (mut numbers, mut most) = (Numbers(11), 1.0f64);
    for case in 0..300 {
        let steps = 14 + numbers.below(80);
        let all = trees(steps, &mut numbers);
        let tree = &all[case % all.len()];
        let columns = dense(tree);
        let b = 1 + numbers.below(steps / 2);
        let k = 2 + numbers.below((steps - 1) / b);
        let k = k.min((steps - 1) / b + 1);
        let found = min_sep(tree, b, k);
        let c = antinoise_linear::Matrix::from_fn(columns[0].len(), steps, |i, j| columns[j][i]);
        let bound = min_sep(&AnyStrategy::of_matrix(&c).unwrap(), b, k);
        let what = format!("{:?} n={steps} b={b} k={k}: {found:?} {bound:?}", tree.class());
        assert_eq!(found.kind, Kind::Exact, "{what}");
        assert!(found.value <= bound.value * (1.0 + 1e-12), "{what}");
        most = most.max(bound.value / found.value);
        for _ in 0..200 {
            let mut sum = vec![0.0; c.nrows()];
            let (mut t, mut left) = (numbers.below(b), k);
            while t < steps && left > 0 {
                sum.iter_mut().zip(&columns[t]).for_each(|(x, c)| *x += c);
                left -= 1;
                t += b + if numbers.next() < 0.5 { 0 } else { numbers.below(b + 1) };
            }
            let norm = sum.iter().map(|x| x * x).sum::<f64>().sqrt();
            assert!(norm <= found.value * (1.0 + 1e-12), "{what}: {norm}");
        }
    }
    println!("the bound is up to {most} times the exact value");
    // Magnitudes of inner products, where a search for the worst pattern takes too long.
    assert!(most > 1.01, "{most}");
}

/// A million steps; the value comes from the same dynamic program in exact integers, written in Python.
#[test]
fn trees_over_many_steps_are_exact() {
    let found = min_sep(&named("tree", 1_000_000), 777, 100);
    assert_eq!(found.kind, Kind::Exact);
    assert!((found.value - 237.318_351_587_061_22).abs() < 1e-9, "{found:?}");
}
