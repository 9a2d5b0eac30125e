//! Elementwise functions: gates, cells, probabilities.

use super::scalar::{exp, sigmoid, tanh};
use antinoise_train::multiversion;

/// Numbers processed together.
const LANES: usize = 16;

/// The cells of several sequences at one time, `hidden` numbers each.
pub(super) struct Cells<'a> {
    /// The cell state c before the step.
    pub(super) c_before: &'a [f32],
    /// tanh of the cell state after the step.
    pub(super) open: &'a mut [f32],
    pub(super) hidden: usize,
}

/// Sixteen cells of one sequence.
#[derive(Default)]
struct Lanes {
    /// i, f, g and o.
    gates: [[f32; LANES]; 4],
    c_before: [f32; LANES],
    c: [f32; LANES],
    open: [f32; LANES],
    h: [f32; LANES],
}

multiversion! {
    /// A forward step: activations of the gates, c, tanh c and h.
    fn forward(lanes: &mut Lanes) {
        let Lanes { gates: [i, f, g, o], c_before, c, open, h } = lanes;
        for j in 0..LANES {
            i[j] = sigmoid(i[j]);
            f[j] = sigmoid(f[j]);
            g[j] = tanh(g[j]);
            o[j] = sigmoid(o[j]);
            c[j] = f[j] * c_before[j] + i[j] * g[j];
            open[j] = tanh(c[j]);
            h[j] = o[j] * open[j];
        }
    }
}

multiversion! {
    /// A backward step. On entry `h` and `c` hold the gradients after the step; on return the gates hold the
    /// gradients of their pre-activations, and `c` the gradient before the step.
    fn backward(lanes: &mut Lanes) {
        let Lanes { gates: [i, f, g, o], c_before, c, open, h } = lanes;
        for j in 0..LANES {
            let d = c[j] + h[j] * o[j] * (1.0 - open[j] * open[j]);
            c[j] = d * f[j];
            let of_input = d * g[j] * i[j] * (1.0 - i[j]);
            g[j] = d * i[j] * (1.0 - g[j] * g[j]);
            i[j] = of_input;
            f[j] = d * c_before[j] * f[j] * (1.0 - f[j]);
            o[j] = h[j] * open[j] * o[j] * (1.0 - o[j]);
        }
    }
}

/// Copies the first sixteen numbers of `from` into `lane`, or all of them if there are fewer.
fn load(lane: &mut [f32; LANES], from: &[f32]) {
    match from.first_chunk() {
        Some(whole) => *lane = *whole,
        None => lane[..from.len()].copy_from_slice(from),
    }
}

fn store(lane: &[f32; LANES], to: &mut [f32]) {
    match to.first_chunk_mut() {
        Some(whole) => *whole = *lane,
        None => to.copy_from_slice(&lane[..to.len()]),
    }
}

impl Cells<'_> {
    /// A forward step. On entry `gates` hold the pre-activations i, f, g and o of each sequence; on return
    /// their activations.
    pub(super) fn step(self, gates: &mut [f32], c: &mut [f32], h: &mut [f32]) {
        let Self { c_before, open, hidden } = self;
        let mut lanes = Lanes::default();
        for (s, gates) in gates.chunks_exact_mut(4 * hidden).enumerate() {
            for from in (0..hidden).step_by(LANES) {
                let width = LANES.min(hidden - from);
                let at = s * hidden + from..s * hidden + from + width;
                load_gates(&mut lanes, gates, hidden, from..from + width);
                load(&mut lanes.c_before, &c_before[at.clone()]);
                forward(&mut lanes);
                store_gates(&lanes, gates, hidden, from..from + width);
                store(&lanes.c, &mut c[at.clone()]);
                store(&lanes.open, &mut open[at.clone()]);
                store(&lanes.h, &mut h[at]);
            }
        }
    }

    /// A backward step: from the gradients of h and c after the step to the gradients of the gates'
    /// pre-activations, in place, and of c before the step.
    pub(super) fn step_back(self, gates: &mut [f32], dh: &[f32], dc: &mut [f32]) {
        let Self { c_before, open, hidden } = self;
        let mut lanes = Lanes::default();
        for (s, gates) in gates.chunks_exact_mut(4 * hidden).enumerate() {
            for from in (0..hidden).step_by(LANES) {
                let width = LANES.min(hidden - from);
                let at = s * hidden + from..s * hidden + from + width;
                load_gates(&mut lanes, gates, hidden, from..from + width);
                load(&mut lanes.c_before, &c_before[at.clone()]);
                load(&mut lanes.open, &open[at.clone()]);
                load(&mut lanes.h, &dh[at.clone()]);
                load(&mut lanes.c, &dc[at.clone()]);
                backward(&mut lanes);
                store_gates(&lanes, gates, hidden, from..from + width);
                store(&lanes.c, &mut dc[at]);
            }
        }
    }
}

fn load_gates(lanes: &mut Lanes, gates: &[f32], hidden: usize, at: std::ops::Range<usize>) {
    for (lane, gate) in lanes.gates.iter_mut().zip(gates.chunks_exact(hidden)) {
        load(lane, &gate[at.clone()]);
    }
}

fn store_gates(lanes: &Lanes, gates: &mut [f32], hidden: usize, at: std::ops::Range<usize>) {
    for (lane, gate) in lanes.gates.iter().zip(gates.chunks_exact_mut(hidden)) {
        store(lane, &mut gate[at.clone()]);
    }
}

multiversion! {
    /// x <- e^(x - highest); `sum` <- their sum.
    fn exponentials(logits: &mut [f32], highest: f32, sum: &mut f32) {
        let mut sums = [0f32; LANES];
        let (lanes, rest) = logits.as_chunks_mut::<LANES>();
        for lane in lanes {
            for j in 0..LANES {
                lane[j] = exp(lane[j] - highest);
                sums[j] += lane[j];
            }
        }
        for (x, sum) in rest.iter_mut().zip(&mut sums) {
            *x = exp(*x - highest);
            *sum += *x;
        }
        *sum = sums.iter().sum();
    }
}

/// Turns logits into probabilities; returns -ln of the target's probability, and whether no symbol is
/// likelier.
pub(super) fn probabilities(logits: &mut [f32], target: usize) -> (f64, bool) {
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let own = logits[target] - highest;
    let mut sum = 0.0;
    exponentials(logits, highest, &mut sum);
    let share = 1.0 / sum;
    logits.iter_mut().for_each(|x| *x *= share);
    (f64::from(sum).ln() - f64::from(own), own == 0.0)
}
