//! A study: one private training, or a comparison of mechanisms at the same privacy, in a folder that
//! resumes.
//!
//! A study trains every mechanism at every learning rate, with repeats under keys of their own, and keeps
//! each mechanism's best rate. Its folder holds the settings, checkpoints, a report, and the model to give
//! away with its plan, privacy statement and card. A study that was stopped or killed resumes to the bit.
//!
//! ```text
//! Settings --StudyRun::new--> StudyRun --train--> Outcome: a StudyResult, or several
//!                                ^
//! folder ---StudyRun::resumed----+
//! ```
//!
//! Which models a privacy statement covers is fixed by [`Published`]: results choose among models only where
//! the statement covers all of them.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use antinoise_plan::Length;
//! use antinoise_study::{ModelName, Outcome, Settings, StudyRun};
//!
//! let settings = Settings {
//!     model: Some(ModelName::Logistic),
//!     mechanisms: Some(vec!["identity".parse()?, "blt:2".parse()?]),
//!     lengths: vec![Length::Steps(15)],
//!     learning_rates: vec![0.5],
//!     repeats: Some(1),
//!     ..Settings::new("digits")
//! };
//! let folder = std::env::temp_dir().join(format!("study-{}", std::process::id()));
//! let run = StudyRun::new(&settings, &folder, None, &|_| ())?;
//! let Outcome::One(result) = run.train(&AtomicBool::new(false), &|_| ())? else { panic!("one study") };
//! let [identity, blt, not_private] = &result.runs[..] else { panic!("two mechanisms and no noise") };
//! assert!(identity.has_privacy_of(blt) && not_private.private.is_none());
//! assert!(blt.test_accuracy > result.largest_class_share && result.model.join("plan.toml").is_file());
//! # std::fs::remove_dir_all(folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Layers
//!
//! From the ground up; a file uses only files of lines above its own, which `scripts/layers.py` checks.
//!
//! ```layers
//! error, event, named, around, results: errors; progress; mechanisms; settings of optimizers; results of runs
//! tested: the examples or characters that accuracies are shares of
//! clip_by, local, persons, published, table_file, texts, search: parts of settings; the search for a learning rate
//! data: data and models by name
//! task: the data with the model that is trained on them
//! rounds: federated rounds, tested
//! settings: all settings, and the requests for plans
//! point, problem: the setting that a sweep varies; the plans that follow
//! study: the settings and plans that, with the keys, determine all runs
//! folder, metrics, cost: a study on disk; a line for each step; the privacy of several models
//! statement, audit, training: statements with facts of the runs; trainings with canaries; the runs
//! result: the results, as callers get them
//! sweep, card: the results of a sweep; the card of a model
//! model_folder, page: the model to give away; the report
//! summary: results, report and model from the runs
//! session: a study in its folder
//! sessions: a study for each point of a sweep
//! study_run: one study or several, begun or resumed
//! ```

mod around;
mod audit;
mod card;
mod clip_by;
mod cost;
mod data;
mod error;
mod event;
mod folder;
mod local;
mod metrics;
mod model_folder;
mod named;
mod page;
mod persons;
mod point;
mod problem;
mod published;
mod result;
mod results;
mod rounds;
mod search;
mod session;
mod sessions;
mod settings;
mod statement;
mod study;
mod study_run;
mod summary;
mod sweep;
mod table_file;
mod task;
mod tested;
mod texts;
mod training;

pub use audit::{Audited, trained_with_canaries};
pub use clip_by::ClipBy;
pub use data::{ModelName, load};
pub use error::Error;
pub use event::{Event, OnEvent};
pub use local::Local;
pub use named::{Baseline, WITHOUT_NOISE};
pub use persons::Persons;
pub use point::Point;
pub use published::Published;
pub use result::{
    Accuracy, Difference, MechanismFigures, MechanismResult, PrivateResult, StudyResult, percent,
};
pub use settings::Settings;
pub use study_run::{Outcome, StudyRun};
pub use sweep::{AtPoint, Sweep};
pub use table_file::{COMMA, TABLES, Table, TableKind, table_file};
pub use tested::Tested;
pub use texts::Texts;

/// The README, whose code runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
