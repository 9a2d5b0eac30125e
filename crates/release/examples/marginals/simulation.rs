//! Releases of one stream in several ways, and their errors.

use std::collections::HashMap;

use antinoise_accounting::{Gdp, gaussian_noise_multiplier_upper};
use antinoise_release::{Freezing, Period, Published, Query, Release, Settings, Status, Unit};

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// How the tables are published.
#[derive(Debug, Clone, Copy)]
pub enum Way {
    /// One release, with a query for marginals.
    Marginals,
    /// A release for each table, with the budget split evenly.
    Apart,
    /// One release with a key for each cell of the full table, whose counts are summed up.
    Full,
}

const PERIODS: usize = 30;
const MAX_PERIODS: usize = 4;
const EPSILON: f64 = 1.0;
const DELTA: f64 = 1e-6;
/// Rows of a period in each simulated release; errors do not depend on them.
const ROWS: usize = 10;

/// A table: its columns.
type Table = Vec<usize>;

/// The tables of `ways` of the columns, smaller ones first, in the order in which marginals are published.
fn tables(columns: usize, ways: &[usize]) -> Vec<Table> {
    let mut tables: Vec<Table> = (0..1usize << columns)
        .map(|set| (0..columns).filter(|column| set >> column & 1 == 1).collect())
        .filter(|table: &Table| ways.contains(&table.len()))
        .collect();
    tables.sort_by(|x, y| x.len().cmp(&y.len()).then(x.cmp(y)));
    tables
}

fn name(column: usize, class: usize) -> String {
    format!("c{column}={class}")
}

/// The name of the cell of a table that holds a row of these classes.
fn cell(table: &Table, classes: &[usize]) -> String {
    let named: Vec<String> = table.iter().map(|column| name(*column, classes[*column])).collect();
    if named.is_empty() { "all".into() } else { named.join(";") }
}

/// All cells of the full table, as classes.
fn joint(sizes: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for size in sizes {
        let with = |classes: &Vec<usize>, class: usize| [&classes[..], &[class]].concat();
        all = all.iter().flat_map(|classes| (0..*size).map(move |class| with(classes, class))).collect();
    }
    all
}

fn cells(table: &Table, sizes: &[usize]) -> Vec<String> {
    let mut names: Vec<String> = joint(sizes).iter().map(|classes| cell(table, classes)).collect();
    names.sort();
    names.dedup();
    names
}

fn marginals(sizes: &[usize], ways: &[usize]) -> Result<Query> {
    let column = |(column, size): (usize, &usize)| {
        let classes: Vec<String> = (0..*size).map(|class| class.to_string()).collect();
        format!("c{column}={}", classes.join("|"))
    };
    let columns: Vec<String> = sizes.iter().enumerate().map(column).collect();
    let ways: Vec<String> = ways.iter().map(usize::to_string).collect();
    Ok(format!("marginals:{};ways={}", columns.join(";"), ways.join(",")).parse()?)
}

fn settings(keys: Vec<String>, query: Query, epsilon: f64) -> Settings {
    let queries = vec![(query, 1.0)];
    let settings = Settings::new(keys, PERIODS, Unit::User);
    Settings { max_periods: MAX_PERIODS, epsilon, delta: DELTA, queries, ..settings }
}

/// The epsilon of each of `parts` Gaussian mechanisms that together have [`EPSILON`] at [`DELTA`].
fn part_of_epsilon(parts: usize) -> Result<f64> {
    let noise = gaussian_noise_multiplier_upper(EPSILON, DELTA)? * (parts as f64).sqrt();
    Ok(Gdp::from_noise_multiplier_upper(noise)?.epsilon_lower(DELTA)?)
}

/// The tables with the root mean square over all periods of the standard deviation that a release states.
pub fn deviations(sizes: &[usize], ways: &[usize]) -> Result<Vec<(String, f64)>> {
    let (folder, query) = (tempfile::tempdir()?, marginals(sizes, ways)?);
    drop(Release::create(folder.path(), &settings(vec!["all".into()], query.clone(), EPSILON))?);
    let status = Status::of(folder.path())?;
    let squares: f64 = status.errors(&query)?.iter().map(|error| error * error).sum();
    let largest = (squares / PERIODS as f64).sqrt();
    let tables = status.report()?.queries.remove(0).tables;
    Ok(tables.into_iter().map(|table| (table.columns, table.relative_deviation * largest)).collect())
}

/// The root mean square error of each table, over cells, periods and `count` simulated releases, which are
/// keys of one release with independent noise.
pub fn errors(way: Way, sizes: &[usize], ways: &[usize], count: usize) -> Result<Vec<f64>> {
    let tables = tables(sizes.len(), ways);
    let mut squares = vec![0.0; tables.len()];
    let whole: Table = (0..sizes.len()).collect();
    let itself = |table: &Table| cells(table, sizes).into_iter().map(|cell| vec![cell]).collect();
    let keys = |table: &Table| {
        let cells = cells(table, sizes);
        let of_release = |release: usize| cells.iter().map(move |cell| format!("{release}/{cell}"));
        (0..count).flat_map(of_release).collect::<Vec<_>>()
    };
    let stream = |keyed| Stream { sizes, count, keyed };
    match way {
        Way::Marginals => {
            let keys = (0..count).map(|release| release.to_string()).collect();
            let settings = settings(keys, marginals(sizes, ways)?, EPSILON);
            stream(None).publish(&settings, &tables, &itself, &mut squares)?;
        }
        Way::Full => {
            let (settings, read) =
                (settings(keys(&whole), Query::Counts, EPSILON), |table: &Table| of_full(table, sizes));
            stream(Some(&whole)).publish(&settings, &tables, &read, &mut squares)?;
        }
        Way::Apart => {
            for (at, table) in tables.iter().enumerate() {
                let settings = settings(keys(table), Query::Counts, part_of_epsilon(tables.len())?);
                let one = std::slice::from_ref(table);
                stream(Some(table)).publish(&settings, one, &itself, &mut squares[at..=at])?;
            }
        }
    }
    let of_table = |(squares, table): (f64, &Table)| {
        (squares / (count * PERIODS * cells(table, sizes).len()) as f64).sqrt()
    };
    Ok(squares.into_iter().zip(&tables).map(of_table).collect())
}

/// For each cell of a table, the cells of the full table that it sums.
fn of_full(table: &Table, sizes: &[usize]) -> Vec<Vec<String>> {
    let (whole, all): (Table, _) = ((0..sizes.len()).collect(), joint(sizes));
    let of_cell = |name: &String| {
        let inside = all.iter().filter(|classes| cell(table, classes) == *name);
        inside.map(|classes| cell(&whole, classes)).collect()
    };
    cells(table, sizes).iter().map(of_cell).collect()
}

/// A stream of rows that is published.
struct Stream<'s> {
    sizes: &'s [usize],
    /// Number of simulated releases.
    count: usize,
    /// The table whose cells are the keys; without it, the columns are read as categories.
    keyed: Option<&'s Table>,
}

impl Stream<'_> {
    /// Publishes the stream and adds the squared errors of `tables`. `read`: for each cell of a table, in the
    /// order of [`cells`], the published figures that it sums.
    fn publish(
        &self,
        settings: &Settings,
        tables: &[Table],
        read: &dyn Fn(&Table) -> Vec<Vec<String>>,
        squares: &mut [f64],
    ) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let mut release = Release::create(folder.path(), settings)?;
        let mut truth = HashMap::<String, f64>::new();
        let reads: Vec<_> = tables.iter().map(|table| (cells(table, self.sizes), read(table))).collect();
        for period in 0..PERIODS {
            let mut freezing = release.freeze(&Period::Number(period as i64))?;
            for (of, row) in (0..self.count).flat_map(|of| (0..ROWS).map(move |row| (of, row))) {
                let classes: Vec<usize> = self
                    .sizes
                    .iter()
                    .zip(1..)
                    .map(|(size, at)| (row * at * at + row / 7 + of) % size)
                    .collect();
                self.add(&mut freezing, &format!("user {period} {of} {row}"), of, &classes)?;
                for table in tables {
                    *truth.entry(format!("{of}/{}", cell(table, &classes))).or_default() += 1.0;
                }
            }
            freezing.commit()?;
            let named = |row: Published| match self.keyed {
                Some(_) => (row.key, row.value.value()),
                None => (format!("{}/{}", row.key, row.bucket), row.value.value()),
            };
            let figures: HashMap<String, f64> = release.publish()?.into_iter().map(named).collect();
            for ((names, reads), squares) in reads.iter().zip(&mut *squares) {
                for (name, summed) in names.iter().zip(reads) {
                    for of in 0..self.count {
                        let estimate: f64 = summed.iter().map(|name| figures[&format!("{of}/{name}")]).sum();
                        let truth = truth.get(&format!("{of}/{name}")).copied().unwrap_or(0.0);
                        *squares += (estimate - truth).powi(2);
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds a row of one simulated release. A user comes in one period: the bounds leave out no row.
    fn add(&self, freezing: &mut Freezing<'_>, user: &str, of: usize, classes: &[usize]) -> Result<()> {
        let texts: Vec<String> = classes.iter().map(usize::to_string).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        match self.keyed {
            Some(table) => freezing.add(user, &format!("{of}/{}", cell(table, classes)), None)?,
            None => freezing.add_with(user, &of.to_string(), None, &texts)?,
        };
        Ok(())
    }
}
