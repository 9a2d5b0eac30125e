//! `antinoise release freeze`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use antinoise_input::InvalidParameter;
#[cfg(feature = "parquet")]
use antinoise_release::ColumnFormat;
use antinoise_release::{Check, Columns, Format, Found, Freezing, Handling, Late, Period, Release};
use clap::{Args, ValueEnum};

use super::frozen::{Frozen, FrozenPeriods};
use crate::failure::{Failure, Result};
use crate::progress::Progress;

/// Count the events of a period, within the bounds of the release; a frozen period cannot be changed.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  printf 'time,user,shop\\n2026-03-01,ada,north\\n' > day.csv
  antinoise release init shops --keys north,south --periods 365 \\
      --epsilon 1 --delta 1e-6 --unit user --max-periods 60
  antinoise release freeze shops 2026-03-01 --events day.csv \\
      --time time --user user --key shop
  echo '{\"time\":\"2026-03-02\",\"user\":\"ada\",\"shop\":\"south\"}' | \\
      antinoise release freeze shops 2026-03-02 --events - \\
      --format jsonl --time time --user user --key shop
  printf '%s\\n' key,count north,120 south,80 \\
      users-over-rows,3 users-at-bound,0 | \\
      antinoise release freeze shops 2026-03-03 --counts -

  printf 'time,user,shop\\n2026-03-04,ada,north\\n' > next.csv
  antinoise release freeze shops 2026-03-04 --events next.csv \\
      --time time --user user --key shop --check

PERIOD is text with which the times of the period begin (2026-03-01, or 2026-03 for
a month), or a whole number t, which holds times from t to below t + 1; where periods
are numbers and times are dates, all rows of the file are of the period. Each period
is frozen once. Refused, unless --yes is given: a period that comes before a frozen one,
differs in form from the first one or from times in the file, counts no row, or
loses rows of skipped periods; a first period that loses rows before it, or is a number
and counts rows of several dates; counts after a period that was skipped. The names of a
list are checked before its first period is frozen.

A user is a name, or a whole number however it is written: 7, 7.0 and 7e0 are one user;
fractions, and numbers with a point or an exponent from 2^53 on, are refused. Names that
differ only in case, spaces or Unicode form are users of their own, and warned of.

What is printed is exact and not private: it is only for the operator of the release."
)]
pub struct Arguments {
    /// Folder of the release.
    dir: PathBuf,
    /// Period to freeze. Several are frozen in their order, each with one pass over the events.
    #[arg(value_name = "PERIOD", required = true)]
    periods: Vec<Period>,
    /// File of events: CSV with a header, one JSON object per line (.jsonl, .ndjson), Parquet (.parquet) or
    /// Arrow (.arrow, .arrows, .feather). - is standard input, for CSV and JSON lines only.
    #[arg(long, value_name = "FILE", required_unless_present = "counts")]
    events: Option<PathBuf>,
    /// File of counts that were computed elsewhere, in place of events: CSV with the columns key and count; -
    /// for standard input. You vouch that they count no user more often than the release allows, and the
    /// privacy statement says so.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["events", "format", "time", "user", "key", "value", "late", "unknown"])]
    counts: Option<PathBuf>,
    /// Format of the events [default: by the file's name, else csv].
    #[arg(long, value_enum)]
    format: Option<FormatName>,
    /// Column of each row's time.
    #[arg(long, value_name = "COL", required_unless_present = "counts")]
    time: Option<String>,
    /// Column of each row's user; required if users are the privacy unit.
    #[arg(long, value_name = "COL")]
    user: Option<String>,
    /// Column of each row's key; may be left out if the release has marginals and one key.
    #[arg(long, value_name = "COL")]
    key: Option<String>,
    /// Column of each row's value; required by all queries except counts, window, decay and marginals, which
    /// name their columns.
    #[arg(long, value_name = "COL")]
    value: Option<String>,
    /// Treatment of rows whose time is before the period.
    #[arg(long, value_enum, default_value = "leave")]
    late: LateName,
    /// Show what would be counted, left out and lost, and what looks wrong; change nothing.
    #[arg(long, conflicts_with = "yes")]
    check: bool,
    /// Freeze although the period looks mistyped, or its file looks like another period's: see below.
    #[arg(long)]
    yes: bool,
    /// Treatment of rows whose key is not a key of the release, or that are in no class of a column of
    /// marginals.
    #[arg(long, value_enum, default_value = "refuse")]
    unknown: UnknownName,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum FormatName {
    /// Comma-separated, with a header.
    Csv,
    /// One JSON object per line.
    Jsonl,
    /// Parquet (if built with the feature parquet).
    Parquet,
    /// Arrow IPC, as a file or a stream, without compression (if built with the feature parquet).
    Arrow,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LateName {
    /// Leave them out, and report their number.
    Leave,
    /// Count them in this period. Submit each row once: a row that is submitted again for another period is
    /// counted again.
    Next,
    /// Refuse the file.
    Refuse,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum UnknownName {
    /// Refuse the file.
    Refuse,
    /// Leave them out, and report their number.
    Leave,
}

/// Number of rows between two updates of the progress.
const ROWS: u64 = 1 << 16;

/// Freezes the periods, or says what freezing would do. Periods that were frozen before an error are part of
/// the output.
pub fn run(arguments: &Arguments) -> Result<FrozenPeriods> {
    let mut release = Release::open(&arguments.dir)?;
    if arguments.check {
        return Ok(FrozenPeriods::checked(arguments.check(&mut release)?));
    }
    // A list is checked as a whole before its first period is frozen for good.
    let refusal = match &arguments.periods[..] {
        [period] => format!("{period} was not frozen, and nothing was changed"),
        _ => "no period was frozen, and nothing was changed".into(),
    };
    arguments.confirm(&refusal, &release.problems_of_names(&arguments.periods)?)?;
    match (&arguments.counts, &arguments.events) {
        (Some(counts), _) => Ok(FrozenPeriods::of(vec![arguments.freeze_counts(&mut release, counts)?])),
        (None, Some(events)) => arguments.freeze_events(&mut release, events),
        (None, None) => Err(InvalidParameter::new("events", "absent", "given, or counts").into()),
    }
}

impl Arguments {
    /// The only period, where `option` takes one.
    fn one_period(&self, option: &str) -> Result<&Period> {
        match &self.periods[..] {
            [period] => Ok(period),
            several => {
                let must_be = format!("one with --{option}");
                Err(InvalidParameter::new("PERIOD", several.len(), must_be).into())
            }
        }
    }

    fn freeze_counts(&self, release: &mut Release, counts: &Path) -> Result<Frozen> {
        let period = self.one_period("counts")?;
        let counts = release.read_counts(self.input("counts", counts)?)?;
        let freezing = release.freeze_counts_in_any_order(period, &counts)?;
        let problems = freezing.problems(&Found::default());
        self.confirm(&format!("{period} was not frozen, and nothing was changed"), &problems)?;
        let skipped = freezing.skipped();
        freezing.commit()?;
        Ok(Frozen { period: period.clone(), found: None, skipped, warning: None })
    }

    fn freeze_events(&self, release: &mut Release, events: &Path) -> Result<FrozenPeriods> {
        if self.periods.len() > 1 && matches!(self.late, LateName::Next) {
            let must_be = "leave or refuse where there are several periods: each reads the file, and would count its late rows again";
            return Err(InvalidParameter::new("late", "next", must_be).into());
        }
        let columns = self.columns(release)?;
        let (progress, mut rows) = (Progress::endless("counting events"), 0u64);
        let mut each = || {
            rows += 1;
            if rows.is_multiple_of(ROWS) {
                progress.advance(ROWS);
            }
        };
        let mut frozen = Vec::new();
        for period in &self.periods {
            let nothing = if frozen.is_empty() { ", and nothing was changed" } else { "" };
            let refusal = format!("{period} was not frozen{nothing}");
            match self.freeze_period(release, period, &refusal, events, &columns, &mut each) {
                Ok(period) => frozen.push(period),
                Err(failure) if frozen.is_empty() => return Err(failure),
                Err(failure) => return Ok(FrozenPeriods::until(frozen, failure)),
            }
        }
        Ok(FrozenPeriods::of(frozen))
    }

    /// Freezes one period; `refusal` begins the message about its problems.
    fn freeze_period(
        &self,
        release: &mut Release,
        period: &Period,
        refusal: &str,
        events: &Path,
        columns: &Columns,
        each: &mut dyn FnMut(),
    ) -> Result<Frozen> {
        let mut freezing = release.freeze_in_any_order(period)?;
        let found = self.read(&mut freezing, events, columns, each)?;
        self.confirm(refusal, &freezing.problems(&found))?;
        let (skipped, warning) = (freezing.skipped(), freezing.similar_users()?.warning());
        if let Some(warning) = &warning {
            eprintln!("warning: {warning}");
        }
        freezing.commit()?;
        Ok(Frozen { period: period.clone(), found: Some(found), skipped, warning })
    }

    /// Refuses periods with `problems`, unless the operator confirmed them with `--yes`.
    fn confirm(&self, refusal: &str, problems: &[String]) -> Result<()> {
        if self.yes || problems.is_empty() {
            return Ok(());
        }
        Err(Failure::input(format!(
            "{refusal}: {}. Correct the period or the file, freeze the periods in between first, or give --yes if this is intended; \
             --check shows what a file would do",
            problems.join("; ")
        )))
    }

    /// The effect that freezing would have.
    fn check(&self, release: &mut Release) -> Result<Check> {
        let period = self.one_period("check")?;
        if let Some(counts) = &self.counts {
            let counts = release.read_counts(self.input("counts", counts)?)?;
            let (mut found, keys) = (Found::default(), release.settings().keys.len());
            let of_keys = counts[..keys].iter().map(|count| count.unsigned_abs());
            found.tally.counted = of_keys.fold(0, u64::saturating_add);
            return Ok(release.freeze_counts_in_any_order(period, &counts)?.check(&found));
        }
        let Some(events) = &self.events else {
            return Err(InvalidParameter::new("events", "absent", "given, or counts").into());
        };
        let columns = self.columns(release)?;
        let mut freezing = release.freeze_in_any_order(period)?;
        let found = self.read(&mut freezing, events, &columns, &mut || ())?;
        Ok(freezing.check(&found))
    }

    fn read(
        &self,
        freezing: &mut Freezing<'_>,
        events: &Path,
        columns: &Columns,
        each: &mut dyn FnMut(),
    ) -> Result<Found> {
        let format = self.format(events);
        let format = match format {
            FormatName::Csv => Format::Csv,
            FormatName::Jsonl => Format::JsonLines,
            FormatName::Parquet | FormatName::Arrow => {
                let is_arrow = format == FormatName::Arrow;
                return read_columns(freezing, events, is_arrow, columns, self.handling(), each);
            }
        };
        Ok(freezing.read(self.input("events", events)?, format, columns, self.handling(), each)?)
    }

    fn input(&self, name: &str, path: &Path) -> Result<Box<dyn Read>> {
        if path.as_os_str() != "-" {
            let opened = File::open(path).map_err(|error| {
                let path = path.display();
                Failure::input(format!("{name} is {path} but must be a file that can be read: {error}"))
            })?;
            return Ok(Box::new(opened));
        }
        if self.periods.len() > 1 {
            let must_be = "a file, which is read once for each of the periods";
            return Err(InvalidParameter::new(name, "standard input", must_be).into());
        }
        Ok(Box::new(std::io::stdin().lock()))
    }

    fn columns(&self, release: &Release) -> Result<Columns> {
        let columns = Columns {
            time: self.time.clone().unwrap_or_default(),
            user: self.user.clone(),
            key: self.key.clone(),
            value: self.value.clone(),
            ..Columns::default()
        };
        Ok(columns.of(release.settings())?)
    }

    fn format(&self, events: &Path) -> FormatName {
        let by_name = || match events.extension().and_then(OsStr::to_str) {
            Some("jsonl" | "ndjson") => FormatName::Jsonl,
            Some("parquet") => FormatName::Parquet,
            Some("arrow" | "arrows" | "feather") => FormatName::Arrow,
            _ => FormatName::Csv,
        };
        self.format.unwrap_or_else(by_name)
    }

    fn handling(&self) -> Handling {
        Handling {
            late: match self.late {
                LateName::Leave => Late::Leave,
                LateName::Next => Late::Include,
                LateName::Refuse => Late::Refuse,
            },
            leave_unknown_keys: self.unknown == UnknownName::Leave,
        }
    }
}

/// Adds the rows of a Parquet or Arrow file.
#[cfg(feature = "parquet")]
fn read_columns(
    freezing: &mut Freezing<'_>,
    events: &Path,
    is_arrow: bool,
    columns: &Columns,
    handling: Handling,
    each: &mut dyn FnMut(),
) -> Result<Found> {
    if events.as_os_str() == "-" {
        let must_be = "a file if it is Parquet or Arrow, which are not read from start to end";
        return Err(InvalidParameter::new("events", "standard input", must_be).into());
    }
    let format = if is_arrow { ColumnFormat::Arrow } else { ColumnFormat::Parquet };
    Ok(freezing.read_columns(events, format, columns, handling, each)?)
}

#[cfg(not(feature = "parquet"))]
fn read_columns(
    _: &mut Freezing<'_>,
    events: &Path,
    _: bool,
    _: &Columns,
    _: Handling,
    _: &mut dyn FnMut(),
) -> Result<Found> {
    let must_be = "CSV or JSON lines: this program was built without the feature parquet";
    Err(InvalidParameter::new("events", events.display(), must_be).into())
}
