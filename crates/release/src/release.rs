//! A release: its plan, its noise and its database, with one writer.

use std::path::Path;

use antinoise_accounting::PrivacyStatement;
use antinoise_input::lock::Lock;
use antinoise_input::{InvalidParameter, hex};
use antinoise_mechanism::Grid;
use antinoise_noise::{GridStream, StreamBuilder};
use antinoise_plan::{Plan, VerifiedPlan};
use sha2::{Digest, Sha256};

use crate::design::Design;
use crate::folder::Folder;
use crate::state::State;
use crate::{Error, Query, Result, Settings, Unit};

const SETTINGS: &str = "settings";
const PLAN: &str = "plan";
const HOME: &str = "home";

/// A continual release in a folder, which no other process writes into while this lives.
///
/// ```
/// use antinoise_release::{Release, Settings, Unit};
/// let folder = tempfile::tempdir()?;
/// let keys = ["north", "south"].map(String::from).to_vec();
/// let mut release = Release::create(folder.path(), &Settings::new(keys, 30, Unit::User))?;
/// let mut day = release.freeze(&"2026-03-01".parse()?)?;
/// day.add("ada", "north", None)?;
/// day.commit()?;
/// let published = release.publish()?;
/// assert!(published[0].lower.value() <= published[0].value.value());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Release {
    pub(crate) folder: Folder,
    pub(crate) settings: Settings,
    pub(crate) design: Design,
    pub(crate) state: State,
    /// At the period that is published next.
    pub(crate) noise: GridStream,
    _lock: Lock,
}

/// What a release promises and how far it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// What was asked for.
    pub settings: Settings,
    /// The plan that it runs.
    pub plan: VerifiedPlan,
    /// Whether counts of a period came in as they were, bounded by whoever made them.
    pub given: bool,
    /// Periods that were frozen.
    pub frozen: usize,
    /// Periods of these that were published.
    pub published: usize,
}

impl Release {
    /// A new release in `folder`, which is made where there is none: chooses the mechanism, takes a key from the operating system and
    /// writes both.
    ///
    /// # Errors
    /// When a setting cannot be used, no mechanism can be made for it, or the folder holds a release already.
    pub fn create(folder: &Path, settings: &Settings) -> Result<Self> {
        let folder = Folder::new(folder);
        let exists = |folder: &Folder| folder.database().metadata().is_ok_and(|found| found.len() > 0);
        let refused = || {
            let must_be = "a new folder: this one holds a release, whose budget is spent once";
            Error::invalid("folder", folder.database().display(), must_be)
        };
        if exists(&folder) {
            return Err(refused());
        }
        let design = Design::new(settings)?;
        folder.make()?;
        let lock = folder.lock()?;
        folder.make_database()?;
        let mut state = State::open(&folder)?;
        if !state.is_empty()? {
            return Err(refused());
        }
        let (settings_text, plan_text) = (written(settings), design.plan.to_toml());
        let (builder, grid) = described(&design, &settings_text, &plan_text)?;
        let noise = folder.begin_noise(builder, grid)?;
        // Without the database, there is no release: what was written before is begun anew.
        let home = folder.home()?;
        state.create(&[(SETTINGS, &settings_text), (PLAN, &plan_text), (HOME, &home)])?;
        Ok(Self { folder, settings: settings.clone(), design, state, noise, _lock: lock })
    }

    /// The release in `folder`, to go on with.
    ///
    /// # Errors
    /// When there is none, another process uses it, it is a copy, its plan, settings or secret were changed or are another release's, or its
    /// database is older than its secret.
    pub fn open(folder: &Path) -> Result<Self> {
        Self::opened(Folder::new(folder), false)
    }

    /// The same where the folder was copied or restored, and the original will never be used again.
    ///
    /// Two folders that go on with one release publish different data under the same noise, and the difference of what they publish has none.
    ///
    /// # Errors
    /// As [`Release::open`], but for copies.
    pub fn adopt(folder: &Path) -> Result<Self> {
        Self::opened(Folder::new(folder), true)
    }

    fn opened(folder: Folder, adopt: bool) -> Result<Self> {
        // Before a lock is made: a folder without a release is left as it is.
        State::look(&folder)?;
        let lock = folder.lock()?;
        let mut state = State::open(&folder)?;
        state.check()?;
        let home = folder.home()?;
        if state.fact(HOME)? != home {
            if !adopt {
                let must_be = "the folder that the release was made in: two copies that go on would publish different data under the \
                               same noise. If the original is gone for good: antinoise release adopt DIR";
                return Err(Error::invalid(state.path().display().to_string(), "a copy", must_be));
            }
            state.set_fact(HOME, &home)?;
        }
        let (settings_text, plan_text) = (state.fact(SETTINGS)?, state.fact(PLAN)?);
        let settings = read(&settings_text)?;
        let design = Design::of(&settings, Plan::from_toml(&plan_text)?)?;
        let (builder, grid) = described(&design, &settings_text, &plan_text)?;
        let mut noise = folder.resume_noise(builder, grid)?;
        let (_, published) = state.progress()?;
        if noise.step() > published {
            let got = format!("older than its secret: {published} periods published of {}", noise.step());
            let must_be = "the one that was written last: with an older one, other data would be published under noise that was \
                           used before";
            return Err(Error::invalid(state.path().display().to_string(), got, must_be));
        }
        noise.seek(published)?;
        Ok(Self { folder, settings, design, state, noise, _lock: lock })
    }

    /// What was asked for.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The plan that it runs.
    pub fn plan(&self) -> &VerifiedPlan {
        &self.design.plan
    }

    /// The largest standard deviation of the noise in each period's figures of `query`, in the query's unit: of a cdf, that of its numbers; of a mean, that of
    /// the mean times the number of rows, about; of quantiles, that of the number of rows below an edge less Q times that of all.
    ///
    /// # Errors
    /// When the release does not have this query.
    pub fn errors(&self, query: &Query) -> Result<Vec<f64>> {
        errors(&self.settings, &self.design, query)
    }
}

fn errors(settings: &Settings, design: &Design, query: &Query) -> Result<Vec<f64>> {
    if !settings.queries.iter().any(|(asked, _)| asked == query) {
        return Err(Error::invalid("query", query, "one of the release"));
    }
    design.errors(query)
}

impl Status {
    /// The largest standard deviation of the noise in each period's figures of `query`, in the query's unit: of a cdf, that of its numbers; of a mean, that of
    /// the mean times the number of rows, about; of quantiles, that of the number of rows below an edge less Q times that of all.
    ///
    /// # Errors
    /// When the release does not have this query.
    pub fn errors(&self, query: &Query) -> Result<Vec<f64>> {
        errors(&self.settings, &Design::of(&self.settings, self.plan.clone())?, query)
    }

    /// The privacy claim in words, with the bounds that this crate enforces.
    pub fn statement(&self) -> PrivacyStatement {
        let Settings { unit, max_periods, max_rows, periods, .. } = &self.settings;
        let (rows, named) = match unit {
            Unit::User => (
                format!("the first {max_rows} rows of a user in a period, in {max_periods} periods at most"),
                "every row names the user whose data it is; who has two names is two users",
            ),
            Unit::Event => ("each row by itself".into(), "every row is an event of its own"),
        };
        let neighbours = "data sets are neighbours when one has all rows of the other but those of one unit";
        let public = "keys, queries and the ends of periods do not depend on the data";
        let key = "the secret file stays secret, and no copy of it makes noise for other data: whoever has it can subtract the noise";
        let mut assumptions: Vec<String> = [named, neighbours, public, key].map(String::from).into();
        if self.given {
            assumptions.push(
                "counts that came in as they were keep the same bounds: that is their maker's word".into(),
            );
        }
        PrivacyStatement {
            sampler: "none: events are counted as they come, and the release itself keeps to this schema".into(),
            observer: "it holds against whoever sees all that is published, period by period, and knows all data but one \
                       unit's"
                .into(),
            assumptions,
            not_covered: vec![
                "the exact tallies and messages that freezing tells its operator, and every other use of the same data".into(),
            ],
            // How many units there are is not known, and nothing depends on it.
            units: None,
            ..self.plan.statement()
        }
        .with_fact("counted", rows)
        .with_fact("periods", format!("{periods} at most, all covered together"))
    }

    /// What the release in `folder` promises and how far it is; beside a process that writes into it.
    ///
    /// # Errors
    /// When there is none, or its plan does not hold.
    pub fn of(folder: &Path) -> Result<Self> {
        let state = State::look(&Folder::new(folder))?;
        let settings = read(&state.fact(SETTINGS)?)?;
        let plan = Plan::from_toml(&state.fact(PLAN)?)?;
        let (frozen, published) = state.progress()?;
        Ok(Self { settings, plan, given: state.counts_were_given()?, frozen, published })
    }
}

fn written(settings: &Settings) -> String {
    toml::to_string(settings).expect("settings are numbers, words and lists")
}

fn read(text: &str) -> Result<Settings> {
    toml::from_str(text).map_err(|error| {
        InvalidParameter::new("settings of the release", "text that cannot be read", error.to_string()).into()
    })
}

/// The noise of a release, bound to all that it is for: the secret of another one, or of other settings, is refused.
fn described(design: &Design, settings: &str, plan: &str) -> Result<(StreamBuilder, Grid)> {
    let digest = |text: &str| hex(&Sha256::digest(text.as_bytes()));
    // Of correlated buckets, their matrices too: frozen points of one are not read by another.
    let codes = Some(design.layout.codes(design.spacing)).filter(|codes| !codes.is_empty());
    let codes = codes.map_or(String::new(), |codes| format!("{}\n", digest(&codes)));
    let both = format!("antinoise release 1\n{}\n{}\n{codes}", digest(settings), digest(plan));
    let context: [u8; 32] = Sha256::digest(both.as_bytes()).into();
    Ok((design.noise()?.context(context), Grid::new(design.spacing)?))
}
