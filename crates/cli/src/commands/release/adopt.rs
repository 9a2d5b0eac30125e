//! `antinoise release adopt`.

use std::path::PathBuf;

use antinoise_release::Release;
use clap::Args;

use super::status::Report;
use crate::failure::Result;

/// Go on with a release in a folder that was copied or restored.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  antinoise release init shops --keys north,south --periods 365 \\
      --epsilon 1 --delta 1e-6 --unit user --max-periods 60
  cp -r shops moved && rm -r shops
  antinoise release adopt moved

Only where the original will never be used again, and published nothing since this
copy was made: two folders that go on with one
release publish different data under the same noise, and the difference of what they
publish has no noise at all.")]
pub struct Arguments {
    /// Folder of the release.
    dir: PathBuf,
}

/// Adopts the folder.
pub fn run(arguments: &Arguments) -> Result<Report> {
    drop(Release::adopt(&arguments.dir)?);
    Report::of(&arguments.dir)
}
