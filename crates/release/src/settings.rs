//! The settings of a release.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use antinoise_input::{InvalidParameter, at_least, between, in_open_unit, positive};
use antinoise_mechanism::Workload;
use serde::{Deserialize, Serialize};

use crate::segments::{LONGEST, Segments};
use crate::words::quantity;
use crate::{Query, Result};

/// The unit of privacy: whose contribution the statement protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A user: all rows of a user in all periods, of which a bounded number of rows and periods is counted.
    User,
    /// An event: one row. A user with many rows has less protection.
    Event,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::User { "user" } else { "event" })
    }
}

impl FromStr for Unit {
    type Err = InvalidParameter;

    fn from_str(text: &str) -> std::result::Result<Self, InvalidParameter> {
        match text {
            "user" => Ok(Self::User),
            "event" => Ok(Self::Event),
            _ => Err(InvalidParameter::new("unit", format!("{text:?}"), "user or event")),
        }
    }
}

/// Which rows to keep when a user exceeds `max_rows` in a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// The first rows, in the order of the file.
    #[default]
    First,
    /// A uniform sample, drawn by a key of the release: the same rows in the same order give the same sample.
    Sample,
}

impl Keep {
    fn is_default(&self) -> bool {
        *self == Self::First
    }
}

impl FromStr for Keep {
    type Err = InvalidParameter;

    fn from_str(text: &str) -> std::result::Result<Self, InvalidParameter> {
        match text {
            "first" => Ok(Self::First),
            "sample" => Ok(Self::Sample),
            _ => Err(InvalidParameter::new("keep", format!("{text:?}"), "first or sample")),
        }
    }
}

/// The settings of a release; all of them are public.
///
/// ```
/// use antinoise_release::{Settings, Unit};
/// let keys = ["north", "south"].map(String::from).to_vec();
/// let settings = Settings { max_periods: 7, ..Settings::new(keys, 30, Unit::User) };
/// assert_eq!((settings.epsilon, settings.max_rows), (1.0, 1));
/// settings.check()?;
/// # Ok::<(), antinoise_release::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Maximum number of periods that are ever published; for an open-ended release, the length of the first
    /// segment.
    pub periods: usize,
    /// The segments of an open-ended release. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments: Option<Segments>,
    /// The epsilon of the whole release. Default: 1.
    pub epsilon: f64,
    /// The delta of the whole release. Default: 1e-6.
    pub delta: f64,
    /// The unit of privacy.
    pub unit: Unit,
    /// Maximum number of periods in which a user is counted; 1 for events. Default: 1.
    pub max_periods: usize,
    /// Maximum number of rows of a user that are counted in a period; 1 for events. Default: 1.
    pub max_rows: usize,
    /// Which rows to keep when a user exceeds `max_rows`. Default: the first.
    #[serde(default, skip_serializing_if = "Keep::is_default")]
    pub keep: Keep,
    /// The queries, each with a weight: of two queries with different measures, the one with twice the weight
    /// has half the noise, relative to the maximum contribution of a row. Default: counts.
    pub queries: Vec<(Query, f64)>,
    /// Raises negative values to 0, for queries that cannot be negative. Default: false.
    pub non_negative: bool,
    /// Replaces values by the running maximum, for queries that cannot decrease. Default: false.
    pub monotone: bool,
    /// The keys: categories known in advance.
    pub keys: Vec<String>,
}

/// The weight of the queries that [`Settings::with_left_out`] adds, relative to the largest weight.
const WEIGHT_OF_USERS: f64 = 0.25;
/// Maximum length of a key in bytes: keys are part of the published table.
const LONGEST_KEY: usize = 256;
/// Maximum number of cells of all keys and queries together.
pub(crate) const MOST_CELLS: usize = 1 << 24;
/// Maximum number of a unit's rows: their sums, in whole points of a grid, are then exact in 64 bits and in
/// double precision.
const MOST_ROWS: usize = 1 << 24;

impl Settings {
    /// Settings with the documented default for every other field.
    pub fn new(keys: Vec<String>, periods: usize, unit: Unit) -> Self {
        Self {
            periods,
            segments: None,
            epsilon: 1.0,
            delta: 1e-6,
            unit,
            max_periods: 1,
            max_rows: 1,
            keep: Keep::First,
            queries: vec![(Query::Counts, 1.0)],
            non_negative: false,
            monotone: false,
            keys,
        }
    }

    /// These settings with queries that publish how much the bounds leave out, if the unit is a user:
    /// [`Query::UsersOverRows`] and, unless a user may be counted in every period, [`Query::UsersAtBound`].
    /// Each has a quarter of the largest weight: the noise of the other figures grows by 6%, for a single
    /// measure.
    ///
    /// ```
    /// use antinoise_release::{Query, Settings, Unit};
    /// let settings = Settings::new(vec!["a".into()], 30, Unit::User).with_left_out();
    /// let queries: Vec<String> = settings.queries.iter().map(|(query, _)| query.to_string()).collect();
    /// assert_eq!(queries, ["counts", "users-over-rows", "users-at-bound"]);
    /// let events = Settings::new(vec!["a".into()], 30, Unit::Event).with_left_out();
    /// assert_eq!(events.queries.len(), 1);
    /// ```
    #[must_use]
    pub fn with_left_out(mut self) -> Self {
        let weight = WEIGHT_OF_USERS * self.queries.iter().map(|(_, weight)| *weight).fold(0.0, f64::max);
        let reaches_bound = self.segments.is_some() || self.max_periods < self.periods;
        for (query, is_wanted) in [(Query::UsersOverRows, true), (Query::UsersAtBound, reaches_bound)] {
            let is_given = self.queries.iter().any(|(other, _)| *other == query);
            if self.unit == Unit::User && is_wanted && !is_given {
                self.queries.push((query, weight));
            }
        }
        self
    }

    /// Names of the counts that [`Release::freeze_counts`](crate::Release::freeze_counts) takes: the keys,
    /// then the queries of users.
    ///
    /// ```
    /// use antinoise_release::{Settings, Unit};
    /// let settings = Settings::new(vec!["a".into()], 30, Unit::User).with_left_out();
    /// assert_eq!(settings.count_names(), ["a", "users-over-rows", "users-at-bound"]);
    /// ```
    pub fn count_names(&self) -> Vec<String> {
        let of_users = self.queries.iter().filter(|(query, _)| query.is_of_users());
        self.keys.iter().cloned().chain(of_users.map(|(query, _)| query.to_string())).collect()
    }

    /// The columns whose cells the marginals read, each once, in the order of the queries.
    ///
    /// ```
    /// use antinoise_release::{Settings, Unit};
    /// let queries = vec![("marginals:city=a|b;age@18,65;ways=1,2".parse()?, 1.0)];
    /// let settings = Settings { queries, ..Settings::new(vec!["all".into()], 30, Unit::User) };
    /// assert_eq!(settings.categories(), ["city", "age"]);
    /// # Ok::<(), antinoise_input::InvalidParameter>(())
    /// ```
    pub fn categories(&self) -> Vec<&str> {
        let mut columns = Vec::new();
        for attribute in self.queries.iter().flat_map(|(query, _)| query.attributes()) {
            if !columns.contains(&attribute.column.as_str()) {
                columns.push(&attribute.column);
            }
        }
        columns
    }

    /// Whether an event must have a value.
    pub fn needs_value(&self) -> bool {
        self.queries.iter().any(|(query, _)| query.needs_value())
    }

    /// These settings with segments, open-ended.
    ///
    /// ```
    /// use antinoise_release::{Growth, Segments, Release, Settings, Unit};
    /// let folder = tempfile::tempdir()?;
    /// let segments = Segments { first: 2, growth: Growth::Doubles };
    /// let settings = Settings::new(vec!["a".into()], 2, Unit::User).with_segments(segments);
    /// let mut release = Release::create(folder.path(), &settings)?;
    /// for day in 1..=9 {
    ///     release.freeze(&format!("{day}").parse()?)?.commit()?;
    /// }
    /// assert_eq!(release.publish()?.len(), 9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_segments(self, segments: Segments) -> Self {
        Self { periods: segments.first, segments: Some(segments), ..self }
    }

    /// These settings as an open-ended release, with the segments of smallest error for the queries.
    ///
    /// ```
    /// use antinoise_release::{Growth, Segments, Settings, Unit};
    /// let settings = Settings { max_periods: 70, ..Settings::new(vec!["a".into()], 70, Unit::User) };
    /// assert_eq!(settings.open_ended().segments, Some(Segments { first: 256, growth: Growth::Squares }));
    /// ```
    #[must_use]
    pub fn open_ended(self) -> Self {
        let mut of_rows = self.queries.iter().filter(|(query, _)| !query.is_of_users()).peekable();
        let is_limited =
            of_rows.peek().is_some() && of_rows.all(|(query, _)| query.workload() != Workload::Prefix);
        let segments = Segments::best(self.max_periods, is_limited);
        self.with_segments(segments)
    }

    /// The rows to which figures and their intervals refer, as a phrase: all rows, or those within the bounds
    /// of users.
    ///
    /// ```
    /// use antinoise_release::{Settings, Unit};
    /// let settings = Settings { max_periods: 7, ..Settings::new(vec!["a".into()], 30, Unit::User) };
    /// assert_eq!(settings.rows_counted(), "of the rows counted: at most 1 per user and period, 7 periods per user");
    /// ```
    pub fn rows_counted(&self) -> String {
        let rows = match self.unit {
            Unit::Event => "of all rows that had arrived when their period was frozen".into(),
            Unit::User if self.segments.is_none() && self.max_periods == self.periods => {
                format!("of the rows counted: at most {} per user and period", self.max_rows)
            }
            Unit::User => format!(
                "of the rows counted: at most {} per user and period, {} per user",
                self.max_rows,
                quantity(self.max_periods as u64, "period")
            ),
        };
        rows + self.outside()
    }

    /// The rows that are in no figure of a release with marginals, as the end of a phrase.
    fn outside(&self) -> &'static str {
        match self.categories().is_empty() {
            true => "",
            false => "; rows in no class of the marginals are in no figure",
        }
    }

    /// The rows or users to which the figures of `query` and their intervals refer, as a phrase.
    ///
    /// ```
    /// use antinoise_release::{Query, Settings, Unit};
    /// let settings = Settings { max_periods: 7, ..Settings::new(vec!["a".into()], 30, Unit::User) };
    /// assert!(settings.about(&Query::UsersAtBound).starts_with("of all users who were counted in 7 periods"));
    /// assert_eq!(settings.about(&Query::Counts), settings.rows_counted());
    /// ```
    pub fn about(&self, query: &Query) -> String {
        let users = match query {
            Query::UsersAtBound => format!(
                "of all users who were counted in {} since the first: their later rows are in no figure",
                quantity(self.max_periods as u64, "period")
            ),
            Query::UsersOverRows => format!(
                "of all users with more than {} in a period, once for each of their periods that are counted: the \
                 further rows are in no figure",
                quantity(self.max_rows as u64, "row")
            ),
            _ => return self.rows_counted(),
        };
        users + self.outside()
    }

    /// Whether the figures of `query` refer to all rows or users, whatever the data are, and not only to the
    /// rows within the bounds of users or in the classes of marginals.
    ///
    /// ```
    /// use antinoise_release::{Query, Settings, Unit};
    /// let settings = Settings { max_periods: 7, ..Settings::new(vec!["a".into()], 30, Unit::User) };
    /// assert!(settings.is_of_all(&Query::UsersAtBound) && !settings.is_of_all(&Query::Counts));
    /// let events = Settings::new(vec!["a".into()], 30, Unit::Event);
    /// assert!(events.is_of_all(&Query::Counts));
    /// let marginals = Settings { queries: vec![("marginals:city=a|b;ways=1".parse()?, 1.0)], ..events };
    /// assert!(!marginals.is_of_all(&marginals.queries[0].0));
    /// # Ok::<(), antinoise_input::InvalidParameter>(())
    /// ```
    pub fn is_of_all(&self, query: &Query) -> bool {
        let is_within_bounds = self.unit == Unit::Event
            || match query {
                Query::UsersOverRows => self.segments.is_none() && self.max_periods >= self.periods,
                _ => query.is_of_users(),
            };
        is_within_bounds && self.categories().is_empty()
    }

    /// Maximum number of points in a cell of one period, such that sums over all periods, with their noise,
    /// fit in 64 bits.
    pub(crate) fn most_points(&self) -> u64 {
        (1 << 62) / if self.segments.is_some() { LONGEST } else { self.periods } as u64
    }

    /// The settings of a single segment of `periods` periods.
    pub(crate) fn of_link(&self, periods: usize) -> Self {
        Self { periods, segments: None, ..self.clone() }
    }

    /// Refuses settings that cannot be used.
    ///
    /// # Errors
    /// Names the parameter.
    pub fn check(&self) -> Result<()> {
        at_least("periods", self.periods, 1)?;
        positive("epsilon", self.epsilon)?;
        in_open_unit("delta", self.delta)?;
        if let Some(segments) = self.segments {
            segments.check(self.max_periods)?;
            between("periods", self.periods, segments.first, segments.first, "those of the first segment")?;
        }
        between("max_periods", self.max_periods, 1, self.periods, "periods")?;
        between("max_rows", self.max_rows, 1, MOST_ROWS, "2^24")?;
        if self.unit == Unit::Event {
            if self.keep != Keep::First {
                let must_be = "first for --unit event: an event is one row";
                return Err(InvalidParameter::new("keep", "sample", must_be).into());
            }
            for (name, value) in [("max_periods", self.max_periods), ("max_rows", self.max_rows)] {
                if value != 1 {
                    let must_be = "1 for --unit event: an event is one row of one period";
                    return Err(InvalidParameter::new(name, value, must_be).into());
                }
            }
        }
        self.check_keys()?;
        self.check_queries()
    }

    fn check_keys(&self) -> Result<()> {
        at_least("number of keys", self.keys.len(), 1)?;
        let mut seen = HashSet::new();
        for key in &self.keys {
            if self.queries.iter().any(|(query, _)| query.is_of_users() && query.to_string() == *key) {
                let must_be = "different from the names of the queries, since users-at-bound and \
                               users-over-rows are counted like keys";
                return Err(InvalidParameter::new("keys", format!("with {key:?}"), must_be).into());
            }
            let visible = !key.is_empty() && key.len() <= LONGEST_KEY && !key.chars().any(char::is_control);
            if !visible || !seen.insert(key) {
                let must_be = "distinct names of 1 to 256 bytes without control characters";
                return Err(InvalidParameter::new("keys", format!("with {key:?}"), must_be).into());
            }
        }
        Ok(())
    }

    fn check_queries(&self) -> Result<()> {
        at_least("number of queries", self.queries.len(), 1)?;
        let mut cells = 0usize;
        for (i, (query, weight)) in self.queries.iter().enumerate() {
            query.check()?;
            positive("weight of a query", *weight)?;
            if self.queries[..i].iter().any(|(other, _)| other == query) {
                return Err(InvalidParameter::new("query", format!("{query} twice"), "given once").into());
            }
            // Figures, and cells of the vector, are distinguished by the columns.
            let name = query.published_name();
            if self.queries[..i].iter().any(|(other, _)| other.published_name() == name) {
                return Err(InvalidParameter::new("query", format!("{name} twice"), "given once").into());
            }
            if query.is_of_users() && self.unit == Unit::Event {
                let must_be = "left out for --unit event: events have no users, and no bound leaves out rows";
                return Err(InvalidParameter::new("query", query, must_be).into());
            }
            for measure in query.measures() {
                let of_keys = measure.keys(self.keys.len()).saturating_mul(measure.buckets());
                cells = cells.saturating_add(of_keys);
            }
        }
        between("cells of all keys and queries", cells, 1, MOST_CELLS, "2^24")?;
        Ok(())
    }
}
