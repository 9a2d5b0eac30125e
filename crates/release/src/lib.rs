//! Continual release: private counts, sums, means, histograms and quantiles over a stream, published period
//! by period.
//!
//! A [`Release`] has public keys and a plan for N periods. Each period's events are bounded and
//! [frozen](Release::freeze), and then [published](Release::publish) once: running counts, sums and means,
//! sliding windows, decaying counts, histograms, CDFs, quantiles and ranges, each figure with its 95%
//! interval. The whole stream has one (epsilon, delta).
//!
//! # What is proved
//!
//! Let g_t be the vector of period t: the increments of all keys and queries, in whole points of a grid of
//! spacing s. The release publishes only functions of r_t = g_t + (C^-1 Z)_t, t = 1, ..., N.
//!
//! 1. *Bound.* A unit's counted rows change g_t by at most R sqrt(sum over parts of p_q^2) points in l2 norm,
//!    for R rows of p_q points in part q; times s, this is at most the plan's clip norm, R sqrt(sum of
//!    w_q^2). A row adds its points to one cell of a part. If a histogram's buckets are correlated, a row
//!    adds a column of an integer matrix whose columns have l2 norm at most p_q. Increments are integers, so
//!    that sums are exact in every order.
//! 2. *Schema.* A user is counted in at most k periods, which a ledger on disk enforces; the plan's
//!    participation is min-sep:1,k (any k periods). An event, or a user of a single period, takes part once
//!    (min-sep:N,1). A user is a name: different spellings of a whole number are one user ([`user_name`]),
//!    and names that are [nearly the same](Similar) cause a warning.
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
//!    numbers. So are means, CDFs, quantiles and ranges: each is computed from sums of r_1, ..., r_t. Which
//!    buckets are correlated depends only on the queries.
//!
//! An open-ended release ([`Links`]) has a plan, a key and noise of its own for each link of periods, and a
//! unit takes part in at most k periods of all links together. All links are one block-diagonal strategy, and
//! the claim of 4 holds for it if, for every k' <= k, the squared sensitivity of a link to k' periods is at
//! most k' / k of what (epsilon, delta) allows. This is checked on the numbers for every link and every k';
//! the proof is in `chain.rs` and `docs/release.md`.
//!
//! Not covered: the exact tallies that freezing reports to the operator, errors that name a row, running
//! times, and the names of keys, which are public.
//!
//! # Layers
//!
//! From the ground up; a file uses only files of lines above its own, which `scripts/layers.py` checks.
//!
//! ```layers
//! error, period: what can go wrong; names of periods
//! measure: what a row adds to
//! users, ledger: a period's users and how many rows each has; who was counted when, in SQLite
//! sample: which rows of a user are kept
//! buckets, interval: noise that is correlated over buckets; intervals of sums and ratios
//! query, quantile: what is published of a key; quantiles from numbers below edges
//! words: queries as they are written
//! links: a release without an end
//! settings, folder: what is wanted; the folder, its lock and its secret
//! home: where the files are, which no copy has
//! seal: the key and the last token of the database's digests, and its home
//! sealed: the chain of digests in the database
//! published, tables: a figure as it is published; the tables of the SQLite file
//! layout, state: the stacked vector and its bound; the SQLite file
//! figures, answer: figures from the cells of a key; SQL on what was published
//! design: one plan for all queries
//! chain: designs of links, and the proof that they share one budget
//! identity: what a release is known by, to which its noise is bound
//! release: a release that is open
//! status: what it promises, for whoever looks
//! report: the same in figures
//! freeze, publish: the events of a period; its noise, and what is told of it
//! similar, rows: users of nearly the same name; rows on their way into a period
//! source: events from files
//! table: events in Arrow's tables
//! parquet: events from Parquet files
//! counts: what was bounded and counted elsewhere
//! ```

mod answer;
mod buckets;
mod chain;
mod counts;
mod design;
mod error;
#[cfg(test)]
mod extremes;
mod figures;
mod folder;
mod freeze;
mod home;
mod identity;
mod interval;
mod layout;
mod ledger;
mod links;
mod measure;
#[cfg(feature = "parquet")]
mod parquet;
mod period;
mod publish;
mod published;
mod quantile;
mod query;
mod release;
mod report;
mod rows;
mod sample;
mod seal;
mod sealed;
mod settings;
mod similar;
mod source;
mod state;
mod status;
#[cfg(feature = "arrow")]
mod table;
mod tables;
mod users;
mod words;

pub use antinoise_input::tables::{Number, user_name};

pub use answer::{Answer, published, query, query_while};
pub use error::{Error, Result};
pub use freeze::{Fate, Freezing, Tally};
pub use links::{Growth, Link, Links};
pub use period::{Period, Place};
pub use published::{Figure, Published};
pub use query::Query;
pub use release::Release;
pub use report::{After, LinkTold, QueryTold, StatusReport};
pub use rows::{Found, Handling, Late, Rows};
pub use settings::{Keep, Settings, Unit};
pub use similar::Similar;
pub use source::{Columns, Format};
pub use status::Status;
#[cfg(feature = "arrow")]
pub use table::{EventBatch, EventTable};

/// The README, whose code runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
