//! `antinoise release adopt`.

use std::path::PathBuf;

use antinoise_release::Release;
use clap::Args;

use super::status::ReleaseStatus;
use crate::failure::Result;

/// Continue a release in a folder that was copied, moved between machines, or restored from a backup.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  antinoise release init shops --keys north,south --periods 365 \\
      --epsilon 1 --delta 1e-6 --unit user --max-periods 60
  cp -r shops moved && rm -r shops
  antinoise release adopt moved

Use it only if the original will never be used again and has published nothing since
this copy was made. If two folders continue one release, they publish different data
under the same noise, and the difference of their figures has no noise at all. This
cannot be detected.")]
pub struct Arguments {
    /// Folder of the release.
    dir: PathBuf,
}

/// Adopts the folder.
pub fn run(arguments: &Arguments) -> Result<ReleaseStatus> {
    drop(Release::adopt(&arguments.dir)?);
    ReleaseStatus::of(&arguments.dir)
}
