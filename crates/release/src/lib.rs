//! Continual release: private counts, sums, means, histograms, marginals and quantiles over a stream,
//! published period by period.
//!
//! A [`Release`] has public keys and a plan for N periods. Each period's events are bounded and
//! [frozen](Release::freeze), and then [published](Release::publish) once: running counts, sums and means,
//! sliding windows, decaying counts, histograms, CDFs, quantiles, ranges and marginals, each figure with its
//! 95% interval. The whole stream has one (epsilon, delta).
//!
//! # What is proved
//!
//! Let g_t be the vector of period t: the increments of all keys and queries, in whole points of a grid of
//! spacing s. The release publishes only functions of r_t = g_t + (C^-1 Z)_t, t = 1, ..., N.
//!
//! 1. *Bound.* A unit's counted rows change g_t by at most R sqrt(sum over parts of p_q^2) points in l2 norm,
//!    for R rows of p_q points in part q; times s, this is at most the plan's clip norm, R sqrt(sum of
//!    w_q^2). A row adds its points to one cell of a part. If a histogram's buckets are correlated, and
//!    for marginals, a row adds a column of an integer matrix whose columns have l2 norm at most p_q.
//!    Increments are integers, so
//!    that sums are exact in every order.
//!    Users are counted once per period, or once in total, in cells of their own: `design/layout.rs` has the
//!    bound.
//! 2. *Schema.* A user is counted in at most k periods, which a ledger on disk enforces; the plan's
//!    participation is min-sep:1,k (any k periods). An event, or a user of a single period, takes part once
//!    (min-sep:N,1). A user is a name: different spellings of a whole number are one user ([`user_name`]),
//!    and names that are [nearly the same](SimilarNames) cause a warning.
//! 3. *Others.* Which of a user's rows are counted depends only on that user's rows: the first R of a period
//!    in the order of the file, or a sample of R drawn by a key of the release. So data sets that differ in
//!    one unit's rows have g_t that differ only by that unit's bounded rows.
//! 4. *Mechanism.* The plan, verified whenever it is read, says that r_1, ..., r_N with bound 1 and schema 2
//!    are (epsilon, delta)-differentially private under zero-out adjacency, which for sums means adding or
//!    removing a unit. Noise is on the grid (`docs/noise.md`), and r_t is computed in integers.
//! 5. *Once.* r_t is a function of frozen increments, key and t. Increments are frozen once, before noise is
//!    added. At most N periods are frozen. A database older than its secret, a copy of the folder, and a
//!    second writer are refused.
//! 6. *Post-processing.* Values, intervals, rounding and raising are functions of r_1, ..., r_t and of public
//!    numbers. So are means, CDFs, quantiles, ranges and marginals: each is computed from sums of r_1, ...,
//!    r_t. Which buckets are correlated depends only on the queries.
//!
//! An open-ended release ([`Segments`]) has a plan, a key and noise of its own for each segment of periods,
//! and a unit takes part in at most k periods of all segments together. All segments are one block-diagonal
//! strategy, and the claim of 4 holds for it if, for every k' <= k, the squared sensitivity of a segment to a
//! unit of k' periods is at most k' / k of what (epsilon, delta) allows. This is checked on the numbers for
//! every segment and every k'; the proof is in `design/chain.rs` and `docs/release.md`.
//!
//! Not covered: the exact tallies that freezing reports to the operator, errors that name a row, running
//! times, and the names of keys, which are public.
//!
//! # Layers
//!
//! From the ground up; a file uses only files of lines above its own, which `scripts/layers.py` checks.
//!
//! ```layers
//! error, date, words: the error type; dates of the calendar; numbers in sentences
//! period: names of periods
//! queries: the kinds of figures, as text and as types; measures, buckets, intervals and quantiles
//! segments: the segments of an open-ended release
//! settings: the operator's choices
//! store: the folder, its secret and seal, and the SQLite file with the published figures
//! design: the stacked vector and its bound; one plan for all queries, or for each segment; figures from cells
//! identity: the settings, plans and number to which a release's noise is bound
//! release: a release that is open for writing
//! status: its promises and progress, for any reader
//! report: the status as numbers
//! events: adds rows of files, tables and warehouses to a period
//! publish: adds a period's noise, and computes its figures
//! ```

mod date;
mod design;
mod error;
mod events;
#[cfg(test)]
mod extremes;
mod identity;
mod period;
mod publish;
mod queries;
mod release;
mod report;
mod segments;
mod settings;
mod status;
mod store;
mod words;

#[cfg(feature = "parquet")]
pub use antinoise_input::tables::ColumnFormat;
pub use antinoise_input::tables::{Number, SimilarNames, user_name};

pub use design::advice::{Advice, Guess};
pub use error::{Error, Result};
#[cfg(feature = "arrow")]
pub use events::arrow::{EventBatch, EventTable};
pub use events::freeze::{Fate, Found, Freezing, Tally};
pub use events::problems::Check;
pub use events::rows::{Handling, Late, Rows};
pub use events::text::{Columns, Format};
pub use period::{Period, Place};
pub use queries::attribute::{Attribute, Classes};
pub use queries::query::Query;
pub use release::Release;
pub use report::{After, QueryStatus, SegmentStatus, StatusReport, TableStatus};
pub use segments::{Growth, Segment, Segments};
pub use settings::{Keep, Settings, Unit};
pub use status::Status;
pub use store::folder::FILES;
pub use store::published::{Figure, Published};
pub use store::sql::{Answer, published, query, query_while};
pub use words::quantity;

/// The README, whose code runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
