//! An open release: its plan, its noise and its database, with one writer.

use std::path::Path;
use std::sync::Arc;

use antinoise_input::files::Lock;
use antinoise_input::{InvalidParameter, hex};
use antinoise_noise::{Key, NoiseStream};
use antinoise_plan::VerifiedPlan;
use sha2::{Digest, Sha256};

use crate::design::chain::Chain;
use crate::identity::{Identity, NUMBER, SETTINGS, described, plan_of, plans, resumed};
use crate::store::database::{SAMPLING, State};
use crate::store::folder::Folder;
use crate::{Error, Keep, Query, Result, Settings};

/// A continual release in a folder, locked against other processes while this value lives.
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
    /// The designs; shared, so that they can be read while the release changes.
    pub(crate) chain: Arc<Chain>,
    pub(crate) state: State,
    /// Noise positioned at the next period to publish, or at the end of the previous segment; `None` if all
    /// periods are published.
    pub(crate) noise: Option<NoiseStream>,
    /// The segment of the noise.
    pub(crate) segment: usize,
    _lock: Lock,
}

impl Release {
    /// Creates a release in `folder`, which is created if absent: chooses the mechanism, takes a key from the
    /// operating system and writes both.
    ///
    /// # Errors
    /// If a setting cannot be used, no mechanism can be made for it, or the folder already holds a release.
    pub fn create(folder: &Path, settings: &Settings) -> Result<Self> {
        Self::create_with(folder, settings, &|_, _| ())
    }

    /// As [`Release::create`]. `progress` is called with the work done and expected so far, in a common unit,
    /// while the mechanism is designed.
    ///
    /// # Errors
    /// As [`Release::create`].
    pub fn create_with(
        folder: &Path,
        settings: &Settings,
        progress: &(dyn Fn(f64, f64) + Sync),
    ) -> Result<Self> {
        let folder = Folder::new(folder)?;
        let exists = |folder: &Folder| folder.database().metadata().is_ok_and(|found| found.len() > 0);
        let refused = || {
            let must_be = "a new folder: this one holds a release, whose budget is spent once (continue it, in Python \
                 by open, or name another folder)";
            Error::invalid("folder", folder.database().display(), must_be)
        };
        if folder.path().is_file() {
            return Err(Error::invalid("folder", folder.path().display(), "a new folder: it is a file"));
        }
        if exists(&folder) {
            return Err(refused());
        }
        let chain = Chain::new(settings, progress)?;
        folder.make()?;
        let lock = folder.lock()?;
        folder.wipe_unfinished()?;
        folder.make_database()?;
        let mut state = State::new(&folder)?;
        if !state.is_empty()? {
            return Err(refused());
        }
        let number = Key::from_os()?.expose(|key| hex(&key[..16]));
        let identity = Identity { settings: written(settings), number: number.clone() };
        let (builder, grid) = described(&chain, 0, &identity)?;
        let noise = folder.begin_noise(builder, grid, Key::from_os()?)?;
        // Without facts in the database there is no release: a noise file from an interrupted attempt is
        // overwritten.
        let mut facts = vec![(SETTINGS, identity.settings.as_str()), (NUMBER, &number)];
        let names: Vec<String> = (0..chain.plans()).map(plan_of).collect();
        facts.extend(names.iter().enumerate().map(|(segment, name)| (name.as_str(), chain.plan(segment))));
        let sampling = Key::from_os()?.expose(|key| hex(key));
        if settings.keep == Keep::Sample {
            facts.push((SAMPLING, &sampling));
        }
        state.create(&facts)?;
        Ok(Self {
            folder,
            settings: settings.clone(),
            chain: Arc::new(chain),
            state,
            noise: Some(noise),
            segment: 0,
            _lock: lock,
        })
    }

    /// Opens the release in `folder`.
    ///
    /// # Errors
    /// If there is none, another process uses it, it is a copy, its plan, settings or secret were altered or
    /// belong to another release, or its database is older than its secret.
    pub fn open(folder: &Path) -> Result<Self> {
        Self::opened(Folder::new(folder)?, false)
    }

    /// Opens a folder that was copied or restored, if the original will never be used again.
    ///
    /// Two folders that continue one release publish different data under the same noise, and the difference
    /// of their publications has no noise.
    ///
    /// # Errors
    /// As [`Release::open`], except that copies are accepted.
    pub fn adopt(folder: &Path) -> Result<Self> {
        Self::opened(Folder::new(folder)?, true)
    }

    fn opened(folder: Folder, adopt: bool) -> Result<Self> {
        // Checked before a lock file is made: a folder without a release is left unchanged.
        State::look(&folder)?;
        let lock = folder.lock()?;
        let mut state = State::open(&folder)?;
        folder.wipe_unfinished()?;
        state.check_home(adopt)?;
        let settings_text = state.fact(SETTINGS)?;
        let settings = read(&settings_text)?;
        let chain = Chain::of(&settings, plans(&state, &settings)?)?;
        let (_, published) = state.progress()?;
        if settings.segments.is_none() && published >= settings.periods {
            // The process may have been killed between the last publication and wiping the secret.
            folder.wipe_secret()?;
            let chain = Arc::new(chain);
            return Ok(Self { folder, settings, chain, state, noise: None, segment: 0, _lock: lock });
        }
        let (mut noise, segment) = resumed(&folder, &state, &chain, published)?;
        let start = chain.started(segment);
        if start + noise.step() > published {
            let got =
                format!("older than its secret: {published} periods published of {}", start + noise.step());
            let must_be = "the one that was written last: with an older one, other data would be published under noise that was \
                           used before";
            return Err(Error::invalid(state.path().display().to_string(), got, must_be));
        }
        if chain.place(published).segment == segment {
            noise.seek(published - start)?;
        }
        let chain = Arc::new(chain);
        Ok(Self { folder, settings, chain, state, noise: Some(noise), segment, _lock: lock })
    }

    /// The noise of the next publication.
    pub(crate) fn noise(&mut self) -> Result<&mut NoiseStream> {
        let path = self.folder.secret();
        self.noise.as_mut().ok_or_else(|| {
            let must_be = "present. All periods were published, so that the release is complete";
            Error::invalid(path.display().to_string(), "wiped", must_be)
        })
    }

    /// Saves the noise after a publication, or wipes it after the last one.
    pub(crate) fn keep_noise(&mut self, published: usize) -> Result<()> {
        if self.settings.segments.is_none() && published >= self.settings.periods {
            self.noise = None;
            return self.folder.wipe_secret();
        }
        match &self.noise {
            Some(noise) => self.folder.save_noise(noise),
            None => Ok(()),
        }
    }

    /// Whether all periods are published and the secret is wiped: nothing more can be published, and nobody
    /// who takes the folder can remove the noise from earlier publications.
    pub fn is_complete(&self) -> bool {
        self.noise.is_none()
    }

    /// Starts the noise of a segment, with a key derived from the previous segment's key.
    pub(crate) fn enter(&mut self, segment: usize) -> Result<()> {
        let (builder, grid) = described(&self.chain, segment, &Identity::of(&self.state)?)?;
        let next = self.noise()?.expose_run_key(|key| {
            let mut digest = Sha256::new();
            digest.update(b"antinoise release: the next segment");
            digest.update(key);
            Key::from_reader(|bytes| -> std::result::Result<(), std::convert::Infallible> {
                digest.finalize_into((&mut *bytes).try_into().expect("a key has 32 bytes"));
                Ok(())
            })
        });
        let Ok(key) = next;
        // The key of the previous segment is overwritten: nothing more of that segment is published.
        self.noise = Some(self.folder.begin_noise(builder, grid, key)?);
        self.segment = segment;
        Ok(())
    }

    /// Calls `each` with every user, every period in which the user was counted (from 0), and the number of
    /// rows: the data that enforce the bounds. They are exact, and not private.
    ///
    /// ```
    /// use antinoise_release::{Release, Settings, Unit};
    /// let folder = tempfile::tempdir()?;
    /// let mut release = Release::create(folder.path(), &Settings::new(vec!["a".into()], 30, Unit::User))?;
    /// let mut day = release.freeze(&"1".parse()?)?;
    /// day.add("ada", "a", None)?;
    /// day.commit()?;
    /// release.counted(|user, period, rows| assert_eq!((user, period, rows), ("ada", 0, 1)))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub fn counted(&self, each: impl FnMut(&str, usize, u32)) -> Result<()> {
        self.state.counted(each)
    }

    /// The absolute path of the folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The plan; of an open-ended release, the first segment's.
    pub fn plan(&self) -> &VerifiedPlan {
        &self.chain.first().plan
    }

    /// The largest standard deviation of the noise in each period's figures of `query`, in the query's unit.
    /// For a cdf: of its numbers of rows. For a mean: of the mean times the number of rows, approximately.
    /// For quantiles: of the number of rows below an edge minus Q times the number of all rows.
    ///
    /// # Errors
    /// If the release does not have this query, or is open-ended: see [`Release::error`].
    pub fn errors(&self, query: &Query) -> Result<Vec<f64>> {
        self.chain.errors(query)
    }

    /// As [`Release::errors`], for one period, counted from 0.
    ///
    /// # Errors
    /// If the release does not have this query or period.
    pub fn error(&self, query: &Query, period: usize) -> Result<f64> {
        self.chain.error(query, period)
    }
}

fn written(settings: &Settings) -> String {
    toml::to_string(settings).expect("settings are numbers, words and lists")
}

pub(crate) fn read(text: &str) -> Result<Settings> {
    toml::from_str(text).map_err(|error| {
        let got = format!("text that cannot be read ({})", error.message());
        InvalidParameter::new("settings of the release", got, "those that `antinoise release init` wrote")
            .into()
    })
}
