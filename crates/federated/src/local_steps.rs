//! The local training of a user in a round.

use antinoise_input::{InvalidParameter, at_least, positive};
use antinoise_plan::Batches;
use antinoise_train::optimizer::is_beyond;
use rand_core::Rng;

use crate::Error;
use crate::population::Population;

/// The local training of a user on its own examples, from the server's parameters theta:
///
/// ```text
/// u <- 0;  for each batch of the user's examples:  u <- u + learning_rate gradient(theta - u)
/// ```
///
/// An update with an entry larger than `zero_beyond`, or with one that is not a number, becomes 0; the server
/// clips and sums the updates u (pseudo-gradients). Both depend on the user's own update alone, so that a
/// user still adds at most the clip norm. Examples are shuffled in each epoch and cut
/// into batches whose sizes differ by at most one.
///
/// One step on all examples with rate 1 returns the user's mean gradient: [`LocalSteps::FEDSGD`] turns
/// DP-FedAvg into ordinary user-level DP-SGD, where a user's gradient is averaged over its examples and
/// clipped once.
///
/// # Source
/// H. B. McMahan, D. Ramage, K. Talwar, L. Zhang, Learning Differentially Private Recurrent Language Models,
/// arXiv:1710.06963; C. Choquette-Choo et al., Multi-epoch matrix factorization mechanisms, 2023, section 5.3
/// and Appendix F.3, for large updates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LocalSteps {
    /// The learning rate, above 0.
    pub learning_rate: f64,
    /// Maximum number of examples in a batch.
    pub batch_size: usize,
    /// Passes over a user's examples.
    pub epochs: usize,
    /// Maximum number of steps, for any number of examples.
    pub most_steps: usize,
    /// The bound on the entries of an update, above 0; `None`: no bound.
    pub zero_beyond: Option<f64>,
}

impl LocalSteps {
    /// The user's mean gradient.
    pub const FEDSGD: Self =
        Self { learning_rate: 1.0, batch_size: usize::MAX, epochs: 1, most_steps: 1, zero_beyond: None };

    /// Returns these settings if their numbers are in range.
    ///
    /// # Errors
    /// Names the number that is out of range.
    pub fn check(self) -> Result<Self, InvalidParameter> {
        positive("local_rate", self.learning_rate)?;
        if !(self.learning_rate as f32).is_normal() {
            let must_be = "a number of single precision, which updates have";
            return Err(InvalidParameter::new("local_rate", self.learning_rate, must_be));
        }
        at_least("local_batch_size", self.batch_size, 1)?;
        at_least("local_epochs", self.epochs, 1)?;
        at_least("local_steps", self.most_steps, 1)?;
        if let Some(bound) = self.zero_beyond {
            positive("local_zero_beyond", bound)?;
        }
        Ok(self)
    }

    /// Computes the update of `user` from `start`. For a user without examples, update and loss are 0.
    pub(crate) fn update<P: Population>(
        self,
        population: &P,
        room: &mut Workspace<P>,
        start: &[f32],
        user: usize,
        rng: &mut impl Rng,
    ) -> Result<Trained, Error> {
        let Workspace { memory, moved, gradient, update } = room;
        update.fill(0.0);
        let examples = population.examples(user);
        if examples == 0 {
            return Ok(Trained { loss: 0.0, is_zeroed: false });
        }
        let (rate, groups) = (self.learning_rate as f32, examples.div_ceil(self.batch_size));
        let mut first_loss = None;
        let mut left = self.most_steps;
        for _ in 0..self.epochs {
            let batches = Batches::cyclic(examples, groups, rng)?;
            for group in 0..groups.min(left) {
                moved.iter_mut().zip(start).zip(&*update).for_each(|((to, theta), u)| *to = theta - u);
                let batch = batches.at(group, rng);
                let loss = population.gradient(memory, moved, user, &batch, gradient)?;
                first_loss.get_or_insert(loss);
                update.iter_mut().zip(&*gradient).for_each(|(u, g)| *u += rate * g);
            }
            left = left.saturating_sub(groups);
        }
        let is_zeroed = self.zero_beyond.is_some_and(|bound| is_beyond(update, bound));
        if is_zeroed {
            update.fill(0.0);
        }
        Ok(Trained { loss: first_loss.unwrap_or(0.0), is_zeroed })
    }
}

/// The measurements of a user's local training.
pub(crate) struct Trained {
    /// The loss of the first batch before any step.
    pub(crate) loss: f64,
    /// Whether the update was beyond the bound and became 0.
    pub(crate) is_zeroed: bool,
}

/// The memory of a thread for computing updates.
pub(crate) struct Workspace<P: Population> {
    memory: P::Workspace,
    moved: Vec<f32>,
    gradient: Vec<f32>,
    /// The update u.
    pub(crate) update: Vec<f32>,
}

impl<P: Population> Workspace<P> {
    pub(crate) fn new(population: &P) -> Self {
        let zeros = || vec![0.0; population.parameters()];
        Self { memory: population.workspace(), moved: zeros(), gradient: zeros(), update: zeros() }
    }
}
