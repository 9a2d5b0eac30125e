//! The two loops over every number of a chunk's gradients: lengths and weighted sums, in double precision.
//!
//! Both are compiled once for each instruction set and chosen at run time. Multiplications and additions are
//! not fused and have a fixed order, so that every set gives the same bits.

use rayon::prelude::*;

use crate::multiversion;

/// Numbers summed in parallel.
const LANES: usize = 32;
/// Columns of a block of sums if each row has one factor: two cache lines of a row, in registers.
const WIDE: usize = 32;
/// Columns and outputs of a block of sums if each row has a factor per output.
const NARROW: usize = 16;
const OUTPUTS: usize = 4;

/// |x|^2 of each of `count` equal parts of `values`.
pub(super) fn norms_squared(values: &[f32], count: usize) -> Vec<f64> {
    let mut norms = vec![0.0; count];
    fill_norms_squared(values, &mut norms);
    norms
}

/// Computes |x|^2 in double precision of vectors that lie one after the other in `vectors`, one for each of
/// `squares`. With more than one of `threads`, threads of the current pool share the vectors.
///
/// Squares are rounded once: the relative error is below (d / 32 + 65) 2^-53 for vectors of d numbers.
///
/// ```
/// let mut squares = [0.0; 2];
/// antinoise_train::clip::squared_lengths(&[3.0, 4.0, 0.5, 0.0], &mut squares, 1);
/// assert_eq!(squares, [25.0, 0.25]);
/// ```
///
/// # Panics
/// If the vectors are not of one length.
pub fn squared_lengths(vectors: &[f32], squares: &mut [f64], threads: usize) {
    let width = width_of(vectors.len(), squares.len());
    if width == 0 {
        return squares.fill(0.0);
    }
    if threads == 1 {
        return fill_norms_squared(vectors, squares);
    }
    let parts = squares.par_iter_mut().zip(vectors.par_chunks_exact(width));
    parts.for_each(|(square, vector)| fill_norms_squared(vector, std::slice::from_mut(square)));
}

/// Columns that a thread adds up at a time.
const COLUMNS: usize = 1 << 14;

/// Adds factors\[i\] times vector i, of vectors that lie one after the other in `vectors`, to `sums`, in
/// double precision and in this order. A vector with factor 0 is not read. With more than one of `threads`,
/// threads of the current pool share the coordinates; the bits are the same.
///
/// ```
/// let (vectors, mut sums) = ([3.0, 4.0, f32::NAN, 0.0, 0.5, 0.0], [1.0, 0.0]);
/// antinoise_train::clip::add_weighted(&vectors, &[0.2, 0.0, 1.0], &mut sums, 1);
/// assert_eq!(sums, [1.0 + (0.2 * 3.0 + 0.5), 0.8]);
/// ```
///
/// # Panics
/// If `vectors` are not as many as `factors`, each as long as `sums`.
pub fn add_weighted(vectors: &[f32], factors: &[f64], sums: &mut [f64], threads: usize) {
    let stride = width_of(vectors.len(), factors.len());
    assert!(stride == sums.len() || factors.is_empty(), "vectors are as long as the sums");
    let kept: Vec<usize> = (0..factors.len()).filter(|&i| factors[i] != 0.0).collect();
    let add = |(part, sums): (usize, &mut [f64])| {
        let rows = vectors.get(part * COLUMNS..).unwrap_or_default();
        Weighted { rows, stride, factors, outputs: 1, kept: &kept }.add_to(sums);
    };
    if threads == 1 {
        sums.chunks_mut(COLUMNS).enumerate().for_each(add);
    } else {
        sums.par_chunks_mut(COLUMNS).enumerate().for_each(add);
    }
}

fn width_of(numbers: usize, count: usize) -> usize {
    let width = numbers.checked_div(count).unwrap_or(0);
    assert_eq!(width * count, numbers, "vectors are of one length");
    width
}

/// |x|^2 of a vector in double precision.
pub(super) fn norm_squared_of(x: &[f64]) -> f64 {
    let mut square = 0.0;
    fill_norm_squared_of(x, &mut square);
    square
}

multiversion! {
    fn fill_norm_squared_of(x: &[f64], square: &mut f64) {
        *square = norm_squared(x);
    }
}

multiversion! {
    fn fill_norms_squared(values: &[f32], norms: &mut [f64]) {
        let each = values.len() / norms.len();
        for (norm, part) in norms.iter_mut().zip(values.chunks_exact(each)) {
            *norm = norm_squared(part);
        }
    }
}

/// Squares are exact in single precision, rounded once in double precision, and not negative: the relative
/// error of the sum is below (d / 32 + 65) 2^-53.
#[inline(always)]
fn norm_squared<T: Copy + Into<f64>>(x: &[T]) -> f64 {
    let mut sums = [0f64; LANES];
    let (lines, rest) = x.as_chunks::<LANES>();
    for line in lines {
        for (sum, &x) in sums.iter_mut().zip(line) {
            let x: f64 = x.into();
            *sum += x * x;
        }
    }
    for (sum, &x) in sums.iter_mut().zip(rest) {
        let x: f64 = x.into();
        *sum += x * x;
    }
    sums.iter().sum()
}

/// One layer's rows, examples x width, and their factors, examples x outputs.
#[derive(Clone, Copy)]
pub(super) struct Weighted<'a> {
    pub(super) rows: &'a [f32],
    /// The distance between the beginnings of two rows: the width, or more for a part of the columns.
    pub(super) stride: usize,
    pub(super) factors: &'a [f64],
    pub(super) outputs: usize,
    /// The examples with a non-zero factor, in order; rows of other examples are not read.
    pub(super) kept: &'a [usize],
}

impl Weighted<'_> {
    /// sums\[o\]\[k\] += the sum over kept i of factors\[i\]\[o\] rows\[i\]\[k\], one example after the
    /// other.
    pub(super) fn add_to(self, sums: &mut [f64]) {
        add_to(self, sums);
    }

    /// Adds to the sums of `O` outputs from `output` on, `W` columns at a time.
    #[inline(always)]
    fn add_outputs<const O: usize, const W: usize>(&self, output: usize, sums: &mut [f64], width: usize) {
        let blocks = width / W * W;
        for column in (0..blocks).step_by(W) {
            self.add_block::<O, W>(output, column, sums, width);
        }
        for column in blocks..width {
            self.add_block::<O, 1>(output, column, sums, width);
        }
    }

    #[inline(always)]
    fn add_block<const O: usize, const W: usize>(
        &self,
        output: usize,
        column: usize,
        sums: &mut [f64],
        width: usize,
    ) {
        let mut block = [[0f64; W]; O];
        for &i in self.kept {
            let row: &[f32; W] = self.rows[i * self.stride + column..].first_chunk().expect("a whole row");
            let factors: &[f64; O] =
                self.factors[i * self.outputs + output..].first_chunk().expect("a factor an output");
            // Not `map`: a closure would be a separate function, compiled for the baseline processor.
            let mut x = [0f64; W];
            for k in 0..W {
                x[k] = f64::from(row[k]);
            }
            for o in 0..O {
                for k in 0..W {
                    block[o][k] += factors[o] * x[k];
                }
            }
        }
        for (o, block) in block.iter().enumerate() {
            let sums = &mut sums[o * width + column..][..W];
            sums.iter_mut().zip(block).for_each(|(sum, block)| *sum += block);
        }
    }
}

multiversion! {
    fn add_to(weighted: Weighted<'_>, sums: &mut [f64]) {
        let width = sums.len() / weighted.outputs;
        let mut output = 0;
        let mut groups = sums.chunks_exact_mut(OUTPUTS * width);
        for group in &mut groups {
            weighted.add_outputs::<OUTPUTS, NARROW>(output, group, width);
            output += OUTPUTS;
        }
        for sum in groups.into_remainder().chunks_exact_mut(width) {
            weighted.add_outputs::<1, WIDE>(output, sum, width);
            output += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_have_the_bits_of_one_pass_whatever_the_threads() {
        let mut cases = 0;
        for (count, width) in [(0, 3), (2, 0), (1, 1), (5, 70), (3, COLUMNS), (4, 2 * COLUMNS + 77)] {
            let mut vectors: Vec<f32> = (0..count * width).map(|i| (i as f32 * 0.37).sin()).collect();
            let factors: Vec<f64> = (0..count).map(|i| if i == 1 { 0.0 } else { 0.3 + i as f64 }).collect();
            if count > 1 && width > 0 {
                vectors[width] = f32::NAN;
            }
            let mut expected: Vec<f64> = (0..width).map(|k| k as f64).collect();
            for (k, sum) in expected.iter_mut().enumerate() {
                let terms = factors.iter().enumerate().filter(|(_, factor)| **factor > 0.0);
                *sum += terms.fold(0.0, |sum, (i, factor)| sum + factor * f64::from(vectors[i * width + k]));
            }
            for threads in [1, 3] {
                let mut sums: Vec<f64> = (0..width).map(|k| k as f64).collect();
                add_weighted(&vectors, &factors, &mut sums, threads);
                assert_eq!(sums, expected, "{count} vectors of {width}, {threads} threads");
                let mut squares = vec![7.0; count];
                squared_lengths(&vectors, &mut squares, threads);
                for (i, square) in squares.into_iter().enumerate() {
                    let plain: f64 =
                        vectors[i * width..][..width].iter().map(|&x| f64::from(x).powi(2)).sum();
                    assert!((square - plain).abs() <= 1e-13 * plain || (square.is_nan() && plain.is_nan()));
                }
                cases += 1;
            }
        }
        assert_eq!(cases, 12);
    }

    #[test]
    fn blocks_and_what_is_left_of_them_are_plain_sums() {
        for (examples, outputs, width) in [(5, 1, 71), (4, 6, 35), (3, 9, 16), (2, 4, 1), (1, 1, 64)] {
            let rows: Vec<f32> = (0..examples * width).map(|i| (i as f32 * 0.37).sin()).collect();
            let factors: Vec<f64> = (0..examples * outputs).map(|i| (i as f64 * 0.73).cos()).collect();
            let kept: Vec<usize> = (0..examples).filter(|i| i % 3 != 1).collect();
            let mut sums = vec![0.0; outputs * width];
            Weighted { rows: &rows, stride: width, factors: &factors, outputs, kept: &kept }
                .add_to(&mut sums);
            for (at, sum) in sums.iter().enumerate() {
                let (o, k) = (at / width, at % width);
                let term = |&i: &usize| factors[i * outputs + o] * f64::from(rows[i * width + k]);
                assert_eq!(*sum, kept.iter().map(term).fold(0.0, |sum, term| sum + term));
            }
            let norms = norms_squared(&rows, examples);
            for (norm, row) in norms.iter().zip(rows.chunks(width)) {
                let plain: f64 = row.iter().map(|&x| f64::from(x).powi(2)).sum();
                assert!((norm - plain).abs() <= 1e-14 * plain);
            }
        }
    }
}
