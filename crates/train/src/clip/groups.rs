//! Groups of layers that are clipped separately, to norms whose squares add up to the square of the clip
//! norm.

use antinoise_input::{InvalidParameter, at_least, between};

/// Groups of a model's layers. Each group's part of a gradient is clipped to its own share of the clip norm
/// c.
///
/// ```text
/// x_g = g_g min(1, s_g c / |g_g|),   sum over groups g of s_g^2 <= 1,   hence |x|^2 = sum of |x_g|^2 <= c^2
/// ```
///
/// The sum of squared shares is at most 1 in exact arithmetic. An example whose gradient is not finite in one
/// group adds to none.
///
/// ```
/// use antinoise_train::{clip::{Clipping, Groups, clipped_sum}, data, model::Model};
/// let digits = data::digits();
/// let model = Model::mlp(digits.shape, digits.classes, 16)?;
/// let groups = Groups::by_layer(&model.layers())?;
/// assert_eq!(groups.norms(2.0).len(), 2);
/// let clipping = Clipping { norm: 0.5, groups: Some(&groups) };
/// let start = vec![0.01; model.parameters()];
/// let sum = clipped_sum(&model, &start, &digits.train, &[3], clipping)?;
/// let (first, second) = sum.gradient.split_at(model.layers()[0]);
/// for part in [first, second] {
///     assert!(part.iter().map(|x| x * x).sum::<f64>() <= 0.5 * 0.5 / 2.0);
/// }
/// # Ok::<(), antinoise_train::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Groups {
    layers: Vec<Layer>,
    shares: Vec<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layer {
    parameters: usize,
    group: usize,
}

/// Smallest share of a group: smaller ones would bring clip norms near the smallest numbers of double
/// precision.
const LEAST_SHARE: f64 = 1.0 / (1u64 << 30) as f64;
/// Excess over 1, for each group, that is accepted in the sum of squares of rounded shares such as 0.6 and
/// 0.8; the shares are then made smaller.
const DECIMALS: f64 = 1.0 / (1u64 << 50) as f64;

impl Groups {
    /// Each layer is a group, of share 1 / sqrt(number of layers); `layers` are their numbers of parameters,
    /// as [`PrivateModel::layers`](crate::private_model::PrivateModel::layers) has them.
    ///
    /// # Errors
    /// When there is no layer, or one without parameters.
    pub fn by_layer(layers: &[usize]) -> Result<Self, InvalidParameter> {
        let count = at_least("number of layers", layers.len(), 1)?;
        let of: Vec<usize> = (0..count).collect();
        Self::new(layers, &of, &vec![(1.0 / count as f64).sqrt(); count])
    }

    /// Groups in which layer l, of `layers[l]` parameters, belongs to group `of[l]`, which is clipped to
    /// `shares[of[l]]` times the clip norm.
    ///
    /// Shares whose squares add up to more than 1 by rounding alone, at most 2^-50 for each group, are made
    /// smaller.
    ///
    /// # Errors
    /// When a layer has no parameters or a group no layer, or a share is out of range or their squares add up
    /// to more than 1.
    pub fn new(layers: &[usize], of: &[usize], shares: &[f64]) -> Result<Self, InvalidParameter> {
        at_least("number of groups", shares.len(), 1)?;
        between("number of layers in groups", of.len(), layers.len(), layers.len(), "one group a layer")?;
        for &parameters in layers {
            at_least("number of parameters of a layer", parameters, 1)?;
        }
        for &group in of {
            between("group of a layer", group, 0, shares.len() - 1, "below the number of groups")?;
        }
        if let Some(group) = (0..shares.len()).find(|group| !of.contains(group)) {
            return Err(InvalidParameter::new("group", group, "a group that has a layer"));
        }
        if let Some(share) = shares.iter().find(|share| !(LEAST_SHARE..=1.0).contains(*share)) {
            return Err(InvalidParameter::new("share of a group", share, "from 2^-30 to 1"));
        }
        let total = squares_up(shares);
        if total > 1.0 + DECIMALS * shares.len() as f64 {
            let must_be = "at most 1, so that an example adds at most the clip norm";
            return Err(InvalidParameter::new("sum of squared shares", total, must_be));
        }
        let layers = layers.iter().zip(of).map(|(&parameters, &group)| Layer { parameters, group });
        Ok(Self { layers: layers.collect(), shares: within(shares.to_vec()) })
    }

    /// The clip norm of each group if all groups together are clipped to `clip_norm`: rounded down, so that
    /// their squares add up to at most its square.
    ///
    /// ```
    /// let groups = antinoise_train::clip::Groups::new(&[7, 2, 5], &[0, 1, 0], &[0.6, 0.8])?;
    /// assert!(groups.norms(10.0).iter().zip([6.0, 8.0]).all(|(norm, given)| (norm / given - 1.0).abs() < 1e-15));
    /// # Ok::<(), antinoise_input::InvalidParameter>(())
    /// ```
    pub fn norms(&self, clip_norm: f64) -> Vec<f64> {
        self.shares.iter().map(|&share| product_down(share, clip_norm)).collect()
    }

    /// Refuses layers other than those for which the groups were made.
    pub(crate) fn check(&self, layers: &[usize]) -> Result<(), InvalidParameter> {
        if self.layers.iter().map(|layer| layer.parameters).eq(layers.iter().copied()) {
            return Ok(());
        }
        let sizes: Vec<usize> = self.layers.iter().map(|layer| layer.parameters).collect();
        let must_be = format!("{layers:?}, the model's");
        Err(InvalidParameter::new("parameters of the layers in groups", format!("{sizes:?}"), must_be))
    }

    /// Identity of the groups in checkpoints, exact to the bit.
    pub(crate) fn identity(&self) -> String {
        let shares: Vec<u64> = self.shares.iter().map(|share| share.to_bits()).collect();
        format!("{:?} of shares {shares:x?}", self.layers)
    }

    /// Number of groups.
    pub(super) fn count(&self) -> usize {
        self.shares.len()
    }

    /// The share of a group.
    pub(super) fn share(&self, group: usize) -> f64 {
        self.shares[group]
    }

    /// The group of a layer.
    pub(super) fn of_layer(&self, layer: usize) -> usize {
        self.layers[layer].group
    }

    /// The group and the range of parameters of each layer.
    pub(super) fn parts(&self) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> {
        self.layers.iter().scan(0, |start, layer| {
            let part = *start..*start + layer.parameters;
            *start = part.end;
            Some((layer.group, part))
        })
    }
}

/// Clip norms of a gradient: for the whole, or group by group.
///
/// ```
/// use antinoise_train::clip::Clipping;
/// assert_eq!(Clipping::from(0.5), Clipping { norm: 0.5, groups: None });
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clipping<'a> {
    /// The clip norm, which bounds the length of an example's clipped gradient.
    pub norm: f64,
    /// The groups that are clipped separately; `None` if a gradient is clipped as a whole.
    pub groups: Option<&'a Groups>,
}

impl From<f64> for Clipping<'_> {
    fn from(norm: f64) -> Self {
        Self { norm, groups: None }
    }
}

impl Clipping<'_> {
    /// The maximum length of a clipped gradient whose only entry other than 0 is that of `parameter`.
    pub fn norm_along(self, parameter: usize) -> f64 {
        let Some(groups) = self.groups else { return self.norm };
        let part = groups.parts().find(|(_, part)| part.contains(&parameter));
        part.map_or(0.0, |(group, _)| product_down(groups.share(group), self.norm))
    }
}

/// The shares, made smaller until their squares add up to at most 1.
fn within(mut shares: Vec<f64>) -> Vec<f64> {
    loop {
        let total = squares_up(&shares);
        if total <= 1.0 {
            return shares;
        }
        shares.iter_mut().for_each(|share| *share = share.next_down() * (2.0 - total));
    }
}

/// The sum of squares, with every rounding upwards.
fn squares_up(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |sum, &x| {
        let square = x * x;
        sum_up(sum, if x.mul_add(x, -square) > 0.0 { square.next_up() } else { square })
    })
}

/// a + b, rounded up; neither is negative.
fn sum_up(a: f64, b: f64) -> f64 {
    let sum = a + b;
    // The rounding error of `sum`, exactly (Knuth's two-sum).
    let of_b = sum - a;
    let lost = (a - (sum - of_b)) + (b - of_b);
    if lost > 0.0 { sum.next_up() } else { sum }
}

/// share * norm, rounded down.
fn product_down(share: f64, norm: f64) -> f64 {
    let product = share * norm;
    // Close to the smallest numbers, the difference itself may be rounded to 0.
    let is_above = share.mul_add(norm, -product) < 0.0 || product < f64::MIN_POSITIVE / f64::EPSILON;
    if is_above { product.next_down() } else { product }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A non-negative number as an integer times 2^-1074, squared and summed without rounding.
    fn exact_squares(values: &[f64]) -> Vec<u64> {
        let mut sum = vec![0u64; 70];
        for &x in values {
            let (mantissa, exponent) =
                ((x.to_bits() & ((1 << 52) - 1)) | 1 << 52, (x.to_bits() >> 52) as usize);
            let (square, shift) = (u128::from(mantissa).pow(2), 2 * (exponent - 1));
            add(&mut sum, square, shift);
        }
        sum
    }

    fn add(sum: &mut [u64], value: u128, shift: usize) {
        let mut carry = 0u128;
        let (word, bit) = (shift / 64, shift % 64);
        let parts = [
            (value << bit) as u64,
            (value << bit >> 64) as u64,
            if bit == 0 { 0 } else { (value >> (128 - bit)) as u64 },
        ];
        for (i, place) in sum.iter_mut().enumerate().skip(word) {
            let part = parts.get(i - word).copied().unwrap_or(0);
            let total = u128::from(*place) + u128::from(part) + carry;
            (*place, carry) = (total as u64, total >> 64);
        }
        assert_eq!(carry, 0);
    }

    fn is_at_most(a: &[u64], b: &[u64]) -> bool {
        a.iter().rev().le(b.iter().rev())
    }

    /// Held in integers: squares of norms add up to at most the square of the clip norm, and to hardly less.
    #[test]
    fn norms_of_groups_add_up_to_the_clip_norm_and_never_to_more() {
        let mut state = 3u64;
        let mut unit = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let mut cases = 0;
        for count in (1..=40).chain([64, 100, 1000]) {
            for draw in 0..40 {
                let layers = vec![3; count];
                let groups = if draw == 0 {
                    Groups::by_layer(&layers).unwrap()
                } else {
                    let given: Vec<f64> = (0..count).map(|_| 0.01 + unit()).collect();
                    let length = given.iter().map(|x| x * x).sum::<f64>().sqrt();
                    let shares: Vec<f64> = given.iter().map(|x| (x / length).min(1.0)).collect();
                    // Squares of rounded shares may be beyond 1 by more than is taken off.
                    let shares = if squares_up(&shares) > 1.0 + DECIMALS * count as f64 {
                        within(shares)
                    } else {
                        shares
                    };
                    Groups::new(&layers, &(0..count).collect::<Vec<_>>(), &shares).unwrap()
                };
                for clip_norm in [1.0, 0.1, 3.0 * unit() + 1e-3, 1e-290, 1e150] {
                    let norms = groups.norms(clip_norm);
                    assert!(
                        is_at_most(&exact_squares(&norms), &exact_squares(&[clip_norm])),
                        "{count} {clip_norm}"
                    );
                    let root = norms.iter().map(|x| (x / clip_norm).powi(2)).sum::<f64>().sqrt();
                    assert!(root > 1.0 - 1e-12, "{count} {clip_norm}: {root}");
                    cases += 1;
                }
            }
        }
        assert_eq!(cases, 43 * 40 * 5);
        // Where nothing is rounded, nothing is taken off.
        assert_eq!(Groups::by_layer(&[4]).unwrap().norms(0.3), [0.3]);
        assert_eq!(Groups::by_layer(&[4; 4]).unwrap().norms(1.0), [0.5; 4]);
    }

    #[test]
    fn groups_that_are_none_are_refused_by_name() {
        let refused = |layers: &[usize], of: &[usize], shares: &[f64], name: &str| {
            let error = Groups::new(layers, of, shares).unwrap_err().to_string();
            assert!(error.starts_with(name), "{error}");
        };
        refused(&[], &[], &[], "number of groups is 0");
        refused(&[1, 0], &[0, 0], &[1.0], "number of parameters of a layer is 0");
        refused(&[1, 2], &[0], &[1.0], "number of layers in groups is 1");
        refused(&[1, 2], &[0, 2], &[0.5, 0.5], "group of a layer is 2");
        refused(&[1, 2], &[0, 0], &[0.5, 0.5], "group is 1");
        for share in [0.0, -0.5, 1.5, f64::NAN, 1e-10] {
            refused(&[1, 2], &[0, 1], &[0.5, share], "share of a group is");
        }
        refused(&[1, 2], &[0, 1], &[0.8, 0.8], "sum of squared shares is 1.28");
        assert!(Groups::by_layer(&[]).unwrap_err().to_string().starts_with("number of layers is 0"));
        let groups = Groups::by_layer(&[5, 3]).unwrap();
        let error = groups.check(&[3, 5]).unwrap_err().to_string();
        assert!(error.starts_with("parameters of the layers in groups is [5, 3]"), "{error}");
    }
}
