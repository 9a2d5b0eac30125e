//! Matrix products on the calling thread: chunks of a batch already keep every thread busy.

use gemm::{Parallelism, gemm};

/// A matrix in a slice, stored row by row, or the transpose of one.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    values: &'a [f32],
    rows: usize,
    columns: usize,
    /// Strides from one row to the next, and from one column to the next.
    row: usize,
    column: usize,
}

impl<'a> Matrix<'a> {
    /// The matrix whose rows, of `columns` numbers each, follow each other in `values`.
    pub(crate) fn of_rows(values: &'a [f32], columns: usize) -> Self {
        Self { values, rows: values.len() / columns, columns, row: columns, column: 1 }
    }

    pub(crate) fn transpose(self) -> Self {
        Self { rows: self.columns, columns: self.rows, row: self.column, column: self.row, ..self }
    }
}

/// `left` `right`, row by row.
pub(crate) fn product(left: Matrix, right: Matrix) -> Vec<f32> {
    let mut product = vec![0.0; left.rows * right.columns];
    multiply(left, right, &mut product);
    product
}

/// Overwrites `product`, row by row, with `left` `right`.
pub(crate) fn multiply(left: Matrix, right: Matrix, product: &mut [f32]) {
    let (m, k, n) = (left.rows, left.columns, right.columns);
    let fits = |matrix: Matrix| matrix.values.len() >= matrix.rows * matrix.columns;
    assert!(k == right.rows && product.len() == m * n && fits(left) && fits(right));
    if product.is_empty() {
        return;
    }
    // SAFETY: by the assertion above, every number of the m x k, the k x n and the m x n matrix lies in its
    // slice: strides are those of rows without gaps, or of their transpose. `product` does not overlap the
    // others, since it is borrowed mutably.
    unsafe {
        gemm(
            m,
            n,
            k,
            product.as_mut_ptr(),
            1,
            n as isize,
            false,
            left.values.as_ptr(),
            left.column as isize,
            left.row as isize,
            right.values.as_ptr(),
            right.column as isize,
            right.row as isize,
            0.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

#[cfg(all(test, feature = "candle"))]
mod tests {
    use candle_core::{Device, Tensor};

    use super::*;

    fn numbers(count: usize, seed: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 7919 + seed * 31) % 1009) as f32 / 97.0 - 5.0).collect()
    }

    fn bits(values: &[f32]) -> Vec<u32> {
        values.iter().map(|x| x.to_bits()).collect()
    }

    fn tensor(values: &[f32], dims: &[usize]) -> Tensor {
        Tensor::from_slice(values, dims, &Device::Cpu).unwrap()
    }

    fn bits_of(tensor: &Tensor) -> Vec<u32> {
        bits(&tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap())
    }

    /// Every layout that layers use, and sizes at the edges of blocks.
    #[test]
    fn bits_are_those_of_candle() {
        for (seed, &(b, m, k, n)) in [
            (1, 1, 1, 1),
            (3, 1, 7, 5),
            (5, 4, 3, 2),
            (2, 16, 48, 32),
            (7, 33, 65, 17),
            (64, 1, 784, 10),
            (8, 196, 64, 16),
            (1, 300, 1, 9),
            (4, 9, 130, 1),
            (32, 36, 256, 32),
        ]
        .iter()
        .enumerate()
        {
            let (lhs, weight) = (numbers(b * m * k, seed), numbers(n * k, seed + 1));
            let (rows, of_weight) = (Matrix::of_rows(&lhs, k), Matrix::of_rows(&weight, k));
            let (lhs_tensor, weight_tensor) = (tensor(&lhs, &[b, m, k]), tensor(&weight, &[n, k]));
            let expected = lhs_tensor.broadcast_matmul(&weight_tensor.t().unwrap()).unwrap();
            assert_eq!(bits(&product(rows, of_weight.transpose())), bits_of(&expected), "{b} {m} {k} {n}");

            let flat = numbers(k * n, seed + 2);
            let expected = lhs_tensor.broadcast_matmul(&tensor(&flat, &[k, n])).unwrap();
            assert_eq!(bits(&product(rows, Matrix::of_rows(&flat, n))), bits_of(&expected));

            // As for gradients of weights: the transpose of one times the other, for each example.
            let (g, input) = (numbers(b * k * m, seed + 3), numbers(b * k * n, seed + 4));
            let turned = tensor(&g, &[b, k, m]).transpose(1, 2).unwrap();
            let expected = bits_of(&turned.matmul(&tensor(&input, &[b, k, n])).unwrap());
            for (i, expected) in expected.chunks(m * n).enumerate() {
                let g = Matrix::of_rows(&g[i * k * m..][..k * m], m).transpose();
                let found = product(g, Matrix::of_rows(&input[i * k * n..][..k * n], n));
                assert_eq!(bits(&found), expected, "{b} {m} {k} {n}, example {i}");
            }
        }
        assert!(product(Matrix::of_rows(&[], 3), Matrix::of_rows(&numbers(12, 0), 4)).is_empty());
    }

    #[test]
    #[should_panic(expected = "assertion failed")]
    fn matrices_that_do_not_fit_are_refused() {
        product(Matrix::of_rows(&numbers(6, 0), 3), Matrix::of_rows(&numbers(8, 0), 2));
    }
}
