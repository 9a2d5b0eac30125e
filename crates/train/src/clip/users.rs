//! Clipped sums over users: the gradients of all examples of a user are averaged, and the mean is clipped.
//!
//! ```text
//! v_u = (1 / n_u) sum of g_i over the n_u examples i of user u
//! sum over users u of v_u min(1, clip_norm / |v_u|)
//! ```
//!
//! # How far can one user move the sum?
//! By at most clip_norm (1 + [`user_sum_margin`](super::user_sum_margin)), by the proof for examples
//! (`docs/training.md`) with users in their place:
//!
//! *Terms.* The computed v_u is a function of the user's examples and the parameters: X and G of an example
//! do not depend on other examples, and no number of another user enters the additions of v_u, whose order is
//! that of the user's examples. However inexact it is, its term is t_u = f_u v_u for the computed f_u and
//! v_u. Numbers of v_u that are not 0 are between 2^-414 and 2^300, so that lengths are computed in double
//! precision with a relative error below 2^-25, and |t_u| < (1 - 2^-21) clip_norm. A user of one example is
//! clipped as an example is, to the bit.
//!
//! *Sums.* A chunk has at most `chunk` users, since each has an example there, or one user with more
//! examples. So a number of t_u meets at most `chunk` roundings in its chunk, one of them for the product,
//! and one on each level of the tree over chunks, of which there are no more than users.

use std::ops::Range;

use antinoise_input::InvalidParameter;

use super::factor::Clip;
use super::groups::Clipping;
use super::layer::{Factors, LayerGradients};
use super::pass::Pass;
use super::sum::{GradientSum, check_batch, pairwise_sum};
use crate::Error;
use crate::data::Examples;
use crate::model::Model;

/// The sum over `users` of v_u min(1, clip_norm / |v_u|), where v_u is the mean of the gradients of the
/// user's examples. A user is a list of different examples, none of which is another user's.
///
/// No user changes the sum by more than clip_norm (1 + [`user_sum_margin`](super::user_sum_margin)); a user
/// whose mean gradient is not finite adds nothing. The result does not depend on the number of threads. Of
/// users with one example each it is [`clipped_sum`](super::clipped_sum), to the bit.
///
/// ```
/// use antinoise_train::{clip, data, model::Model};
/// let digits = data::digits();
/// let model = Model::logistic(digits.shape, digits.classes)?;
/// let start = vec![0.0; model.parameters()];
/// let of = |users: &[&[usize]]| clip::clipped_user_sum(&model, &start, &digits.train, users, 0.5);
/// let sum = of(&[&[3, 1, 4], &[15]])?;
/// let norm = sum.gradient.iter().map(|x| x * x).sum::<f64>().sqrt();
/// assert!(norm <= 1.0 && sum.clipped == 2);
/// assert_eq!(of(&[&[3], &[15]])?, clip::clipped_sum(&model, &start, &digits.train, &[3, 15], 0.5)?);
/// # Ok::<(), antinoise_train::Error>(())
/// ```
///
/// # Errors
/// As [`clipped_sum`](super::clipped_sum), and if a user has no example.
pub fn clipped_user_sum<'a>(
    model: &Model,
    parameters: &[f32],
    examples: &Examples,
    users: &[&[usize]],
    clipping: impl Into<Clipping<'a>>,
) -> Result<GradientSum, Error> {
    let clipping = clipping.into();
    if let Some(groups) = clipping.groups {
        groups.check(&model.layers())?;
    }
    model.check(parameters, examples)?;
    check_users(users, examples.len())?;
    let clip = Clip::new(clipping)?;
    let pass = Pass { model, parameters, examples, clip: Some(clip) };
    let chunks = packed(users, model.chunk());
    let sum_of = |users| Ok::<_, Error>(pass.user_sum(users, clip));
    Ok(clip.unscale(pairwise_sum(&chunks, parameters.len(), &sum_of)?))
}

/// Refuses users without examples, indices out of range, and examples that occur twice.
pub(crate) fn check_users(users: &[&[usize]], examples: usize) -> Result<(), InvalidParameter> {
    if users.iter().any(|user| user.is_empty()) {
        return Err(InvalidParameter::new(
            "user of a batch",
            "without examples",
            "a user with at least one example",
        ));
    }
    check_batch(&users.concat(), examples)
}

/// Splits users into consecutive runs whose examples fit in one chunk; a user with more examples than a chunk
/// is a run of its own.
fn packed<'u, 'e>(users: &'u [&'e [usize]], chunk: usize) -> Vec<&'u [&'e [usize]]> {
    let (mut packed, mut start, mut filled) = (Vec::new(), 0, 0);
    for (i, user) in users.iter().enumerate() {
        if i > start && filled + user.len() > chunk {
            packed.push(&users[start..i]);
            (start, filled) = (i, 0);
        }
        filled += user.len();
    }
    packed.extend((start < users.len()).then(|| &users[start..]));
    packed
}

impl Pass<'_> {
    /// The sum over the users of one chunk, or of one user with more examples than a chunk, in the units of
    /// [`Clip`].
    fn user_sum(self, users: &[&[usize]], clip: Clip) -> GradientSum {
        let size = self.model.chunk();
        match users {
            [user] if user.len() > size => self.large_user(user, clip),
            _ => self.small_users(users, clip),
        }
    }

    fn small_users(self, users: &[&[usize]], clip: Clip) -> GradientSum {
        let (losses, captured) = self.captured(&users.concat());
        let layers: Vec<LayerGradients> = captured.iter().map(LayerGradients::new).collect();
        let ends = users.iter().scan(0, |end, user| {
            *end += user.len();
            Some(*end)
        });
        let places = users.iter().zip(ends).map(|(user, end)| end - user.len()..end);
        let several: Vec<Range<usize>> = places.filter(|places| places.len() > 1).collect();
        let is_of_several = |i| several.iter().any(|places| places.contains(&i));
        let mut sum = self.factored_sum(&layers, &losses, is_of_several);
        for places in &several {
            let share = 1.0 / places.len() as f64;
            sum.loss += losses[places.clone()].iter().sum::<f64>() * share;
            sum.add_clipped_wide(&self.weighted(&layers, places.clone(), share), clip);
        }
        sum
    }

    /// The clipped mean of a user whose examples fill several chunks.
    fn large_user(self, user: &[usize], clip: Clip) -> GradientSum {
        let (share, mut mean) = (1.0 / user.len() as f64, GradientSum::zeros(self.parameters.len()));
        for chunk in user.chunks(self.model.chunk()) {
            let (losses, captured) = self.captured(chunk);
            let layers: Vec<LayerGradients> = captured.iter().map(LayerGradients::new).collect();
            let gradient = self.weighted(&layers, 0..chunk.len(), share);
            mean.add(&GradientSum { gradient, loss: losses.iter().sum::<f64>() * share, clipped: 0 });
        }
        let mut sum = GradientSum { loss: mean.loss, ..GradientSum::zeros(self.parameters.len()) };
        sum.add_clipped_wide(&mean.gradient, clip);
        sum
    }

    /// `share` times the sum of the unclipped gradients of the examples at `places` of a chunk.
    fn weighted(self, layers: &[LayerGradients], places: Range<usize>, share: f64) -> Vec<f64> {
        let mut factors = vec![0.0; self.model.chunk()];
        factors[places].fill(share);
        let factors = Factors::new(&factors);
        let mut sum = Vec::with_capacity(self.parameters.len());
        layers.iter().for_each(|layer| layer.append_sum(&mut sum, &factors));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_share_chunks_in_their_order_and_fill_none_beyond_its_size() {
        let sizes = [1, 1, 2, 1, 9, 1, 4, 3, 1, 4];
        let examples: Vec<usize> = (0..27).collect();
        let mut rest = &examples[..];
        let users: Vec<&[usize]> = sizes.iter().map(|&size| rest.split_off(..size).unwrap()).collect();
        let found: Vec<Vec<usize>> =
            packed(&users, 4).iter().map(|users| users.iter().map(|user| user.len()).collect()).collect();
        let expected: [&[usize]; 7] = [&[1, 1, 2], &[1], &[9], &[1], &[4], &[3, 1], &[4]];
        assert_eq!(found, expected);
        assert!(packed(&[], 4).is_empty());
    }
}
