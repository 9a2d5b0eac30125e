//! The terms of the power series a / b for a short b, computed in blocks of eight with vector instructions;
//! one by one, each term would have to wait for the previous one.

use crate::numeric::lanes::{LANES, Lanes};
use crate::numeric::vector::add_scaled;

/// The state of a division of power series.
pub(crate) struct Quotient {
    /// The factor 1 / b_0.
    scale: f64,
    /// `past[r - 1][i]`: the weight that the r-th most recent term before a block has in the partial result
    /// for term `i`, which leaves out the block's own terms.
    past: Vec<Lanes>,
    /// `within[j][i]`: the weight that partial result `j` has in term `i` of the block.
    within: [Lanes; LANES],
    /// The latest terms, the most recent first.
    recent: Vec<f64>,
}

impl Quotient {
    /// Starts a division by `b`, where b_0 is not 0.
    pub(crate) fn new(b: &[f64]) -> Self {
        let weight = |s: usize| b.get(s).map_or(0.0, |x| -x / b[0]);
        let mut first = [0.0; LANES];
        for t in 0..LANES {
            first[t] = f64::from(t == 0) + (1..=t).map(|s| weight(s) * first[t - s]).sum::<f64>();
        }
        Self {
            scale: 1.0 / b[0],
            past: (1..b.len()).map(|r| std::array::from_fn(|i| weight(r + i))).collect(),
            within: std::array::from_fn(|j| std::array::from_fn(|i| if i < j { 0.0 } else { first[i - j] })),
            recent: vec![0.0; (b.len() - 1).max(LANES)],
        }
    }

    /// Computes the next `out.len()` terms of the quotient from the next terms of the dividend, `a`, which is
    /// padded with zeros. In every call but the last, `out.len()` must be a multiple of 8.
    pub(crate) fn fill(&mut self, a: &[f64], out: &mut [f64]) {
        for (at, out) in out.chunks_mut(LANES).enumerate() {
            let a = a.get(at * LANES..).unwrap_or(&[]);
            let input = match a.first_chunk::<LANES>() {
                Some(a) => *a,
                None => std::array::from_fn(|i| a.get(i).copied().unwrap_or(0.0)),
            };
            out.copy_from_slice(&self.next(input)[..out.len()]);
        }
    }

    fn next(&mut self, input: Lanes) -> Lanes {
        // Two independent sums, which the processor computes at the same time.
        let (mut even, mut odd) = (input.map(|x| x * self.scale), [0.0; LANES]);
        let (pairs, terms) = (self.past.chunks_exact(2), self.recent.chunks_exact(2));
        for (weights, terms) in pairs.zip(terms) {
            add_scaled(&mut even, terms[0], &weights[0]);
            add_scaled(&mut odd, terms[1], &weights[1]);
        }
        if self.past.len() % 2 == 1 {
            let last = self.past.len() - 1;
            add_scaled(&mut even, self.recent[last], &self.past[last]);
        }
        let alone: Lanes = std::array::from_fn(|i| even[i] + odd[i]);
        (even, odd) = ([0.0; LANES], [0.0; LANES]);
        for j in (0..LANES).step_by(2) {
            add_scaled(&mut even, alone[j], &self.within[j]);
            add_scaled(&mut odd, alone[j + 1], &self.within[j + 1]);
        }
        let terms: Lanes = std::array::from_fn(|i| even[i] + odd[i]);
        let kept = self.recent.len() - LANES;
        self.recent.copy_within(..kept, LANES);
        (0..LANES).for_each(|i| self.recent[i] = terms[LANES - 1 - i]);
        terms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_those_made_one_by_one() {
        for (length, n) in [(1, 8), (2, 13), (3, 64), (9, 70), (16, 200), (40, 100)] {
            let b: Vec<f64> = (0..length).map(|s| 1.5 / (1.0 + s as f64).powi(2)).collect();
            let a: Vec<f64> = (0..n - 2).map(|t| (t as f64).cos()).collect();
            let mut known: Vec<f64> = Vec::new();
            for t in 0..n {
                let past: f64 = (1..length.min(t + 1)).map(|s| b[s] * known[t - s]).sum();
                known.push((a.get(t).unwrap_or(&0.0) - past) / b[0]);
            }
            let (mut quotient, mut found) = (Quotient::new(&b), vec![0.0; n]);
            let (first, rest) = found.split_at_mut(8);
            quotient.fill(&a[..8.min(a.len())], first);
            quotient.fill(a.get(8..).unwrap_or(&[]), rest);
            assert!(found.iter().zip(&known).all(|(x, y)| (x - y).abs() < 1e-13), "{length} {n}");
        }
    }
}
