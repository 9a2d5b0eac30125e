//! `antinoise man`: the help texts as manual pages.

use std::fmt;
use std::path::{Path, PathBuf};

use antinoise_input::InvalidParameter;
use clap::Args;
use clap::builder::Resettable;
use clap_mangen::{Man, roff};
use serde::Serialize;

use crate::destination::{Destination, Overwriting};
use crate::failure::{Failure, Result};

/// Print the manual page, or write the pages of all commands into a folder.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  antinoise man | head -n 20
  antinoise man --out man1
  antinoise man man1 --force --json")]
pub struct Arguments {
    /// Folder to write a page for each command to; created if it does not exist [default: print the first
    /// page].
    #[arg(value_name = "DIR", conflicts_with = "out")]
    folder: Option<PathBuf>,
    /// The same folder as DIR, named by an option.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwriting: Overwriting,
}

/// Output of `antinoise man`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum ManualPages {
    /// A page in the format of manual pages.
    Page {
        /// Text of the page.
        page: String,
    },
    /// Pages of a folder.
    Files {
        /// Paths of the pages.
        files: Vec<PathBuf>,
    },
}

/// Writes the pages of `program` and its commands.
pub fn run(arguments: &Arguments, program: clap::Command) -> Result<ManualPages> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    match arguments.out.as_deref().or(arguments.folder.as_deref()) {
        Some(folder) => write_all(&program, folder, arguments.overwriting),
        None if arguments.overwriting.force => {
            Err(InvalidParameter::new("force", "true", "left out: nothing is written without --out").into())
        }
        None => Ok(ManualPages::Page { page: page(&program)? }),
    }
}

/// Writes all pages, after every page is formatted and its path checked.
fn write_all(program: &clap::Command, folder: &Path, overwriting: Overwriting) -> Result<ManualPages> {
    std::fs::create_dir_all(folder).map_err(|error| {
        let got = folder.display();
        Failure::input(format!("out is {got} but must be a folder, or one that can be made: {error}"))
    })?;
    let mut pages = Vec::new();
    collect(program, folder, &mut pages)?;
    let places: Vec<Destination> =
        pages.iter().map(|(path, _)| Destination::new("out", path, overwriting)).collect::<Result<_>>()?;
    for (place, (_, page)) in places.iter().zip(&pages) {
        place.write(page.as_bytes())?;
    }
    Ok(ManualPages::Files { files: pages.into_iter().map(|(path, _)| path).collect() })
}

/// Pages of `command` and its subcommands, with their paths in `folder`.
fn collect(command: &clap::Command, folder: &Path, pages: &mut Vec<(PathBuf, String)>) -> Result<()> {
    pages.push((folder.join(Man::new(command.clone()).get_filename()), page(command)?));
    command.get_subcommands().try_for_each(|inner| collect(inner, folder, pages))
}

fn page(command: &clap::Command) -> Result<String> {
    let mut text = Vec::new();
    // Examples are lines of shell, which the generator would join and fill like prose.
    Man::new(command.clone().after_help(Resettable::Reset)).render(&mut text).map_err(Failure::other)?;
    let text = String::from_utf8(text).map_err(Failure::other)?;
    // The generator first defines an apostrophe for old systems. The definition is removed, so that pages
    // start with their title; all current systems know \(aq.
    let mut text = text[text.find(".TH ").unwrap_or(0)..].replace(r"\*(Aq", r"\(aq");
    if let Some(after) = command.get_after_help() {
        text.push_str(&examples(&after.to_string()));
    }
    Ok(text)
}

/// Formats the end of a help text, after the options: examples, line by line, and prose.
fn examples(after_help: &str) -> String {
    let (lines, prose) = after_help.split_once("\n\n").unwrap_or((after_help, ""));
    let lines = lines.strip_prefix("Examples:\n").unwrap_or(lines);
    let mut page = roff::Roff::new();
    page.control("SH", ["EXAMPLES"]).control("nf", []).text([roff::roman(lines)]).control("fi", []);
    for paragraph in prose.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
        page.control("PP", []).text([roff::roman(paragraph)]);
    }
    page.to_roff()
}

impl fmt::Display for ManualPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Page { page } => f.write_str(page),
            Self::Files { files } => files.iter().try_for_each(|file| writeln!(f, "{}", file.display())),
        }
    }
}
