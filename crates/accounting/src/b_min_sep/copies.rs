//! Samples from `LR^a`, which is the mixture over `a` independent patterns at once: each step has as many means as copies
//! of the example take part in it, and a set of patterns is the more likely the more its means have in common.
//!
//! With k_t copies in step t and means times beta, the mean over y of the product of the copies' `e^{beta v_x}` is
//! `exp(sum_t beta^2 k_t (k_t G_tt / 2 + sum_{s<t} k_s G_ts) - beta k_t G_tt / 2)`, `G = C^T C`. G_ts is 0 where s is b steps away or more, and
//! within b steps a copy waits. So the waiting times of all copies are a state, all of them are summed over from the last step
//! back, and a sample walks forward. Copies are alike: a state is a sorted list of waiting times.

use std::collections::HashMap;

use rayon::prelude::*;

use super::chances::Chances;
use crate::monte_carlo::Normals;

/// Most states times steps: 64 MB, and half a second.
const MOST_ENTRIES: usize = 1 << 22;
/// States that one thread takes at a time.
const SHARE: usize = 256;

/// Proposals from copies of the example.
#[derive(Debug)]
pub(super) struct Copies {
    /// a.
    pub count: usize,
    /// beta; not 1 only for one copy.
    pub stretch: f64,
    /// ln W: what the density has to be divided by.
    pub ln_weight: f64,
    states: Vec<State>,
    /// The chance of each state at the start.
    first: Vec<f64>,
    /// ln of the sum over what may come from step t on, by step and state.
    after: Vec<Vec<f64>>,
    /// The chance that no copy takes part, by step and state.
    none: Vec<Vec<f64>>,
    weights: Weights,
    gram: Vec<Vec<f64>>,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// How many steps ago the waiting copies took part.
    lags: Vec<usize>,
    /// The state after k free copies have taken part.
    next: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Weights {
    ln_join: f64,
    ln_stay: f64,
    stretch: f64,
}

impl Weights {
    /// ln of the weight of k copies' taking part.
    fn ln(self, state: &State, k: usize, gram: &[f64]) -> f64 {
        let stayed = state.free - k;
        let chance = if stayed > 0 { stayed as f64 * self.ln_stay } else { 0.0 };
        if k == 0 {
            return chance;
        }
        let (beta, times) = (self.stretch, k as f64);
        let others: f64 = state.lags.iter().map(|&lag| gram[lag]).sum();
        chance
            + times * self.ln_join
            + ln_choose(state.free, k)
            + beta * times * (beta * (0.5 * times * gram[0] + others) - 0.5 * gram[0])
    }
}

impl Copies {
    /// Whether the states of so many copies can be summed over.
    pub fn is_affordable(min_sep: usize, steps: usize, count: usize) -> bool {
        let mut states = 1.0;
        for i in 1..=count {
            states *= (min_sep - 1 + i) as f64 / i as f64;
        }
        states * steps as f64 <= MOST_ENTRIES as f64
    }

    /// So many copies with means times `stretch`; `gram[t]` has `<c_t, c_{t-lag}>` for lags below b.
    pub fn new(chances: Chances, gram: &[Vec<f64>], count: usize, stretch: f64) -> Self {
        let steps = gram.len();
        let (states, first) = states(chances.min_sep, count, chances.free, chances.rate);
        let weights = Weights { ln_join: chances.join.ln(), ln_stay: chances.stay.ln(), stretch };
        let mut after = vec![vec![0.0; states.len()]; steps + 1];
        for t in (0..steps).rev() {
            let (now, later) = after.split_at_mut(t + 1);
            let of = |state: &State| {
                let each = (0..=state.free).map(|k| weights.ln(state, k, &gram[t]) + later[0][state.next[k]]);
                each.fold(f64::NEG_INFINITY, ln_add)
            };
            let fill = |(sums, states): (&mut [f64], &[State])| {
                sums.iter_mut().zip(states).for_each(|(sum, state)| *sum = of(state));
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

    /// The power of the ratio that the weight falls with.
    pub fn exponent(&self) -> f64 {
        self.count as f64 * self.stretch - 1.0
    }

    /// Draws patterns; `add` is called with each step that copies take part in, and what its column is to be multiplied by.
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

/// An index by its chance; chances that do not quite add up to 1 leave the rest to the most likely one of no chance 0: the last
/// that was not 0.
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

/// All states of `count` copies that wait less than `min_sep` steps, each with its chance at the start.
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
        // The multinomial of how many wait how long.
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
