//! Queries about the rounds of a ledger.

use rusqlite::OptionalExtension;

use crate::ledger::{Charged, Ledger};
use crate::rows::read_rows;
use crate::{Observed, Result, chain};

/// The recorded noisy sum of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoisySum {
    /// The step.
    pub step: usize,
    /// A digest of the state from which the step started, for example of the model.
    pub base: String,
    /// The noisy sum, which is kept only for the last finished step; bytes of float32 if the Python package
    /// wrote it.
    pub noisy_sum: Option<Vec<u8>>,
}

impl Ledger {
    /// Returns the users who are already charged for the next step, in an interrupted round, and the proof
    /// that they are charged; `None` if nobody is. The round must be resumed with these users: two sums with
    /// the same noise would reveal their difference.
    ///
    /// ```
    /// # use antinoise_plan::{Length, PrivacyUnit, Request, Setting, choose};
    /// # let setting = Setting::Federated { min_sep: 3, max_participations: Some(2) };
    /// # let request = Request { unit: PrivacyUnit::User, ..Request::new(40, 2, Length::Steps(8), setting) };
    /// # let (plan, folder) = (choose(&request)?.plan, tempfile::tempdir()?);
    /// # let path = folder.path().join("ledger.db");
    /// use antinoise_ledger::Ledger;
    /// let _killed_before_its_noisy_sum = Ledger::open(&path, &plan, "0")?.charge(&["grace", "ada"])?;
    /// let mut ledger = Ledger::open(&path, &plan, "0")?;
    /// let (charged, users) = ledger.charged_before()?.unwrap();
    /// assert_eq!(users, ["ada", "grace"]);
    /// ledger.record_noisy_sum(charged, "", &[])?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn charged_before(&self) -> Result<Option<(Charged, Vec<String>)>> {
        self.check_sure()?;
        let users = self.participants(self.step)?;
        Ok((!users.is_empty()).then_some((Charged { step: self.step }, users)))
    }

    /// The users who were charged for a step, in the order of their names.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn participants(&self, step: usize) -> Result<Vec<String>> {
        let users = "SELECT user FROM participations WHERE step = ? ORDER BY user";
        let mut statement = self.database.prepare(users).map_err(self.failed())?;
        let found = statement.query_map([step as i64], |row| row.get(0)).map_err(self.failed())?;
        found.collect::<rusqlite::Result<_>>().map_err(self.failed())
    }

    /// Returns the base that was recorded for a finished step: a digest of the model from which the step
    /// started.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn base(&self, step: usize) -> Result<Option<String>> {
        let base = "SELECT base FROM noisy_sums WHERE step = ?";
        self.database.query_row(base, [step as i64], |row| row.get(0)).optional().map_err(self.failed())
    }

    /// The last noisy sum.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn last_noisy_sum(&self) -> Result<Option<NoisySum>> {
        let last = "SELECT step, base, noisy_sum FROM noisy_sums ORDER BY step DESC LIMIT 1";
        let read = |row: &rusqlite::Row| {
            Ok(NoisySum { step: row.get::<_, u32>(0)? as usize, base: row.get(1)?, noisy_sum: row.get(2)? })
        };
        self.database.query_row(last, [], read).optional().map_err(self.failed())
    }

    /// Whether exactly this noisy sum, from this base, was recorded for a step. Digests are compared, which
    /// are kept for steps whose noisy sum is deleted.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn has_noisy_sum(&self, step: usize, base: &str, noisy_sum: &[u8]) -> Result<bool> {
        let sql = "SELECT content FROM chain WHERE part = 'noisy_sums' AND step = ?";
        let found = self.database.query_row(sql, [step as i64], |row| row.get::<_, String>(0)).optional();
        Ok(found.map_err(self.failed())? == Some(chain::noisy_sum(base, noisy_sum)))
    }

    /// Returns every participation as (user, step), user by user, in the order of steps.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn participations(&self) -> Result<Vec<(String, usize)>> {
        let mut all = Vec::new();
        self.each_participation(|user, step| all.push((user.to_string(), step)))?;
        Ok(all)
    }

    /// The participations in finished steps.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn observed(&self) -> Result<Observed> {
        let mut observed = Observed::of_steps(self.step);
        self.each_participation(|user, step| observed.add(user, step))?;
        Ok(observed.done())
    }

    fn each_participation(&self, mut each: impl FnMut(&str, usize)) -> Result<()> {
        read_rows(&self.database, &self.path, |user, step| {
            each(user, step);
            Ok(())
        })
    }
}
