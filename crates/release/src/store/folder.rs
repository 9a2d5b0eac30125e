//! The folder of a release: one writer at a time, with a secret that only its owner can read.

use std::path::{Path, PathBuf};

use antinoise_input::files::{Lock, owner, remove_stale, wipe};
use antinoise_noise::{Grid, Key, NoiseStream, StreamBuilder};

use crate::{Error, Result};

const DATABASE: &str = "release.db";
const SECRET: &str = "secret";
const SEAL: &str = "seal";
const LOCK: &str = ".lock";

/// Names of the files that a release consists of, in its folder.
pub const FILES: [&str; 4] = [DATABASE, SECRET, SEAL, LOCK];

/// The paths of a release's files.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder at `path`, as an absolute path, so that it does not depend on the process's current folder.
    pub(crate) fn new(path: &Path) -> Result<Self> {
        Ok(Self { path: std::path::absolute(path).map_err(Error::io(path))? })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the folder, accessible only to its owner, if it is absent.
    pub(crate) fn make(&self) -> Result<()> {
        owner::make_folder(&self.path).map_err(Error::io(&self.path))
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    pub(crate) fn secret(&self) -> PathBuf {
        self.path.join(SECRET)
    }

    pub(crate) fn seal(&self) -> PathBuf {
        self.path.join(SEAL)
    }

    /// Locks the folder, which must exist.
    pub(crate) fn lock(&self) -> Result<Lock> {
        let path = self.path.join(LOCK);
        Lock::take(&path).map_err(Error::io(&path))?.ok_or_else(|| {
            let must_be = "free: one process at a time may write into a release";
            let name = format!("folder {}", self.path.display());
            Error::invalid(name, "in use by another process", must_be)
        })
    }

    /// Creates an empty database, accessible only to its owner, if it is absent.
    pub(crate) fn make_database(&self) -> Result<()> {
        let path = self.database();
        owner::make_if_absent(&path).map_err(Error::io(&path))
    }

    /// Starts the noise of `builder` with `key`, and saves it.
    pub(crate) fn begin_noise(&self, builder: StreamBuilder, grid: Grid, key: Key) -> Result<NoiseStream> {
        let mut stream = builder.grid(grid).build(key)?;
        // Noise too large for 32-bit integers of grid points is refused now, not at the first publication.
        stream.next_points_into(&mut vec![0; stream.len()])?;
        stream.seek_and_reuse_noise_unprotected(0)?;
        self.save_noise(&stream)?;
        Ok(stream)
    }

    pub(crate) fn save_noise(&self, stream: &NoiseStream) -> Result<()> {
        Ok(stream.save(self.secret())?)
    }

    /// Overwrites the secret and removes it, if it exists.
    pub(crate) fn wipe_secret(&self) -> Result<()> {
        let path = self.secret();
        wipe(&path).map_err(Error::io(&path))
    }

    /// Wipes incomplete secrets and seals that a killed process left: each holds a key.
    pub(crate) fn wipe_unfinished(&self) -> Result<()> {
        let wiped = remove_stale(&self.path, |name| name == SECRET || name == SEAL);
        wiped.map(drop).map_err(Error::io(&self.path))
    }

    /// Resumes the saved noise.
    pub(crate) fn resume_noise(&self, builder: StreamBuilder, grid: Grid) -> Result<NoiseStream> {
        let path = self.secret();
        check_owner_only(&path)?;
        Ok(builder.grid(grid).resume(&path)?)
    }
}

/// Refuses anything but a regular file that only its owner may read and write.
pub(crate) fn check_owner_only(path: &Path) -> Result<()> {
    let found = std::fs::symlink_metadata(path).map_err(Error::io(path))?;
    if !found.is_file() {
        return Err(Error::invalid(path.display().to_string(), "no regular file", "a file of a release"));
    }
    Ok(owner::check(path, &found)?)
}
