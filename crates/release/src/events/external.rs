//! Counts of a period that were bounded and computed elsewhere, for example in a warehouse.

use std::io::Read;

use crate::design::layout::Part;
use crate::design::plan::Design;
use crate::events::freeze::Freezing;
use crate::events::text::{csv_column, csv_refused};
use crate::queries::measure::Measure;
use crate::{Error, Period, Release, Result};

impl Release {
    /// Freezes counts that were bounded and computed elsewhere, one for each of
    /// [`Settings::count_names`](crate::Settings::count_names); the release must have only counts, windows,
    /// decays and queries of users. The caller must ensure the bounds: no unit changes the keys' counts of a
    /// period by more than `max_rows` in l2 norm, or contributes to more than `max_periods` periods; a user
    /// at the bound of periods is counted once, in the last of them. From then on the privacy statement lists
    /// this as an assumption.
    ///
    /// ```
    /// use antinoise_release::{Release, Settings, Unit};
    /// let folder = tempfile::tempdir()?;
    /// let settings = Settings::new(vec!["a".into(), "b".into()], 2, Unit::User);
    /// let mut release = Release::create(folder.path(), &settings)?;
    /// release.freeze_counts(&"1".parse()?, &[12_000, 0])?;
    /// assert!((release.publish()?[0].value.value() - 12_000.0).abs() < 500.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Release::freeze`]; if there are queries about values, or the numbers of counts and keys differ.
    pub fn freeze_counts(&mut self, period: &Period, counts: &[i64]) -> Result<()> {
        let given = self.scaled(counts)?;
        self.freeze(period)?.give(given).commit().map(|_| ())
    }

    /// As [`Release::freeze_counts`], for any period that is not frozen yet, up to
    /// [`commit`](Freezing::commit).
    ///
    /// # Errors
    /// As [`Release::freeze_in_any_order`] and [`Release::freeze_counts`].
    pub fn freeze_counts_in_any_order(&mut self, period: &Period, counts: &[i64]) -> Result<Freezing<'_>> {
        let given = self.scaled(counts)?;
        Ok(self.freeze_in_any_order(period)?.give(given))
    }

    /// The counts in points.
    fn scaled(&self, counts: &[i64]) -> Result<Vec<i64>> {
        let Design { layout, spacing, .. } = self.chain.first();
        let spacing = *spacing;
        let is_count = |part: &&Part| part.measure == Measure::Count;
        let mut others = layout.parts.iter().filter(|part| !is_count(part) && !part.measure.is_of_users());
        let (Some(part), None) = (layout.parts.iter().find(is_count), others.next()) else {
            let must_be =
                "only counts, windows and decays: other queries cannot be answered from given counts";
            let queries = self.settings.queries.iter().map(|(query, _)| query.to_string());
            let queries = queries.collect::<Vec<_>>().join(" ");
            return Err(Error::invalid("queries of the release", queries, must_be));
        };
        let wanted = self.settings.count_names().len();
        if counts.len() != wanted {
            let (got, must_be) = (format!("{} counts", counts.len()), format!("{wanted}: one for each name"));
            return Err(Error::invalid("counts", got, must_be));
        }
        let of_users = layout.parts.iter().filter(|part| part.measure.is_of_users());
        let cells = (0..layout.keys).map(|key| (part, key)).chain(of_users.map(|part| (part, 0)));
        let mut given = vec![0; layout.cells()];
        for (count, (part, key)) in counts.iter().zip(cells) {
            let points = count.checked_mul(part.points(spacing));
            given[part.cell(key, 0)] =
                points.ok_or_else(|| Error::invalid("counts", "too large", "below 2^63 points"))?;
        }
        Ok(given)
    }

    /// Reads the counts in a CSV file with the columns `key` and `count`; returns them in the order of
    /// [`Settings::count_names`](crate::Settings::count_names), 0 for keys not in the file. If the
    /// release has queries of users, the file must have a row for each, with its name in the column `key`.
    ///
    /// ```
    /// use antinoise_release::{Release, Settings, Unit};
    /// let folder = tempfile::tempdir()?;
    /// let settings = Settings::new(vec!["a".into(), "b".into()], 2, Unit::User);
    /// let release = Release::create(folder.path(), &settings)?;
    /// assert_eq!(release.read_counts("count,key\n12,b\n".as_bytes())?, [0, 12]);
    /// assert!(release.read_counts("key,count\nc,1\n".as_bytes()).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If a column or a query of users is absent, a key is unknown or occurs twice, or a count is not a
    /// non-negative integer.
    pub fn read_counts(&self, input: impl Read) -> Result<Vec<i64>> {
        let mut reader = csv::Reader::from_reader(input);
        let header = reader.headers().map_err(csv_refused)?.clone();
        let (key_column, count_column) = (csv_column(&header, "key")?, csv_column(&header, "count")?);
        let names = self.settings.count_names();
        let mut counts: Vec<Option<i64>> = vec![None; names.len()];
        let places: std::collections::HashMap<&str, usize> =
            names.iter().map(String::as_str).zip(0..).collect();
        for row in reader.into_records() {
            let row = row.map_err(csv_refused)?;
            let line = row.position().map_or(0, csv::Position::line);
            let (key, text) = (row.get(key_column).unwrap_or(""), row.get(count_column).unwrap_or("").trim());
            let place = places.get(key).filter(|place| counts[**place].is_none()).ok_or_else(|| {
                Error::invalid(
                    format!("key (line {line})"),
                    format!("{key:?}"),
                    "one of the release's keys, once",
                )
            })?;
            let count = text.parse().ok().filter(|count| *count >= 0).ok_or_else(|| {
                Error::invalid(
                    format!("count (line {line})"),
                    format!("{text:?}"),
                    "a whole number from 0 on",
                )
            })?;
            counts[*place] = Some(count);
        }
        let of_users = self.settings.keys.len()..names.len();
        if let Some(absent) = of_users.into_iter().find(|place| counts[*place].is_none()) {
            let must_be = "a row of the counts, like a key: this release also counts users at their bounds. To \
                           make a release without these counts: antinoise release init --no-left-out";
            return Err(Error::invalid(&names[absent], "absent", must_be));
        }
        Ok(counts.into_iter().map(Option::unwrap_or_default).collect())
    }
}
