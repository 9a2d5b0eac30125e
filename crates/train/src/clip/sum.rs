//! Sums over a batch: the order of additions, and checks of batches.

use antinoise_input::InvalidParameter;

/// The sum of a batch's gradients, clipped or not.
#[derive(Debug, Clone, PartialEq)]
pub struct GradientSum {
    /// One number per parameter. Add noise to it in double precision: rounding to single precision would void
    /// its bound on sensitivity.
    pub gradient: Vec<f64>,
    /// Sum of the examples' losses, in nats.
    pub loss: f64,
    /// Number of examples whose gradient was longer than the clip norm.
    pub clipped: usize,
}

impl GradientSum {
    /// The sum of no examples, over `dim` parameters.
    pub(crate) fn zeros(dim: usize) -> Self {
        Self { gradient: vec![0.0; dim], loss: 0.0, clipped: 0 }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.gradient.iter_mut().zip(&other.gradient).for_each(|(sum, x)| *sum += x);
        self.loss += other.loss;
        self.clipped += other.clipped;
    }
}

/// Adds up the sums of `leaves`, joined in halves: the order of additions depends only on their number, each
/// number takes part in few additions, and few sums are in memory at a time.
pub(crate) fn pairwise_sum<T: Copy + Sync, E: Send>(
    leaves: &[T],
    dim: usize,
    sum_of: &(impl Fn(T) -> Result<GradientSum, E> + Sync),
) -> Result<GradientSum, E> {
    match leaves {
        [] => return Ok(GradientSum::zeros(dim)),
        &[leaf] => return sum_of(leaf),
        _ => {}
    }
    let (left, right) = leaves.split_at(leaves.len().div_ceil(2));
    let (left, right) = rayon::join(|| pairwise_sum(left, dim, sum_of), || pairwise_sum(right, dim, sum_of));
    let (mut sum, right) = (left?, right?);
    sum.add(&right);
    Ok(sum)
}

/// Refuses indices out of range, and duplicates: an example that occurs twice would change the sum by twice
/// the clip norm.
pub(crate) fn check_batch(batch: &[usize], examples: usize) -> Result<(), InvalidParameter> {
    let mut sorted = batch.to_vec();
    sorted.sort_unstable();
    if let Some(index) = sorted.last().filter(|&&index| index >= examples) {
        let must_be = format!("below {examples}, the number of examples");
        return Err(InvalidParameter::new("example of a batch", index, must_be));
    }
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            let got = format!("{} twice", pair[0]);
            Err(InvalidParameter::new("example of a batch", got, "different from every other one"))
        }
        None => Ok(()),
    }
}
