//! Samples whose density is proportional to `LR^a` times that of the noise, by means of `a` replicas of the
//! example.
//!
//! `LR^a` expands into a mixture over the patterns of `a` replicas, where combinations of patterns are more
//! likely the more their means overlap. Let `e^{v_x}` be the likelihood ratio of pattern x. With k_t replicas
//! in step t and means times beta, the mean over the noise of the product of the replicas' `e^{beta v_x}` is
//! `exp(sum_t beta^2 k_t (k_t G_tt / 2 + sum_{s<t} k_s G_ts) - beta k_t G_tt / 2)`, where `G = C^T C`. G_ts =
//! 0 for s at least b steps away, and a replica waits for b steps after a participation. So the waiting times
//! of all replicas form the state of a Markov chain: weights are summed from the last step back, and a sample
//! walks forward. Replicas are exchangeable: a state is a sorted list of waiting times.

use std::collections::HashMap;

use rayon::prelude::*;

use super::sampling_law::SamplingLaw;
use crate::monte_carlo::Normals;

/// Maximum number of states times steps, which takes 64 MB and half a second.
const MAX_ENTRIES: usize = 1 << 22;
/// Number of states per parallel task.
const SHARE: usize = 256;

/// A proposal made of replicas of the example.
#[derive(Debug)]
pub(crate) struct ReplicaProposal {
    /// a: the number of replicas.
    pub count: usize,
    /// beta: the factor on the means, which is 1 unless there is a single replica.
    pub stretch: f64,
    /// ln W: the logarithm of the normalising constant of the density.
    pub ln_weight: f64,
    states: Vec<State>,
    /// Probability of each initial state.
    first: Vec<f64>,
    /// `after[t][state]`: ln of the total weight of the steps from t on.
    after: Vec<Vec<f64>>,
    /// `none[t][state]`: probability that no replica takes part in step t.
    none: Vec<Vec<f64>>,
    weights: Weights,
    gram: Vec<Vec<f64>>,
}

#[derive(Debug)]
struct State {
    /// Number of replicas that do not wait.
    free: usize,
    /// Steps since the last participation of each waiting replica.
    lags: Vec<usize>,
    /// `next[k]`: the state after k free replicas take part.
    next: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Weights {
    ln_join: f64,
    ln_stay: f64,
    stretch: f64,
}

impl Weights {
    /// The logarithm of the weight of k free replicas taking part.
    fn ln(self, state: &State, k: usize, gram: &[f64]) -> f64 {
        let stayed = state.free - k;
        let stay = if stayed > 0 { stayed as f64 * self.ln_stay } else { 0.0 };
        if k == 0 {
            return stay;
        }
        let (beta, times) = (self.stretch, k as f64);
        let others: f64 = state.lags.iter().map(|&lag| gram[lag]).sum();
        stay + times * self.ln_join
            + ln_choose(state.free, k)
            + beta * times * (beta * (0.5 * times * gram[0] + others) - 0.5 * gram[0])
    }
}

impl ReplicaProposal {
    /// Whether the states of `count` replicas are few enough to sum over.
    pub fn is_affordable(min_sep: usize, steps: usize, count: usize) -> bool {
        let mut states = 1.0;
        for i in 1..=count {
            states *= (min_sep - 1 + i) as f64 / i as f64;
        }
        states * steps as f64 <= MAX_ENTRIES as f64
    }

    /// Creates the proposal of `count` replicas with means multiplied by `stretch`; `gram[t][lag]` is
    /// `<c_t, c_{t-lag}>` for lags below b.
    pub fn new(law: SamplingLaw, gram: &[Vec<f64>], count: usize, stretch: f64) -> Self {
        let steps = gram.len();
        let (states, first) = states(law.min_sep, count, law.free, law.rate);
        let weights = Weights { ln_join: law.join.ln(), ln_stay: law.stay.ln(), stretch };
        let mut after = vec![vec![0.0; states.len()]; steps + 1];
        for t in (0..steps).rev() {
            let (now, later) = after.split_at_mut(t + 1);
            let sum_of = |state: &State| {
                let each = (0..=state.free).map(|k| weights.ln(state, k, &gram[t]) + later[0][state.next[k]]);
                each.fold(f64::NEG_INFINITY, ln_add)
            };
            let fill = |(sums, states): (&mut [f64], &[State])| {
                sums.iter_mut().zip(states).for_each(|(sum, state)| *sum = sum_of(state));
            };
            if states.len() > SHARE {
                now[t].par_chunks_mut(SHARE).zip(states.par_chunks(SHARE)).for_each(fill);
            } else {
                fill((&mut now[t], &states));
            }
        }
        let none_at = |t: usize| -> Vec<f64> {
            let chance = |(state, sum): (&State, &f64)| {
                (weights.ln(state, 0, &gram[t]) + after[t + 1][state.next[0]] - sum).exp()
            };
            states.iter().zip(&after[t]).map(chance).collect()
        };
        let none = (0..steps).into_par_iter().map(none_at).collect();
        let mut ln_weight = f64::NEG_INFINITY;
        let ln_first: Vec<f64> = first.iter().zip(&after[0]).map(|(chance, sum)| chance.ln() + sum).collect();
        for &term in &ln_first {
            ln_weight = ln_add(ln_weight, term);
        }
        let first = ln_first.iter().map(|term| (term - ln_weight).exp()).collect();
        Self { count, stretch, ln_weight, states, first, after, none, weights, gram: gram.to_vec() }
    }

    /// The exponent a beta - 1: weights are proportional to LR^-exponent.
    pub fn exponent(&self) -> f64 {
        self.count as f64 * self.stretch - 1.0
    }

    /// Draws the patterns of all replicas, and calls `add(t, factor)` for each column c_t that their mean
    /// contains, with its factor.
    pub fn draw(&self, normals: &mut Normals, mut add: impl FnMut(usize, f64)) {
        let mut at = pick(self.first.iter().copied(), normals);
        for (t, gram) in self.gram.iter().enumerate() {
            let state = &self.states[at];
            let none = self.none[t][at];
            let k = if state.free == 0 || normals.uniform() <= none {
                0
            } else {
                let chance = |k: usize| {
                    let ln = self.weights.ln(state, k, gram) + self.after[t + 1][state.next[k]];
                    (ln - self.after[t][at]).exp() / (1.0 - none)
                };
                1 + pick((1..=state.free).map(chance), normals)
            };
            if k > 0 {
                add(t, self.stretch * k as f64);
            }
            at = state.next[k];
        }
    }
}

/// Draws an index with the given probabilities. If rounding makes their sum less than 1, the last index of
/// positive probability gets the rest.
fn pick(chances: impl Iterator<Item = f64>, normals: &mut Normals) -> usize {
    let (mut left, mut found) = (normals.uniform(), 0);
    for (index, chance) in chances.enumerate() {
        if chance > 0.0 {
            found = index;
            if left <= chance {
                break;
            }
            left -= chance;
        }
    }
    found
}

/// All states of `count` replicas with waiting times below `min_sep` steps, and their initial probabilities.
fn states(min_sep: usize, count: usize, free: f64, rate: f64) -> (Vec<State>, Vec<f64>) {
    let mut lists = vec![vec![0usize; count]];
    loop {
        let mut next = lists[lists.len() - 1].clone();
        let Some(place) = next.iter().rposition(|&wait| wait + 1 < min_sep) else { break };
        let wait = next[place] + 1;
        next[place..].fill(wait);
        lists.push(next);
    }
    let index: HashMap<&[usize], usize> = lists.iter().enumerate().map(|(i, list)| (&list[..], i)).collect();
    let state = |list: &Vec<usize>| {
        let waiting: Vec<usize> = list.iter().copied().filter(|&wait| wait > 0).collect();
        let free = count - waiting.len();
        let next = |k: usize| {
            let mut after: Vec<usize> = vec![0; free - k];
            after.extend(waiting.iter().map(|wait| wait - 1));
            after.extend(std::iter::repeat_n(min_sep - 1, k));
            after.sort_unstable();
            index[&after[..]]
        };
        let lags = waiting.iter().map(|wait| min_sep - wait).collect();
        State { free, lags, next: (0..=free).map(next).collect() }
    };
    let chance = |list: &Vec<usize>| {
        // Multinomial probability of the waiting times.
        let (mut ln, mut start) = (ln_factorial(count), 0);
        while start < count {
            let same = list[start..].iter().take_while(|&&wait| wait == list[start]).count();
            let each = if list[start] == 0 { free } else { rate };
            ln += same as f64 * each.ln() - ln_factorial(same);
            start += same;
        }
        ln.exp()
    };
    let made = lists.iter().map(state).collect();
    (made, lists.iter().map(chance).collect())
}

/// ln (e^a + e^b).
pub(super) fn ln_add(a: f64, b: f64) -> f64 {
    let (most, least) = if a > b { (a, b) } else { (b, a) };
    if least == f64::NEG_INFINITY { most } else { most + (least - most).exp().ln_1p() }
}

fn ln_factorial(n: usize) -> f64 {
    (2..=n).map(|i| (i as f64).ln()).sum()
}

fn ln_choose(n: usize, k: usize) -> f64 {
    if k == 0 || k == n { 0.0 } else { ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k) }
}
