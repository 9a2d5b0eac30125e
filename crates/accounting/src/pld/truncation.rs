//! Truncated Poisson batches: what cutting a batch at a maximum size costs.

use antinoise_input::{InvalidParameter, at_least};

use crate::Result;

/// A maximum batch size, and an upper bound on the number of examples from which batches are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Truncation {
    max_batch_size: u64,
    examples: u64,
}

/// Maximum number of examples; larger whole numbers are not exact in double precision.
const MAX_EXAMPLES: u64 = 1 << 53;
/// Margin for the rounding of sums and products of a few terms, of logarithms and exponentials.
const ROUNDING: f64 = 1e-13;

impl Truncation {
    /// `None` if no batch can be larger than `max_batch_size`.
    pub fn new(max_batch_size: u64, examples: u64) -> Result<Option<Self>> {
        at_least("max_batch_size", max_batch_size as usize, 1)?;
        if !(1..=MAX_EXAMPLES).contains(&examples) {
            return Err(InvalidParameter::new("examples", examples, "from 1 to 2^53").into());
        }
        Ok((max_batch_size < examples).then_some(Self { max_batch_size, examples }))
    }

    /// An upper bound on the expected number of members of a group of `group` examples that are drawn in one
    /// step at rate `rate` while the others might fill the batch: K q Pr[Bin(N - K, q) > B - K].
    fn cost_upper(self, rate: f64, group: u64) -> f64 {
        let drawn = group as f64 * rate * (1.0 + ROUNDING);
        let others = self.examples.saturating_sub(group);
        let filling = (self.max_batch_size + 1).saturating_sub(group);
        let tail = binomial_tail_upper(others, rate, filling);
        // A positive probability that underflows must not be stated as 0.
        if tail == 0.0 { 0.0 } else { (drawn * tail * (1.0 + ROUNDING)).clamp(f64::MIN_POSITIVE, 1.0) }
    }

    /// An upper bound on what truncation adds to delta over `steps` steps.
    pub fn cost_upper_of(self, rate: f64, steps: u64, group: u64) -> f64 {
        let cost = steps as f64 * self.cost_upper(rate, group) * (1.0 + ROUNDING);
        cost.min(1.0)
    }

    /// A lower bound on the probability that an example is in a batch after it was cut uniformly at random:
    /// q E[min(1, B / (1 + X))] with X from Bin(N - 1, q).
    pub fn kept_rate_lower(self, rate: f64) -> f64 {
        let uncut = 1.0 - binomial_tail_upper(self.examples - 1, rate, self.max_batch_size);
        let kept = uncut.max(self.max_batch_size as f64 / self.examples as f64);
        rate * kept * (1.0 - ROUNDING)
    }
}

/// An upper bound on Pr[Bin(n, p) >= m], for 0 < p <= 1 and n up to 2^53.
///
/// The probabilities of m, m + 1, ... decrease at least as fast as a geometric series of ratio r =
/// (n - m) p / ((m + 1)(1 - p)), so that their sum is at most the first one over 1 - r, if r < 1. The first
/// one is at most sqrt(n / (2 pi m (n - m))) e^{-n KL(m/n || p)} for 0 < m < n, and p^n for m = n, since
/// Stirling's formula bounds the binomial coefficient from above.
///
/// # Source
/// MacWilliams and Sloane, "The theory of error-correcting codes" (1977), chapter 10, lemma 7.
fn binomial_tail_upper(n: u64, p: f64, m: u64) -> f64 {
    if m > n {
        return 0.0;
    }
    let (size, least) = (n as f64, m as f64);
    let (expected, left) = (size * p, 1.0 - p);
    // The mean itself is excluded, so that the series has a ratio below 1 whatever the rounding.
    if m == 0 || least <= expected * (1.0 + ROUNDING) {
        return 1.0;
    }
    // n KL(m/n || p) is the sum of these terms, of opposite sign. Fused: m - n p may be a small difference.
    let beyond = (-size).mul_add(p, least);
    let drawn = least * (beyond / expected).ln_1p();
    let (rest, rest_expected) = ((n - m) as f64, size * left);
    let ratio = -beyond / rest_expected;
    let not_drawn = match m == n {
        true => 0.0,
        // Without cancellation where few are left.
        false => rest * if ratio < -0.5 { (rest / rest_expected).ln() } else { ratio.ln_1p() },
    };
    let exponent = drawn + not_drawn - ROUNDING * (drawn + not_drawn.abs());
    let coefficient = match m == n {
        true => 1.0,
        false => (size / least / (std::f64::consts::TAU * rest)).sqrt(),
    };
    let series = (least + 1.0) * left / (beyond + 1.0 - p);
    let bound = coefficient * (-exponent).exp() * series.max(1.0) * (1.0 + ROUNDING);
    bound.clamp(f64::MIN_POSITIVE, 1.0)
}

/// The smallest maximum batch size whose cost in delta, over `steps` steps at rate `rate` on at most
/// `examples` examples, is at most `delta`; `examples` if only that is enough.
pub(super) fn least_max_batch_size(rate: f64, steps: u64, examples: u64, delta: f64) -> Result<u64> {
    let costs = |max_batch_size: u64| -> Result<f64> {
        Ok(match Truncation::new(max_batch_size, examples)? {
            Some(truncation) => truncation.cost_upper_of(rate, steps, 1),
            None => 0.0,
        })
    };
    let (mut fails, mut works) = (0, examples);
    while works - fails > 1 {
        let middle = fails + (works - fails) / 2;
        if costs(middle)? <= delta { works = middle } else { fails = middle }
    }
    Ok(works)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pr[Bin(n, p) = k] for all k, by adding one trial after another: sums and products of positive numbers.
    fn probabilities(n: usize, p: f64) -> Vec<f64> {
        (0..n).fold(vec![1.0], |before, _| {
            let at = |k: usize| before.get(k).copied().unwrap_or(0.0);
            let one = |k: usize| at(k) * (1.0 - p) + if k > 0 { at(k - 1) * p } else { 0.0 };
            (0..=before.len()).map(one).collect()
        })
    }

    #[test]
    fn tails_are_never_below_the_truth_and_close_to_it_where_they_are_small() {
        let mut compared = 0;
        for n in [1, 2, 3, 5, 8, 20, 61, 200, 1000] {
            for p in [1e-9, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.77, 0.95, 0.999, 1.0] {
                let exact = probabilities(n, p);
                let mut last = f64::INFINITY;
                for m in 0..=n + 1 {
                    let truth: f64 = exact.iter().skip(m).rev().sum();
                    let bound = binomial_tail_upper(n as u64, p, m as u64);
                    let place = format!("n {n}, p {p}, m {m}: {bound:e} for {truth:e}");
                    // The oracle loses an ulp a trial.
                    assert!(bound >= truth.min(1.0) * (1.0 - 1e-15 * n as f64), "{place}");
                    assert!(bound <= last, "{place} after {last}");
                    let deviation = (n as f64 * p * (1.0 - p)).sqrt();
                    if m as f64 > n as f64 * p + 4.0 * deviation + 2.0 && truth > 1e-290 {
                        assert!(bound <= 1.25 * truth, "{place}");
                        compared += 1;
                    }
                    last = bound;
                }
            }
        }
        assert!(compared > 2500, "{compared}");
    }

    /// The generator is scripts/accounting/truncated.py: the sum itself, at 60 digits.
    #[test]
    fn tails_of_many_examples_agree_with_high_precision() {
        let mut rows = 0;
        for line in include_str!("../../tests/golden/truncated_tails.csv").lines().skip(1) {
            let row: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
            let [n, p, m, wanted] = row[..] else { panic!("four columns: {line}") };
            let found = binomial_tail_upper(n as u64, p, m as u64).ln();
            assert!(found >= wanted && found - wanted < 0.25, "{line}: {found}");
            rows += 1;
        }
        assert_eq!(rows, 200);
    }

    #[test]
    fn the_least_size_is_the_least() {
        for (rate, steps, examples, delta) in
            [(0.01, 1000, 60_000, 1e-8), (0.5, 10, 40, 1e-3), (1e-6, 1, 1 << 50, 1e-30), (0.3, 5, 2, 1e-9)]
        {
            let found = least_max_batch_size(rate, steps, examples, delta).unwrap();
            let cost = |size| {
                Truncation::new(size, examples).unwrap().map_or(0.0, |it| it.cost_upper(rate, 1))
                    * steps as f64
            };
            assert!(
                cost(found) <= delta && (found == 1 || cost(found - 1) > delta * (1.0 - 1e-9)),
                "{found}"
            );
        }
    }
}
