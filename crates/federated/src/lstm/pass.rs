//! Forward and backward passes through time, over several sequences at once.
//!
//! In all buffers, row t * count + i is sequence i at time t. Shorter sequences are padded with symbol 0,
//! whose logits have no gradient.

use super::cells::{Cells, probabilities};
use super::product::{Panels, Strided};
use super::shape::Lstm;

/// The memory of one thread for a pass; it grows to the size of the longest pass and is reused.
#[derive(Default)]
pub struct Workspace {
    /// Input symbols, and target symbols; -1 for no target.
    inputs: Vec<u8>,
    targets: Vec<i16>,
    embedded: Vec<f32>,
    /// Pre-activations of the gates, then activations, then gradients.
    gates: Vec<f32>,
    /// c and h at all times, preceded by one time for the start.
    cells: Vec<f32>,
    hidden: Vec<f32>,
    /// tanh of the cell states c.
    open: Vec<f32>,
    /// Logits, then their gradients.
    logits: Vec<f32>,
    hidden_gradients: Vec<f32>,
    cell_gradients: Vec<f32>,
    embedded_gradients: Vec<f32>,
    recurrent: Panels,
    other: Panels,
}

/// Figures of merit of predicted symbols.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Totals {
    /// Sum of -ln p over the symbols, in nats.
    pub(super) loss: f64,
    /// Number of symbols to which the model gave the largest probability.
    pub(super) right: usize,
    /// Number of predicted symbols.
    pub(super) symbols: usize,
}

impl Totals {
    pub(super) fn and(self, other: Self) -> Self {
        let Self { loss, right, symbols } = other;
        Self { loss: self.loss + loss, right: self.right + right, symbols: self.symbols + symbols }
    }
}

/// Consecutive symbols, each predicted from those before it; the first one from `before`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sequence<'a> {
    pub(super) before: u8,
    pub(super) symbols: &'a [u8],
}

/// A row-major matrix.
fn rows(numbers: &[f32], columns: usize) -> Strided<'_> {
    Strided { numbers, row: columns, column: 1 }
}

/// The transpose of a row-major matrix.
fn turned(numbers: &[f32], columns: usize) -> Strided<'_> {
    Strided { numbers, row: 1, column: columns }
}

/// The first `length` numbers, set to 0.
fn zeroed(numbers: &mut Vec<f32>, length: usize) -> &mut [f32] {
    if numbers.len() < length {
        numbers.resize(length, 0.0);
    }
    numbers[..length].fill(0.0);
    &mut numbers[..length]
}

impl Workspace {
    /// Lays out sequences as inputs and targets; returns the numbers of times and of sequences.
    fn set_out<'a>(&mut self, sequences: impl Iterator<Item = Sequence<'a>> + Clone) -> (usize, usize) {
        let count = sequences.clone().count();
        let times = sequences.clone().map(|sequence| sequence.symbols.len()).max().unwrap_or(0);
        self.inputs.clear();
        self.inputs.resize(times * count, 0);
        self.targets.clear();
        self.targets.resize(times * count, -1);
        for (i, Sequence { before, symbols }) in sequences.enumerate() {
            let mut last = before;
            for (t, &symbol) in symbols.iter().enumerate() {
                self.inputs[t * count + i] = last;
                self.targets[t * count + i] = i16::from(symbol);
                last = symbol;
            }
        }
        (times, count)
    }
}

impl Lstm {
    /// Predicts the symbols of all sequences.
    pub(super) fn evaluate<'a>(
        &self,
        memory: &mut Workspace,
        parameters: &[f32],
        sequences: impl Iterator<Item = Sequence<'a>> + Clone,
    ) -> Totals {
        let (times, count) = memory.set_out(sequences);
        self.forward(memory, parameters, times, count)
    }

    /// As [`Self::evaluate`]; also writes to `gradient` the gradient of the mean of -ln p over all symbols.
    pub(super) fn loss_and_gradient<'a>(
        &self,
        memory: &mut Workspace,
        parameters: &[f32],
        sequences: impl Iterator<Item = Sequence<'a>> + Clone,
        gradient: &mut [f32],
    ) -> Totals {
        let (times, count) = memory.set_out(sequences);
        let totals = self.forward(memory, parameters, times, count);
        self.backward(memory, parameters, (times, count), totals.symbols, gradient);
        totals
    }

    fn forward(&self, memory: &mut Workspace, parameters: &[f32], times: usize, count: usize) -> Totals {
        let Self { symbols, embedding, hidden } = *self;
        let (parts, all, wide) = (self.parts(), times * count, 4 * hidden);
        let Workspace {
            inputs,
            targets,
            embedded,
            gates,
            cells,
            hidden: h,
            open,
            logits,
            recurrent,
            other,
            ..
        } = memory;
        let embedded = zeroed(embedded, all * embedding);
        for (to, &symbol) in embedded.chunks_exact_mut(embedding).zip(inputs.iter()) {
            to.copy_from_slice(
                &parameters[parts.embedding.start + symbol as usize * embedding..][..embedding],
            );
        }
        let gates = zeroed(gates, all * wide);
        gates.chunks_exact_mut(wide).for_each(|gate| gate.copy_from_slice(&parameters[parts.bias.clone()]));
        other.pack(rows(&parameters[parts.input], wide), embedding, wide);
        other.add_product(rows(embedded, embedding), all, gates);
        recurrent.pack(rows(&parameters[parts.hidden], wide), hidden, wide);
        let (cells, h) = (zeroed(cells, (all + count) * hidden), zeroed(h, (all + count) * hidden));
        let open = zeroed(open, all * hidden);
        for t in 0..times {
            let (now, next) = (t * count * hidden, (t + 1) * count * hidden);
            let gates = &mut gates[t * count * wide..][..count * wide];
            recurrent.add_product(rows(&h[now..next], hidden), count, gates);
            let (before, after) = cells.split_at_mut(next);
            let cell = Cells { c_before: &before[now..], open: &mut open[now..], hidden };
            cell.step(gates, &mut after[..count * hidden], &mut h[next..]);
        }
        let logits = zeroed(logits, all * symbols);
        logits
            .chunks_exact_mut(symbols)
            .for_each(|l| l.copy_from_slice(&parameters[parts.output_bias.clone()]));
        other.pack(rows(&parameters[parts.output], symbols), hidden, symbols);
        other.add_product(rows(&h[count * hidden..], hidden), all, logits);
        let mut totals = Totals::default();
        for (logits, &target) in logits.chunks_exact_mut(symbols).zip(targets.iter()) {
            match usize::try_from(target) {
                Ok(target) => {
                    let (loss, right) = probabilities(logits, target);
                    totals = totals.and(Totals { loss, right: usize::from(right), symbols: 1 });
                }
                Err(_) => logits.fill(0.0),
            }
        }
        totals
    }

    fn backward(
        &self,
        memory: &mut Workspace,
        parameters: &[f32],
        (times, count): (usize, usize),
        totals: usize,
        gradient: &mut [f32],
    ) {
        let Self { symbols, embedding, hidden } = *self;
        let (parts, all, wide) = (self.parts(), times * count, 4 * hidden);
        gradient.fill(0.0);
        if totals == 0 {
            return;
        }
        let Workspace { inputs, targets, embedded, gates, cells, hidden: h, open, logits, .. } = memory;
        let Workspace { hidden_gradients, cell_gradients, embedded_gradients, recurrent, other, .. } = memory;
        let (logits, h, gates) =
            (&mut logits[..all * symbols], &h[..(all + count) * hidden], &mut gates[..all * wide]);
        let share = 1.0 / totals as f32;
        for (logits, &target) in logits.chunks_exact_mut(symbols).zip(targets.iter()) {
            if let Ok(target) = usize::try_from(target) {
                logits[target] -= 1.0;
                logits.iter_mut().for_each(|x| *x *= share);
            }
        }
        let logits = &*logits;
        add_columns(logits, symbols, &mut gradient[parts.output_bias]);
        other.pack(rows(logits, symbols), all, symbols);
        other.add_product(turned(&h[count * hidden..], hidden), hidden, &mut gradient[parts.output.clone()]);
        // One row more, for the time after the last.
        let dh = zeroed(hidden_gradients, all * hidden);
        other.pack(turned(&parameters[parts.output], symbols), symbols, hidden);
        other.add_product(rows(logits, symbols), all, dh);
        let dc = zeroed(cell_gradients, count * hidden);
        recurrent.pack(turned(&parameters[parts.hidden.clone()], wide), wide, hidden);
        for t in (0..times).rev() {
            let now = t * count * hidden;
            let gates = &mut gates[t * count * wide..][..count * wide];
            let cell = Cells { c_before: &cells[now..], open: &mut open[now..], hidden };
            cell.step_back(gates, &dh[now..], dc);
            if t > 0 {
                let before = &mut dh[now - count * hidden..now];
                recurrent.add_product(rows(gates, wide), count, before);
            }
        }
        let gates = &*gates;
        add_columns(gates, wide, &mut gradient[parts.bias]);
        other.pack(rows(gates, wide), all, wide);
        other.add_product(turned(&h[..all * hidden], hidden), hidden, &mut gradient[parts.hidden]);
        other.add_product(
            turned(&embedded[..all * embedding], embedding),
            embedding,
            &mut gradient[parts.input.clone()],
        );
        let embedded = zeroed(embedded_gradients, all * embedding);
        other.pack(turned(&parameters[parts.input], wide), wide, embedding);
        other.add_product(rows(gates, wide), all, embedded);
        for (from, &symbol) in embedded.chunks_exact(embedding).zip(inputs.iter()) {
            let to = &mut gradient[parts.embedding.start + symbol as usize * embedding..][..embedding];
            to.iter_mut().zip(from).for_each(|(to, x)| *to += x);
        }
    }
}

/// Adds to `sums` the sum of each column.
fn add_columns(numbers: &[f32], columns: usize, sums: &mut [f32]) {
    for row in numbers.chunks_exact(columns) {
        sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
    }
}
