//! Audits of private mechanisms as black boxes.
//!
//! A [`Claim`] describes the noisy sums R (steps x dim) of a mechanism: R = G + C^-1 Z, where G are the sums
//! of clipped gradients and the entries of Z are independent N(0, nu^2). It claims mu-GDP for every unit
//! whose participation a schema allows. [`audit`] searches for the sequences of gradients that come closest
//! to violating the claim, runs these and their neighbours through the mechanism under audit, which
//! implements [`Mechanism`], and tests
//!
//! - that no sequence found changes C G by more than mu nu;
//! - that no example changes a sum by more than the clip norm (with rounding), whatever the other examples
//!   are;
//! - that the number of processes and interruptions change no bit;
//! - that C (R - G) / nu are independent standard normals, across steps, coordinates and runs;
//! - that the most powerful test does not distinguish neighbours better than mu-GDP allows;
//! - for a plan's training (`Training`, feature `train`): its batches, that a noisy sum minus its noise is
//!   the clipped sum, that the optimizer sees nothing else, and that it resumes without changes.
//!
//! A correct mechanism is rejected with probability at most alpha, over all tests. Acceptance is not a proof:
//! see `docs/audit.md`.
//!
//! ```
//! use antinoise_audit::{Claim, BuiltinMechanism, Settings, audit};
//! use antinoise_mechanism::{Adjacency, Participation, Problem, Workload, design::{Objective, StrategySpec}};
//! use antinoise_plan::ArithmeticKind;
//! let schema = Participation::Cyclic { min_sep: 4, max_participations: 3 };
//! let problem = Problem {
//!     steps: 12,
//!     workload: Workload::Prefix,
//!     participation: schema.clone(),
//!     objective: Objective::Rms,
//! };
//! let strategy = "banded-toeplitz:4".parse::<StrategySpec>()?.design(&problem)?.value;
//! let mut claim = Claim::of_strategy(strategy, schema, Adjacency::ZeroOut, 1.0, ArithmeticKind::Grid)?;
//! let settings = Settings { examples: 1000, units: 32, ..Settings::new(1e-3, 12) };
//! let report = audit(&claim, &mut BuiltinMechanism::new(claim.clone(), 1), &settings)?;
//! assert!(report.accepted);
//! // The same mechanism cannot claim a tenth more privacy.
//! claim.mu *= 0.9;
//! assert!(!audit(&claim, &mut BuiltinMechanism::new(claim.clone(), 1), &settings)?.accepted);
//! # Ok::<(), antinoise_audit::Error>(())
//! ```
//!
//! # Layers
//!
//! From the ground up; a file uses only files of lines above its own, which `scripts/layers.py` checks. Claim
//! and mechanism meet in `experiment`; the tests themselves see only sums and noisy sums.
//!
//! ```layers
//! error, random, stats, report: errors; random numbers; quantiles; figures and their verdict
//! watched: a model whose sums an audit sees (feature `train`)
//! claim, mechanism, settings, operator: the claim; the mechanism under audit; how much is run; C and its inverse
//! memo, worst_case, noise_tests: sums that are known; worst-case sequences; the law of the noise
//! builtin, membership_test, canary_inputs: the built-in mechanism; distinguishing neighbours; inputs with chosen gradients
//! sums, experiment, training: how far a sum moves; what all runs share; a training's batches and steps (feature `train`)
//! runs: all runs
//! audit: the tests and the verdict
//! one_run: canaries in one training, guesses of which took part, and the epsilon that they prove (feature `train`)
//! ```

mod audit;
mod builtin;
mod canary_inputs;
mod claim;
mod error;
mod experiment;
mod mechanism;
mod membership_test;
mod memo;
mod noise_tests;
#[cfg(feature = "train")]
mod one_run;
mod operator;
mod random;
mod report;
mod runs;
mod settings;
mod stats;
mod sums;
#[cfg(feature = "train")]
mod training;
#[cfg(feature = "train")]
mod watched;
mod worst_case;

#[cfg(feature = "train")]
pub use audit::audit_with_training;
pub use audit::{audit, audit_with};
pub use builtin::BuiltinMechanism;
pub use claim::Claim;
pub use error::Error;
pub use mechanism::{AuditInputs, Mechanism};
#[cfg(feature = "train")]
pub use one_run::{Canary, Guesses, OneRunReport, OneRunSettings, has_likelihood_ratio, one_run};
pub use report::{Report, Test};
pub use settings::Settings;
#[cfg(feature = "train")]
pub use training::{BuiltinTraining, StepRecord, Training, TrainingInputs};

/// The README, whose code runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
