//! Federated training: users are the units, and a round is a step.
//!
//! ```text
//! cohort: users whom the ledger allows and who are there, at most B of them, at random
//! u_i   = update of user i from theta                     [`LocalSteps`](crate::local::LocalSteps), by the user alone
//! s     = sum of u_i min(1, clip_norm / |u_i|)            in double precision
//! theta = optimizer(theta, (s + noise) / B)               B is the plan's: the number who came would tell who did
//! ```
//!
//! [`Federation`] runs such rounds for a plan of users. A round is charged in the ledger before an update is
//! computed, and recorded as released before anyone sees its result; checkpoints follow. After a kill at any
//! moment, the run resumes with the cohorts that were charged, so that no round's noise ever hides two
//! different sums (`docs/training.md`).

mod cohort;
mod reference;
mod rounds;
mod saved;
mod setup;

pub use reference::Reference;
pub use rounds::{Federation, Round};
pub use setup::Setup;
