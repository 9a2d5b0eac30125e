//! `antinoise release report`.

use std::fmt;
use std::path::PathBuf;

use antinoise_release::{FILES, Status, published, quantity};
use clap::Args;
use serde::Serialize;

use super::{figure, page};
use crate::destination::Overwriting;
use crate::failure::{Failure, Result};
use crate::plot;

/// Write an HTML page of everything published, with curves and their 95% intervals.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  printf 'time,user,shop\\n2026-03-01,ada,north\\n' > day.csv
  antinoise release init shops --keys north,south --periods 365 \\
      --epsilon 1 --delta 1e-6 --unit user --max-periods 60
  antinoise release freeze shops 2026-03-01 --events day.csv \\
      --time time --user user --key shop
  antinoise release publish shops
  antinoise release report shops --out shops.html --plot shops.svg")]
pub struct Arguments {
    /// Folder of the release.
    dir: PathBuf,
    /// HTML file to write; it needs no network.
    #[arg(long, value_name = "FILE.html")]
    out: PathBuf,
    /// Also write only the curves, as SVG.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    overwriting: Overwriting,
}

/// Output of `antinoise release report`.
#[derive(Debug, Serialize)]
pub struct WrittenPage {
    report: PathBuf,
    plot: Option<PathBuf>,
    published: usize,
}

/// Writes the page.
pub fn run(arguments: &Arguments) -> Result<WrittenPage> {
    let out = crate::destination::Destination::new("out", &arguments.out, arguments.overwriting)?;
    let plot = arguments.overwriting.figure("plot", &arguments.plot)?;
    for name in FILES {
        let file = arguments.dir.join(name);
        [&out].into_iter().chain(&plot).try_for_each(|to| to.refuse_to_be("the release's own", &file))?;
    }
    let (status, rows) = (Status::of(&arguments.dir)?, published(&arguments.dir)?);
    let name = arguments.dir.file_name().map_or("release".into(), |name| name.to_string_lossy());
    out.write(page::html(&name, &status, &rows)?.as_bytes())?;
    if let Some(plot) = &plot {
        if rows.is_empty() {
            return Err(Failure::input("plot must be left out: nothing was published yet"));
        }
        let queries = status.settings.queries.iter().map(|(query, _)| query.published_name());
        let panels = queries.map(|query| vec![figure::chart(&query, &rows).into()]);
        plot.write(plot::file(panels.collect())?.as_bytes())?;
    }
    Ok(WrittenPage {
        report: arguments.out.clone(),
        plot: arguments.plot.clone(),
        published: status.published,
    })
}

impl fmt::Display for WrittenPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.report.display(), quantity(self.published as u64, "period"))?;
        self.plot.as_ref().map_or(Ok(()), |plot| writeln!(f, "{}", plot.display()))
    }
}
