//! Populations: users with their data, and a model.

use crate::Error;

/// A population for federated training: users, each with examples, and a model with a loss and its gradient.
///
/// Every result about a user must be a function of that user's data and of the arguments only: the
/// sensitivity of a round's sum rests on it.
pub trait Population: Sync {
    /// Reusable memory of a thread for computing gradients.
    type Workspace: Send;

    /// Workspace for one thread.
    fn workspace(&self) -> Self::Workspace;

    /// Number of parameters of the model, in one flat vector.
    fn parameters(&self) -> usize;

    /// Number of users, who are numbered from 0.
    fn users(&self) -> usize;

    /// The unique name of a user in the ledger.
    fn name(&self, user: usize) -> &str;

    /// Number of a user's examples. It may be 0; the user's updates are then 0.
    fn examples(&self, user: usize) -> usize;

    /// Writes to `gradient` the gradient at `parameters` of the mean loss over these examples of `user`;
    /// returns the loss, in nats. `examples` holds at least one index, each below [`Population::examples`].
    ///
    /// # Errors
    /// If the model cannot be computed. Results that are not finite are no error: such an update adds
    /// nothing.
    fn gradient(
        &self,
        memory: &mut Self::Workspace,
        parameters: &[f32],
        user: usize,
        examples: &[usize],
        gradient: &mut [f32],
    ) -> Result<f64, Error>;

    /// A digest of model and data, which must be the same when a run is resumed.
    fn identity(&self) -> String;
}
