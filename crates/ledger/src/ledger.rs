//! The ledger, which charges users and records noisy sums.

use std::path::{Path, PathBuf};

use antinoise_input::{InvalidParameter, hex};
use antinoise_plan::VerifiedPlan;
use rusqlite::{Connection, OptionalExtension, params};

use crate::chain::{self, Held, Part, Users};
use crate::past::{Limits, Past, form};
use crate::rows::read_rows;
use crate::{Error, Result, file};

/// Names in the table `run` that every ledger has.
const PLAN: &str = "plan";
const RUN: &str = "run";

/// The ledger of a run, an SQLite file with the users who took part in each step and the last noisy sum. It
/// belongs to one plan and run, is used by one process at a time, and only its owner can read it. Every
/// change is on disk before the call returns.
///
/// ```
/// # use antinoise_plan::{Length, PrivacyUnit, Request, Setting, choose};
/// # let setting = Setting::Federated { min_sep: 3, max_participations: Some(2) };
/// # let request = Request { unit: PrivacyUnit::User, ..Request::new(40, 2, Length::Steps(8), setting) };
/// # let (plan, folder) = (choose(&request)?.plan, tempfile::tempdir()?);
/// use antinoise_ledger::Ledger;
/// let mut ledger = Ledger::open(&folder.path().join("ledger.db"), &plan, "0")?;
/// let charged = ledger.charge(&["ada", "grace"])?; // and now their gradients may be asked for
/// ledger.record_noisy_sum(charged, "", &[])?;
/// assert_eq!(ledger.eligible(["ada", "edsger"]), ["edsger"]);
/// assert!(ledger.charge(&["edsger", "ada"]).is_err()); // nobody is charged
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Ledger {
    pub(crate) path: PathBuf,
    pub(crate) database: Connection,
    limits: Limits,
    steps: usize,
    /// The next step.
    pub(crate) step: usize,
    past: Past,
    /// The users who are charged for the next step.
    charged: Users,
    unsure: bool,
}

/// Proof that the participants of a step are charged, on disk; [`Ledger::record_noisy_sum`] requires it.
#[derive(Debug)]
#[must_use = "the record of the noisy sum asks for it"]
pub struct Charged {
    pub(crate) step: usize,
}

impl Charged {
    /// The step in which the users take part.
    pub fn step(&self) -> usize {
        self.step
    }
}

impl Ledger {
    /// Opens the ledger at `path` for this plan and `run`; creates it, accessible only to its owner, if there
    /// is no file.
    ///
    /// # Errors
    /// If the plan is not a federated plan for users (at most k steps of a user, any two at least b apart);
    /// if the file is not a ledger, of another version, plan or run, damaged, accessible to users other than
    /// its owner, in use, or violates the plan; if it cannot be read or written.
    pub fn open(path: &Path, plan: &VerifiedPlan, run: &str) -> Result<Self> {
        plan.participation_limits()?;
        file::make_if_absent(path)?;
        let mut ledger = Self::opened(path, plan)?;
        ledger.bind(PLAN, &hex(&plan.digest()))?;
        ledger.bind(RUN, run)?;
        ledger.read()?;
        Ok(ledger)
    }

    /// Opens an existing ledger of this plan at `path` for inspection, whatever its run is.
    ///
    /// # Errors
    /// As [`Ledger::open`], and if there is no file or it is empty.
    pub fn open_begun(path: &Path, plan: &VerifiedPlan) -> Result<Self> {
        plan.participation_limits()?;
        if std::fs::metadata(path).map_err(Error::io(path))?.len() == 0 {
            return Err(Error::refused(path, "empty", "a ledger"));
        }
        let mut ledger = Self::opened(path, plan)?;
        let wanted = hex(&plan.digest());
        match ledger.bound(PLAN)? {
            Some(held) if held == wanted => ledger.read()?,
            held => return Err(ledger.of_another(PLAN, &wanted, held.as_deref().unwrap_or("none"))),
        }
        Ok(ledger)
    }

    fn opened(path: &Path, plan: &VerifiedPlan) -> Result<Self> {
        let (min_sep, most) = plan.participation_limits()?;
        let (limits, database) = (Limits { min_sep, most }, file::open(path)?);
        let (path, past) = (path.to_path_buf(), Past::new(limits));
        Ok(Self {
            path,
            database,
            limits,
            steps: plan.steps,
            step: 0,
            past,
            charged: Users::default(),
            unsure: false,
        })
    }

    /// Reads the recorded participations and noisy sums, and refuses those that the plan does not allow.
    fn read(&mut self) -> Result<()> {
        self.step = self.finished()?;
        let chain = Held::read(&self.database).map_err(self.failed())?;
        let damaged = |what| Error::damaged(&self.path, what);
        let chain = chain.map_err(damaged)?;
        chain.check_rounds(self.step).map_err(damaged)?;
        let Self { path, database, limits, step, past, charged, .. } = self;
        let (step, limits) = (*step, *limits);
        let mut users = vec![Users::default(); step + 1];
        let mut before: Option<(String, usize)> = None;
        read_rows(database, path, |user, at| {
            if before.as_ref().is_some_and(|(last, t)| (last.as_str(), *t) >= (user, at)) {
                return Err(Error::damaged(path, "rows out of order"));
            }
            if at > step || !past.may(user, at) {
                let got = format!("one in which {user:?} took part in step {at}");
                let must_be = format!(
                    "one whose users took part {} times at most, {} steps apart, up to step {step}",
                    limits.most, limits.min_sep
                );
                return Err(Error::refused(path, &got, &must_be));
            }
            past.add(user, at);
            users[at].add(user);
            before = Some((user.to_string(), at));
            Ok(())
        })?;
        *charged = users[step];
        let checked = chain.check(database, step, &users).map_err(Error::database(path))?;
        checked.map_err(|what| Error::damaged(path, what))
    }

    /// Returns the number of finished steps, which are all steps before the next one.
    fn finished(&self) -> Result<usize> {
        let counts = "SELECT COUNT(*), COALESCE(MIN(step), 0), COALESCE(MAX(step), -1) FROM noisy_sums";
        let found = self.database.query_row(counts, [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        });
        let (count, first, last) = found.map_err(self.failed())?;
        match usize::try_from(count) {
            Ok(step) if first == 0 && last == count - 1 && step <= self.steps => Ok(step),
            _ => Err(Error::damaged(&self.path, format!("{count} noisy sums, the last of step {last}"))),
        }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next step: all steps before it are finished.
    pub fn step(&self) -> usize {
        self.step
    }

    /// Number of users who took part.
    pub fn users(&self) -> usize {
        self.past.users()
    }

    /// Returns the users among `users` who may take part in the next step; none after the plan's last step.
    pub fn eligible<'u>(&self, users: impl IntoIterator<Item = &'u str>) -> Vec<&'u str> {
        let may = |user: &&str| self.step < self.steps && self.past.may(user, self.step);
        users.into_iter().filter(may).collect()
    }

    /// Records that these users take part in the next step. If one of them may not take part, nobody is
    /// recorded. Call this before any of their data are used.
    ///
    /// A user has one name: 7, 7.0 and 007 are one user, and so are names with spaces around them. The first
    /// spelling stays; others are refused.
    ///
    /// Before the noisy sum of a step is recorded, further users may be charged for the step; users who were
    /// charged earlier stay charged.
    ///
    /// # Errors
    /// If a user may not take part or is given twice, all steps of the plan are finished, or the change
    /// cannot be written.
    pub fn charge<U: AsRef<str>>(&mut self, users: &[U]) -> Result<Charged> {
        self.check_sure()?;
        let step = self.step;
        if step >= self.steps {
            let must_be = format!("below {}, the steps of the plan: all of them are finished", self.steps);
            return Err(InvalidParameter::new("step", step, must_be).into());
        }
        // In the order of the table, so that fewer pages are written.
        let mut sorted: Vec<&str> = users.iter().map(AsRef::as_ref).collect();
        sorted.sort_unstable();
        self.check_participants(&sorted)?;
        let mut charged = self.charged;
        sorted.iter().for_each(|user| charged.add(user));
        self.change(|database| {
            let mut insert = database.prepare("INSERT INTO participations VALUES (?, ?)")?;
            sorted.iter().try_for_each(|user| insert.execute(params![user, step as i64]).map(|_| ()))?;
            chain::add(database, Part::Participations(step), &charged.content())
        })?;
        self.charged = charged;
        sorted.iter().for_each(|user| self.past.add(user, step));
        Ok(Charged { step })
    }

    fn check_participants(&self, sorted: &[&str]) -> Result<()> {
        self.check_spellings(sorted)?;
        let twice = sorted.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        let refused: Vec<&str> =
            sorted.iter().copied().filter(|user| !self.past.may(user, self.step)).chain(twice).collect();
        if refused.is_empty() {
            return Ok(());
        }
        let Limits { min_sep, most } = self.limits;
        let what = format!("participants of step {}", self.step);
        let must_be = format!(
            "different users who took part fewer than {most} times, last at least {min_sep} steps ago"
        );
        Err(InvalidParameter::new(what, format!("{refused:?}"), must_be).into())
    }

    /// Refuses two spellings of one user's name, which would take part as two users.
    fn check_spellings(&self, users: &[&str]) -> Result<()> {
        let mut forms: Vec<_> = users.iter().map(|&user| (form(user), user)).collect();
        forms.sort_unstable();
        let here = forms.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| (pair[1].1, pair[0].1));
        let before = users.iter().filter_map(|&user| Some((user, self.past.other_spelling(user)?)));
        match here.chain(before).find(|(user, other)| user != other) {
            None => Ok(()),
            Some((user, other)) => {
                let must_be = format!("{other:?}, as which this user takes part: one user has one name");
                Err(InvalidParameter::new("name of a user", format!("{user:?}"), must_be).into())
            }
        }
    }

    /// Records the noisy sum of the step of `charged`, and deletes the previous noisy sum. `base` is a digest
    /// of the state from which the step started. `noisy_sum` may be empty if it is never needed again.
    ///
    /// Save the noise's state after this call, not before: it never moves back to a step that it was used
    /// for, and a kill between the two would leave a step that is to be repeated.
    ///
    /// # Errors
    /// If the next step is another one, or the change cannot be written.
    pub fn record_noisy_sum(&mut self, charged: Charged, base: &str, noisy_sum: &[u8]) -> Result<()> {
        self.check_sure()?;
        if charged.step != self.step {
            let must_be = format!("{}, which comes next", self.step);
            return Err(InvalidParameter::new("step of a noisy sum", charged.step, must_be).into());
        }
        self.change(|database| {
            database
                .prepare("UPDATE noisy_sums SET noisy_sum = NULL WHERE step = ?")?
                .execute([charged.step as i64 - 1])?;
            database.prepare("INSERT INTO noisy_sums VALUES (?, ?, ?)")?.execute(params![
                charged.step as i64,
                base,
                noisy_sum
            ])?;
            chain::add(database, Part::NoisySum(charged.step), &chain::noisy_sum(base, noisy_sum))
        })?;
        (self.step, self.charged) = (self.step + 1, Users::default());
        Ok(())
    }

    /// Records a value that identifies the ledger in addition to plan and run, such as the layout of a model.
    /// It cannot be changed by another call.
    ///
    /// # Errors
    /// If another value was recorded, or the change cannot be written.
    pub fn bind(&mut self, name: &str, value: &str) -> Result<()> {
        self.check_sure()?;
        match self.bound(name)? {
            None => self.change(|database| {
                database.execute("INSERT INTO run VALUES (?, ?)", [name, value])?;
                chain::add(database, Part::Run, &chain::run(database)?)
            }),
            Some(held) if held == value => Ok(()),
            Some(held) => Err(self.of_another(name, value, &held)),
        }
    }

    /// Replaces the value that is recorded under `name`. The values of plan and run cannot be replaced.
    ///
    /// # Errors
    /// If the name is plan or run, or the change cannot be written.
    pub fn rebind(&mut self, name: &str, value: &str) -> Result<()> {
        self.check_sure()?;
        if [PLAN, RUN].contains(&name) {
            return Err(InvalidParameter::new(
                "name",
                format!("{name:?}"),
                "another: a ledger belongs to one plan and run",
            )
            .into());
        }
        self.change(|database| {
            database.execute("INSERT OR REPLACE INTO run VALUES (?, ?)", [name, value])?;
            chain::add(database, Part::Run, &chain::run(database)?)
        })
    }

    /// Returns the value that is recorded under `name`, if there is one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn bound(&self, name: &str) -> Result<Option<String>> {
        let found = "SELECT value FROM run WHERE name = ?";
        self.database.query_row(found, [name], |row| row.get(0)).optional().map_err(self.failed())
    }

    /// Changes the file atomically.
    fn change(&mut self, write: impl FnOnce(&Connection) -> rusqlite::Result<()>) -> Result<()> {
        let written = self.database.transaction().and_then(|change| {
            write(&change)?;
            change.commit()
        });
        // After a failed commit it is not known whether the change is on disk.
        self.unsure |= written.is_err();
        written.map_err(self.failed())
    }

    pub(crate) fn check_sure(&self) -> Result<()> {
        if self.unsure { Err(Error::Unsure { path: self.path.clone() }) } else { Ok(()) }
    }

    pub(crate) fn failed(&self) -> impl Fn(rusqlite::Error) -> Error + use<'_> {
        Error::database(&self.path)
    }

    fn of_another(&self, name: &str, got: &str, held: &str) -> Error {
        let must_be = format!("the ledger's, {held}: {} is of another run", self.path.display());
        InvalidParameter::new(name, got, must_be).into()
    }
}
