//! An audit of private mechanisms as black boxes.
//!
//! A [`Claim`] describes the releases R (steps x dim) of a mechanism: R = G + C^-1 Z, where G is the sums of
//! clipped gradients and Z is independent N(0, nu^2), with mu-GDP for every unit that a schema allows.
//! [`audit`] searches for sequences of gradients that come closest to violating the claim, runs them and
//! their neighbours through the mechanism under audit, which implements [`UnderAudit`], and tests
//!
//! - that no sequence found changes C G by more than mu nu;
//! - that no example changes a sum by more than the clip norm (with rounding), whatever the other examples
//!   are;
//! - that neither processes nor interruptions change a bit;
//! - that C (R - G) / nu are independent standard normals, across steps, coordinates and runs;
//! - that the most powerful test does not distinguish neighbours better than mu-GDP allows;
//! - for a plan's training ([`TrainingUnderAudit`]): its batches, that a release minus its noise is the
//!   clipped sum, that the optimizer sees nothing else, and that it resumes without changes.
//!
//! A correct mechanism is rejected with probability at most alpha, over all tests. Acceptance is not a proof:
//! see `docs/audit.md`.
//!
//! ```
//! use antinoise_audit::{Claim, Real, Settings, audit};
//! use antinoise_mechanism::{Adjacency, Participation, Problem, Workload, design::{Objective, StrategySpec}};
//! use antinoise_plan::ReleaseKind;
//! let schema = Participation::Cyclic { min_sep: 4, max_participations: 3 };
//! let problem = Problem {
//!     steps: 12,
//!     workload: Workload::Prefix,
//!     participation: schema.clone(),
//!     objective: Objective::Rms,
//! };
//! let strategy = "banded-toeplitz:4".parse::<StrategySpec>()?.design(&problem)?.value;
//! let mut claim = Claim::of_strategy(strategy, schema, Adjacency::ZeroOut, 1.0, ReleaseKind::Grid)?;
//! let settings = Settings { examples: 1000, units: 32, ..Settings::new(1e-3, 12) };
//! let report = audit(&claim, &mut Real::new(claim.clone(), 1), &settings)?;
//! assert!(report.accepted);
//! // The same mechanism cannot claim a tenth more privacy.
//! claim.mu *= 0.9;
//! assert!(!audit(&claim, &mut Real::new(claim.clone(), 1), &settings)?.accepted);
//! # Ok::<(), antinoise_audit::Error>(())
//! ```
//!
//! # Layers
//!
//! From the ground up; a file uses only files of lines above its own, which `scripts/layers.py` checks. Claim
//! and mechanism meet in `scene`; the tests themselves see only sums and releases.
//!
//! ```layers
//! error, random, stats, report: errors; random numbers; quantiles; figures and their verdict
//! watched: a learner whose sums an audit sees
//! claim, black_box, settings, operator: the claim; the mechanism under audit; how much is run; C and its inverse
//! memo, attack, law: sums that are known; worst-case sequences; the law of the noise
//! real, membership, stage: the real mechanism; distinguishing neighbours; inputs with chosen gradients
//! sums, scene, training: how far a sum moves; what all runs share; a training's batches and steps
//! runs: all runs
//! audit: the tests and the verdict
//! one_run: canaries in one training, guesses of which took part, and the epsilon that they prove
//! ```

mod attack;
mod audit;
mod black_box;
mod claim;
mod error;
mod law;
mod membership;
mod memo;
mod one_run;
mod operator;
mod random;
mod real;
mod report;
mod runs;
mod scene;
mod settings;
mod stage;
mod stats;
mod sums;
mod training;
mod watched;

pub use audit::{audit, audit_with};
pub use black_box::{Data, UnderAudit};
pub use claim::Claim;
pub use error::Error;
pub use one_run::{Canary, Guesses, OneRun, OneRunReport, one_run};
pub use real::Real;
pub use report::{Report, Test};
pub use settings::Settings;
pub use training::{Ground, RealTraining, Seen, TrainingUnderAudit};

/// The README, whose code runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
