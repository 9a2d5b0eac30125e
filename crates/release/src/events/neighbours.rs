//! The order and the form of a period's name, compared with the names of frozen periods.

use crate::{Error, Period, Release, Result};

/// The periods that were frozen before.
#[derive(Debug)]
pub(crate) struct Neighbours {
    /// The first frozen period; names of later ones must have the form of its name.
    pub(crate) first: Option<Period>,
    /// The latest frozen period before this one.
    pub(crate) before: Option<Period>,
    /// The latest frozen period that does not come before this one.
    pub(crate) after: Option<Period>,
    /// Whether the last period is known to have no rows.
    pub(crate) last_was_empty: bool,
}

impl Neighbours {
    pub(crate) fn new(period: &Period, frozen: &[Period], last_was_empty: bool) -> Self {
        let is_before = |other: &&Period| period.is_after(other) == Some(true);
        let (before, after) = (
            latest(frozen.iter().filter(is_before)).cloned(),
            latest(frozen.iter().filter(|other| !is_before(other))).cloned(),
        );
        Self { first: frozen.first().cloned(), before, after, last_was_empty }
    }

    /// A sign that the name of `period` is mistyped.
    pub(crate) fn problem(&self, period: &Period) -> Option<String> {
        if let Some(first) = &self.first
            && period.form() != first.form()
        {
            return Some(format!("{period} differs in form from the first period, {first}"));
        }
        let after = self.after.as_ref()?;
        Some(format!("{period} comes before {after}, which is frozen earlier"))
    }
}

/// The latest of these periods; of names that are not comparable, the first.
pub(crate) fn latest<'p>(periods: impl IntoIterator<Item = &'p Period>) -> Option<&'p Period> {
    periods
        .into_iter()
        .reduce(|latest, other| if other.is_after(latest) == Some(true) { other } else { latest })
}

impl Release {
    /// Signs that names of `periods`, which are to be frozen in this order, are mistyped, as sentences; empty
    /// if there are none. A part of [`Freezing::problems`](crate::Freezing::problems) that needs no rows.
    ///
    /// ```
    /// use antinoise_release::{Period, Release, Settings, Unit};
    /// let folder = tempfile::tempdir()?;
    /// let release = Release::create(folder.path(), &Settings::new(vec!["a".into()], 9, Unit::User))?;
    /// let [first, second]: [Period; 2] = ["2026-03-01".parse()?, "2026-03-02".parse()?];
    /// assert!(release.problems_of_names(&[first.clone(), second.clone()])?.is_empty());
    /// assert!(release.problems_of_names(&[second, first.clone()])?[0].contains("before 2026-03-02"));
    /// assert!(release.problems_of_names(&[first.clone(), first]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If one of them shares rows with another or with a frozen period, or the plan has fewer periods
    /// left.
    pub fn problems_of_names(&self, periods: &[Period]) -> Result<Vec<String>> {
        let (mut taken, mut problems) = (self.state.periods()?, Vec::new());
        let frozen = taken.len();
        for period in periods {
            self.refuse_taken(period, &taken, frozen)?;
            problems.extend(Neighbours::new(period, &taken, false).problem(period));
            taken.push(period.clone());
        }
        Ok(problems)
    }

    /// Refuses a period beyond the last of the plan, or one that shares rows with one of `taken`: the first
    /// `frozen` of these are frozen, the others come earlier in the same list.
    pub(crate) fn refuse_taken(&self, period: &Period, taken: &[Period], frozen: usize) -> Result<()> {
        let periods = self.settings.periods;
        if self.settings.segments.is_none() && taken.len() >= periods {
            let were =
                if frozen == taken.len() { "all are frozen" } else { "fewer are left than the list has" };
            let must_be = format!(
                "one of the {periods} periods of the plan, of which {were}: the privacy claim covers no others"
            );
            return Err(Error::invalid("period", period, must_be));
        }
        if let Some(at) = taken.iter().position(|other| period.overlaps(other)) {
            let (other, was) = (&taken[at], if at < frozen { "was frozen" } else { "is in the list too" });
            let must_be =
                format!("one whose rows are in no other period: {other} {was}, and a row is counted once");
            return Err(Error::invalid("period", period, must_be));
        }
        Ok(())
    }
}
