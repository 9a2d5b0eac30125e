//! Continual release: private counts, sums and histograms over a stream, period by period, for people who count.
//!
//! A [`Release`] has public keys and a plan for N periods. Each period's events are bounded and [frozen](Release::freeze), and then
//! [published](Release::publish) once: running counts and sums, sliding windows, decaying counts and histograms, each figure with its 95%
//! interval. The whole stream has one (epsilon, delta).
//!
//! # What is proved
//!
//! Let g_t be the vector of period t: the increments of all keys and queries, in whole points of a grid of spacing s. The release publishes
//! functions of r_t = g_t + (C^-1 Z)_t, t = 1, ..., N, alone.
//!
//! 1. *Bound.* A unit's kept rows move g_t by at most R sqrt(sum over parts of p_q^2) points in l2 norm, R rows of p_q points each; s times that is at most the plan's
//!    clip norm, R sqrt(sum of w_q^2). Increments are integers, so that sums are exact in every order.
//! 2. *Schema.* A user is counted in at most k periods, which a table on the disk enforces; the plan's participation is min-sep:1,k (any k periods). An event, or a user of a
//!    single period, takes part once (min-sep:N,1).
//! 3. *Others.* Which of a user's rows are kept depends on that user's rows alone: the first R of a period in the order of the file. So data sets that
//!    differ in one unit's rows have g_t that differ by that unit's bounded rows, and by nothing else.
//! 4. *Mechanism.* The plan, verified whenever it is read, says that r_1, ..., r_N with bound 1 and schema 2 are (epsilon, delta)-differentially private under zero-out
//!    adjacency, which for sums is to add or remove a unit. Noise is on the grid (`docs/noise.md`), and r_t is computed in integers.
//! 5. *Once.* r_t is a function of frozen increments, key and t. Increments are frozen once, before any noise meets them. At most N periods are frozen. A database that is
//!    older than its secret, a copy of the folder, and a second writer are refused.
//! 6. *Post-processing.* Values, intervals, rounding and raising are functions of r_1, ..., r_t and of public numbers.
//!
//! What is not covered: the exact tallies that freezing tells its operator, errors that name a row, how long things take, and the names of
//! keys, which are public.
//!
//! # Layers
//!
//! From the ground up; a file uses only what is above its line. `scripts/layers.py` holds every file to it.
//!
//! ```layers
//! error, query, period: what can go wrong; what is published of a key; names of periods
//! settings, folder: what is wanted; the folder, its lock and its secret
//! layout, state: the stacked vector and its bound; the SQLite file
//! design, answer: one plan for all queries; SQL on what was published
//! release: a release that is open
//! freeze, publish: the events of a period; its noise, and what is told of it
//! rows: rows on their way into a period
//! source: events from files
//! cells: columns of Arrow's, cell by cell
//! table: events in Arrow's tables
//! counts: what was bounded and counted elsewhere
//! ```

mod answer;
#[cfg(feature = "arrow")]
mod cells;
mod counts;
mod design;
mod error;
mod folder;
mod freeze;
mod layout;
mod period;
mod publish;
mod query;
mod release;
mod rows;
mod settings;
mod source;
mod state;
#[cfg(feature = "arrow")]
mod table;

pub use answer::{Answer, published, query};
pub use error::{Error, Result};
pub use freeze::{Fate, Freezing, Tally};
pub use period::{Period, Place};
pub use query::Query;
pub use release::{Release, Status};
pub use rows::{Found, Handling, Late, Number, Rows};
pub use settings::{Settings, Unit};
pub use source::{Columns, Format};
pub use state::{Figure, Published};
#[cfg(feature = "arrow")]
pub use table::{EventBatch, EventTable};

/// The README, whose code runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
