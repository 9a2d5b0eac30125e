//! Matrix products on the calling thread.
//!
//! candle's `matmul` asks the system for the number of processors each time, which on Linux may mean reading
//! `/proc/cpuinfo`: a quarter of a step of the CNN. It also divides a product among threads that the chunks
//! already keep busy.

use candle_core::{Device, Layout, Result, Storage, Tensor, bail};
use gemm::{Parallelism, gemm};

/// `lhs rhs`, with `lhs` examples x m x k and `rhs` k x n or examples x k x n; the result is examples x m x
/// n, with the bits of candle's `matmul`.
pub(crate) fn product(lhs: &Tensor, rhs: &Tensor) -> Result<Tensor> {
    let (examples, m, k) = lhs.dims3()?;
    let n = rhs.dim(rhs.rank() - 1)?;
    let fits = match *rhs.dims() {
        [inner, _] => inner == k,
        [of, inner, _] => (of, inner) == (examples, k),
        _ => false,
    };
    if !fits {
        bail!("a product of {:?} and {:?}", lhs.dims(), rhs.dims());
    }
    let mut product = vec![0f32; examples * m * n];
    if !product.is_empty() && k > 0 {
        let (left, left_layout) = lhs.storage_and_layout();
        let (right, right_layout) = rhs.storage_and_layout();
        let (Storage::Cpu(left), Storage::Cpu(right)) = (&*left, &*right) else {
            bail!("private training runs on the CPU");
        };
        let left = Matrices::of(left.as_slice()?, left_layout);
        let right = Matrices::of(right.as_slice()?, right_layout);
        // One product of all rows is faster than one per example.
        let (left, examples, m) = match right.apart == 0 && left.apart == m * left.row {
            true => (Matrices { rows: examples * m, ..left }, 1, examples * m),
            false => (left, examples, m),
        };
        for (example, product) in product.chunks_exact_mut(m * n).enumerate().take(examples) {
            multiply(left.at(example), right.at(example), product);
        }
    }
    Tensor::from_vec(product, (lhs.dim(0)?, lhs.dim(1)?, n), &Device::Cpu)
}

/// Matrices of one shape. `apart` is the offset from one matrix to the next; 0 if all are the same matrix.
#[derive(Clone, Copy)]
struct Matrices<'a> {
    values: &'a [f32],
    apart: usize,
    rows: usize,
    columns: usize,
    /// Strides from one row, and from one column, to the next.
    row: usize,
    column: usize,
}

impl<'a> Matrices<'a> {
    fn of(storage: &'a [f32], layout: &Layout) -> Self {
        let (dims, strides) = (layout.dims(), layout.stride());
        let [.., rows, columns] = *dims else { unreachable!("tensors of two dimensions or more") };
        let [.., row, column] = *strides else { unreachable!("a stride for each dimension") };
        let apart = if dims.len() == 3 { strides[0] } else { 0 };
        Self { values: &storage[layout.start_offset()..], apart, rows, columns, row, column }
    }

    fn at(&self, index: usize) -> Self {
        Self { values: &self.values[index * self.apart..], ..*self }
    }

    /// The index after the last number.
    fn end(&self) -> usize {
        (self.rows - 1) * self.row + (self.columns - 1) * self.column + 1
    }
}

/// product = left right, row by row; none of them is empty.
fn multiply(left: Matrices, right: Matrices, product: &mut [f32]) {
    let (m, k, n) = (left.rows, left.columns, right.columns);
    assert!(
        k == right.rows
            && product.len() == m * n
            && left.end() <= left.values.len()
            && right.end() <= right.values.len()
    );
    // SAFETY: by the assertion above, every number of the m x k, the k x n and the m x n matrix lies in its
    // slice at the given strides; `product` does not overlap the others, since it is borrowed mutably.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(dims: &[usize], seed: usize) -> Tensor {
        let values =
            (0..dims.iter().product()).map(|i: usize| ((i * 7919 + seed * 31) % 1009) as f32 / 97.0 - 5.0);
        Tensor::from_vec(values.collect(), dims, &Device::Cpu).unwrap()
    }

    fn bits(tensor: &Tensor) -> Vec<u32> {
        tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
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
            let (lhs, weight) = (tensor(&[b, m, k], seed), tensor(&[n, k], seed + 1));
            let expected = lhs.broadcast_matmul(&weight.t().unwrap()).unwrap();
            let found = product(&lhs, &weight.t().unwrap()).unwrap();
            assert_eq!((found.dims(), bits(&found)), (expected.dims(), bits(&expected)), "{b} {m} {k} {n}");

            let flat = tensor(&[k, n], seed + 2);
            assert_eq!(bits(&product(&lhs, &flat).unwrap()), bits(&lhs.broadcast_matmul(&flat).unwrap()));

            // As for gradients of weights: the transpose of one times the other, for each example, within
            // larger tensors too.
            let (g, input) = (tensor(&[b + 2, k, m], seed + 3), tensor(&[b + 2, k, n], seed + 4));
            let (g, input) = (g.narrow(0, 1, b).unwrap(), input.narrow(0, 2, b).unwrap());
            let turned = g.transpose(1, 2).unwrap();
            assert_eq!(bits(&product(&turned, &input).unwrap()), bits(&turned.matmul(&input).unwrap()));
        }
        assert_eq!(product(&tensor(&[0, 2, 3], 0), &tensor(&[3, 4], 0)).unwrap().dims(), [0, 2, 4]);
        assert_eq!(bits(&product(&tensor(&[2, 1, 0], 0), &tensor(&[0, 1], 0)).unwrap()), [0, 0]);
        assert!(product(&tensor(&[2, 2, 3], 0), &tensor(&[4, 3], 0)).is_err());
    }
}
