//! The folder of a release: one writer at a time, its secret for its owner alone, and no copies.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use antinoise_noise::{Grid, GridStream, Key, StreamBuilder};

use crate::{Error, Result};

/// How long a lock that is held is asked for again: a process that starts another one lends it its open files for a moment.
const PATIENCE: Duration = Duration::from_secs(1);

/// The paths of a release.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    path: PathBuf,
}

/// The right to write into a folder, until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _held: File,
}

impl Folder {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_path_buf() }
    }

    /// Makes the folder, for its owner alone, where there is none.
    pub(crate) fn make(&self) -> Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.path).map_err(Error::io(&self.path))
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join("release.db")
    }

    pub(crate) fn secret(&self) -> PathBuf {
        self.path.join("secret")
    }

    /// Locks the folder, which exists.
    pub(crate) fn lock(&self) -> Result<Lock> {
        let path = self.path.join(".lock");
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        owner_only(&mut options);
        let file = options.open(&path).map_err(Error::io(&path))?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { _held: file }),
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                    std::thread::sleep(PATIENCE / 100);
                }
                Err(TryLockError::WouldBlock) => {
                    let must_be = "free: one process at a time may write into a release";
                    let name = format!("folder {}", self.path.display());
                    return Err(Error::invalid(name, "in use by another process", must_be));
                }
                Err(TryLockError::Error(error)) => return Err(Error::io(&path)(error)),
            }
        }
    }

    /// An empty database, for its owner alone, where there is none.
    pub(crate) fn make_database(&self) -> Result<()> {
        let path = self.database();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        owner_only(&mut options);
        match options.open(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(Error::io(&path)(error)),
            _ => Ok(()),
        }
    }

    /// What tells the database from a copy of it: a copy is another file of the file system.
    pub(crate) fn home(&self) -> Result<String> {
        let path = self.database();
        let found = std::fs::metadata(&path).map_err(Error::io(&path))?;
        #[cfg(unix)]
        return Ok(std::os::unix::fs::MetadataExt::ino(&found).to_string());
        #[cfg(not(unix))]
        return Ok(format!("{:?}", found.created().ok()));
    }

    /// Begins the noise of `builder` with a fresh key, and saves it.
    pub(crate) fn begin_noise(&self, builder: StreamBuilder, grid: Grid) -> Result<GridStream> {
        let mut stream = builder.build_on_grid(grid, Key::from_os()?)?;
        // Noise that takes more than 4 bytes of points is refused now, not at the first publication.
        stream.next_points_into(&mut vec![0; stream.len()])?;
        stream.seek(0)?;
        self.save_noise(&stream)?;
        Ok(stream)
    }

    pub(crate) fn save_noise(&self, stream: &GridStream) -> Result<()> {
        Ok(stream.save(self.secret())?)
    }

    /// The noise that was saved.
    pub(crate) fn resume_noise(&self, builder: StreamBuilder, grid: Grid) -> Result<GridStream> {
        let path = self.secret();
        check_owner_only(&path)?;
        Ok(builder.resume_on_grid(grid, &path)?)
    }
}

fn owner_only(options: &mut OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    #[cfg(not(unix))]
    let _ = options;
}

/// Refuses anything but a regular file that only its owner may read and write.
pub(crate) fn check_owner_only(path: &Path) -> Result<()> {
    let found = std::fs::symlink_metadata(path).map_err(Error::io(path))?;
    if !found.is_file() {
        return Err(Error::invalid(path.display().to_string(), "no regular file", "a file of a release"));
    }
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::MetadataExt::mode(&found) & 0o777;
        if mode & 0o077 != 0 {
            let name = format!("mode of {}", path.display());
            return Err(Error::invalid(name, format!("{mode:04o}"), "0600, its owner's alone"));
        }
    }
    Ok(())
}
