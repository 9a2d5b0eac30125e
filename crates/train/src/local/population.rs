//! Users with data of their own, and a model.

use crate::Error;

/// Users, each with examples of its own, and a model whose loss on them has a gradient: what federated training asks for.
///
/// What is said of a user must be a function of that user's data and of the arguments alone: the sensitivity of a round's sum
/// rests on it.
pub trait Population: Sync {
    /// What a thread needs to make gradients, and can use again.
    type Memory: Send;

    /// A thread's memory.
    fn memory(&self) -> Self::Memory;

    /// d: parameters of the model, in one flat vector.
    fn parameters(&self) -> usize;

    /// N: users, who are numbered from 0.
    fn users(&self) -> usize;

    /// What a ledger calls a user: no two users have one name.
    fn name(&self, user: usize) -> &str;

    /// How many examples a user has; 0 is allowed, and its updates are then 0.
    fn examples(&self, user: usize) -> usize;

    /// Replaces `gradient` by that of the mean loss of these examples of `user` at `parameters`, and gives that loss, in
    /// nats. `examples` holds at least one, each below [`Population::examples`].
    ///
    /// # Errors
    /// When the model cannot be computed. What is not finite is no error: such an update adds nothing.
    fn gradient(
        &self,
        memory: &mut Self::Memory,
        parameters: &[f32],
        user: usize,
        examples: &[usize],
        gradient: &mut [f32],
    ) -> Result<f64, Error>;

    /// A digest of model and data: a run that is resumed must find the same.
    fn identity(&self) -> String;
}
