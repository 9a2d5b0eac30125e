//! Small matrix products in single precision, on one thread, without allocation.
//!
//! Multiplications and additions are not fused and have a fixed order: every instruction set gives the same
//! bits.

use antinoise_train::multiversion;

/// Columns of a panel.
const WIDE: usize = 32;
/// Rows that share the loads of a panel.
const TALL: usize = 4;

/// A matrix whose element (i, k) is `numbers[i * row + k * column]`.
#[derive(Clone, Copy)]
pub(super) struct Strided<'a> {
    pub(super) numbers: &'a [f32],
    pub(super) row: usize,
    pub(super) column: usize,
}

/// The right factor of products, packed: panels of 32 columns one after the other, each panel row by row, so
/// that a product reads it from beginning to end.
#[derive(Default)]
pub(super) struct Panels {
    numbers: Vec<f32>,
    rows: usize,
    columns: usize,
}

impl Panels {
    /// Packs the `rows` x `columns` matrix `from`.
    pub(super) fn pack(&mut self, from: Strided, rows: usize, columns: usize) {
        (self.rows, self.columns) = (rows, columns);
        let length = columns.div_ceil(WIDE) * rows * WIDE;
        if self.numbers.len() < length {
            self.numbers.resize(length, 0.0);
        }
        for (panel, numbers) in self.numbers[..length].chunks_exact_mut((rows * WIDE).max(1)).enumerate() {
            let first = panel * WIDE;
            let width = WIDE.min(columns - first);
            for (k, to) in numbers.chunks_exact_mut(WIDE).enumerate() {
                let start = k * from.row + first * from.column;
                if from.column == 1 {
                    to[..width].copy_from_slice(&from.numbers[start..][..width]);
                } else {
                    for (j, to) in to[..width].iter_mut().enumerate() {
                        *to = from.numbers[start + j * from.column];
                    }
                }
                to[width..].fill(0.0);
            }
        }
    }

    /// to += left * self; `left` and `to` have `rows` rows.
    pub(super) fn add_product(&self, left: Strided, rows: usize, to: &mut [f32]) {
        let length = self.columns.div_ceil(WIDE) * self.rows * WIDE;
        if length == 0 {
            return;
        }
        for (panel, numbers) in self.numbers[..length].chunks_exact(self.rows * WIDE).enumerate() {
            let (numbers, _) = numbers.as_chunks::<WIDE>();
            let whole = rows / TALL * TALL;
            for i in (0..whole).step_by(TALL) {
                self.add_rows::<TALL>(numbers, left, i, panel * WIDE, to);
            }
            for i in whole..rows {
                self.add_rows::<1>(numbers, left, i, panel * WIDE, to);
            }
        }
    }

    fn add_rows<const R: usize>(
        &self,
        panel: &[[f32; WIDE]],
        left: Strided,
        i: usize,
        first: usize,
        to: &mut [f32],
    ) {
        let mut block = [[0.0; WIDE]; R];
        let starts = std::array::from_fn(|r| (i + r) * left.row);
        products::<R>(panel, left.numbers, starts, left.column, &mut block);
        let width = WIDE.min(self.columns - first);
        for (r, block) in block.iter().enumerate() {
            let to = &mut to[(i + r) * self.columns + first..][..width];
            to.iter_mut().zip(block).for_each(|(to, x)| *to += x);
        }
    }
}

multiversion! {
    /// block\[r\]\[j\] = sum over k of left\[starts\[r\] + k column\] panel\[k\]\[j\].
    fn products<const R: usize>(
        panel: &[[f32; WIDE]],
        left: &[f32],
        starts: [usize; R],
        column: usize,
        block: &mut [[f32; WIDE]; R],
    ) {
        let mut sums = [[0f32; WIDE]; R];
        for (k, row) in panel.iter().enumerate() {
            for r in 0..R {
                let x = left[starts[r] + k * column];
                for j in 0..WIDE {
                    sums[r][j] += x * row[j];
                }
            }
        }
        *block = sums;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_definition() {
        let numbers = |count: usize, seed: f32| -> Vec<f32> {
            (0..count).map(|i| (i as f32 * 0.7 + seed).sin()).collect()
        };
        let mut panels = Panels::default();
        for (n, k, m) in [(1, 1, 1), (4, 3, 32), (7, 5, 33), (9, 64, 96), (3, 2, 31), (0, 3, 4), (2, 0, 3)] {
            let (a, b, c) = (numbers(n * k, 1.0), numbers(k * m, 2.0), numbers(n * m, 3.0));
            for (turned_a, turned_b) in [(false, false), (true, false), (false, true)] {
                let left = if turned_a { (1, n) } else { (k, 1) };
                let right = if turned_b { (1, k) } else { (m, 1) };
                let of = |numbers, (row, column)| Strided { numbers, row, column };
                let mut found = c.clone();
                panels.pack(of(&b, right), k, m);
                panels.add_product(of(&a, left), n, &mut found);
                for i in 0..n {
                    for j in 0..m {
                        let term = |l: usize| a[i * left.0 + l * left.1] * b[l * right.0 + j * right.1];
                        let sum = (0..k).map(term).fold(0.0, |sum, term| sum + term);
                        assert_eq!(found[i * m + j], c[i * m + j] + sum, "{n} {k} {m} at {i} {j}");
                    }
                }
            }
        }
    }
}
