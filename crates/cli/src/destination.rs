//! Files that a command writes: whole or not at all, and never over an existing file by accident.

use std::io::{Error, ErrorKind, Write};
use std::path::{Path, PathBuf};

use antinoise_input::InvalidParameter;
use antinoise_input::files::{Access, NewFile};
use clap::Args;

use crate::failure::{Failure, Result};
use crate::output;

/// Maximum number of links that are followed before they count as a cycle.
const MOST_LINKS: usize = 40;

/// Treatment of existing files.
#[derive(Debug, Clone, Copy, Args)]
pub struct Overwriting {
    /// Overwrite a file that exists.
    #[arg(long)]
    pub force: bool,
}

impl Overwriting {
    /// The file that `flag` names, if it was given.
    pub fn file(self, flag: &'static str, path: &Option<PathBuf>) -> Result<Option<Destination>> {
        path.as_deref().map(|path| Destination::new(flag, path, self)).transpose()
    }

    /// The files of --out and --plot, if they were given; they must be two.
    pub fn out_and_plot(
        self,
        out: &Option<PathBuf>,
        plot: &Option<PathBuf>,
    ) -> Result<(Option<Destination>, Option<Destination>)> {
        let destinations = (self.file("out", out)?, self.figure("plot", plot)?);
        match out {
            Some(out) if plot.as_ref() == Some(out) => {
                Err(InvalidParameter::new("plot", out.display(), "a file other than --out's").into())
            }
            _ => Ok(destinations),
        }
    }

    /// The figure that `flag` names, if it was given.
    pub fn figure(self, flag: &'static str, path: &Option<PathBuf>) -> Result<Option<Destination>> {
        path.as_deref().map(|path| Destination::figure(flag, path, self)).transpose()
    }
}

/// A file to write, checked before the work begins.
#[derive(Debug)]
pub struct Destination {
    flag: &'static str,
    /// Path after symbolic links are followed.
    path: PathBuf,
    overwriting: Overwriting,
}

impl Destination {
    /// The file that `flag` names, after symbolic links are followed.
    ///
    /// Refuses a path in an absent folder, a path of anything but a regular file (a device, a folder, a pipe)
    /// and, without `--force`, a file that exists.
    pub fn new(flag: &'static str, path: &Path, overwriting: Overwriting) -> Result<Self> {
        let refused =
            |must_be: &str| Failure::input(format!("{flag} is {} but must be {must_be}", path.display()));
        let target = followed(path).ok_or_else(|| refused("a file: its symbolic links form a cycle"))?;
        let destination = Self { flag, path: target, overwriting };
        match std::fs::metadata(&destination.path) {
            Ok(there) if !there.is_file() => Err(refused("a regular file, or the name of a new one")),
            Ok(_) if !overwriting.force => Err(refused("a new file: it exists (--force overwrites it)")),
            Ok(_) => Ok(destination),
            Err(_) if destination.folder().is_dir() => Ok(destination),
            Err(_) => Err(refused("in a folder that exists and can be read")),
        }
    }

    /// As [`Destination::new`], for a figure, which must be SVG.
    pub fn figure(flag: &'static str, path: &Path, overwriting: Overwriting) -> Result<Self> {
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg")) {
            return Self::new(flag, path, overwriting);
        }
        let message = format!("{flag} is {} but must end in .svg: figures are SVG", path.display());
        Err(Failure::input(message))
    }

    /// The folder of the file.
    pub fn folder(&self) -> &Path {
        self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    /// The path of the file, after its links are followed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses a destination that is the file of option `other`, by any path: the file would be overwritten.
    pub fn refuse_to_be(&self, other: &str, path: &Path) -> Result<()> {
        let same = std::fs::canonicalize(&self.path).ok().zip(std::fs::canonicalize(path).ok());
        if same.is_none_or(|(out, other)| out != other) {
            return Ok(());
        }
        let Self { flag, path, .. } = self;
        let message = format!("{flag} is {} but must be a file other than {other}", path.display());
        Err(Failure::input(message))
    }

    /// Refuses a destination that is a file in `folder`, of which option `other` consists.
    #[cfg(feature = "train")]
    pub fn refuse_to_replace_in(&self, other: &str, folder: &Path) -> Result<()> {
        self.path.file_name().map_or(Ok(()), |name| self.refuse_to_be(other, &folder.join(name)))
    }

    /// Refuses a file for which the disk has no space.
    pub fn check_room(&self, bytes: u128) -> Result<()> {
        match room_in(self.folder()) {
            Some(room) if u128::from(room) < bytes => Err(Failure::input(format!(
                "{} is {} but must be on a disk with {} of free space: {} are free",
                self.flag,
                self.path.display(),
                output::bytes(u64::try_from(bytes).unwrap_or(u64::MAX)),
                output::bytes(room)
            ))),
            _ => Ok(()),
        }
    }

    /// The file under a temporary name, to be written in portions and then committed; it is removed if it is
    /// dropped before.
    pub fn create(&self, access: Access) -> Result<NewFile> {
        let Self { flag, path, overwriting } = self;
        // Another process may have created the file since it was checked.
        Self::new(flag, path, *overwriting)?;
        NewFile::beside(path, access).map_err(|error| self.failed(&error))
    }

    /// Writes the file, whole or not at all.
    pub fn write(&self, contents: &[u8]) -> Result<()> {
        let mut file = self.create(Access::Everyone)?;
        file.write_all(contents).and_then(|()| file.commit()).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &Error) -> Failure {
        let message = format!(
            "{} is {} but must be a file that can be written: {error}",
            self.flag,
            self.path.display()
        );
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::InvalidInput => {
                Failure::input(message)
            }
            _ => Failure::other(message),
        }
    }
}

/// Bytes that are free for this user in `folder`, where the system says so.
fn room_in(folder: &Path) -> Option<u64> {
    fs4::available_space(folder).ok()
}

/// Path that `path` names after every symbolic link at its end is followed, whether it exists or not.
fn followed(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match std::fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Some(path),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: Overwriting = Overwriting { force: false };
    const FORCE: Overwriting = Overwriting { force: true };

    #[test]
    fn an_existing_file_is_kept_unless_forced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.toml");
        Destination::new("out", &path, KEEP).unwrap().write(b"one").unwrap();
        let error = Destination::new("out", &path, KEEP).unwrap_err().to_string();
        assert!(error.starts_with("out is ") && error.contains("--force"), "{error}");
        Destination::new("out", &path, FORCE).unwrap().write(b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
    }

    #[test]
    fn a_file_that_appears_while_the_work_goes_on_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("noise.npy");
        let destination = Destination::new("out", &path, KEEP).unwrap();
        std::fs::write(&path, b"precious").unwrap();
        assert!(destination.write(b"noise").is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }

    #[test]
    fn what_is_no_regular_file_is_refused_even_by_force() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path(), Path::new("/dev/null"), Path::new("/dev/full")] {
            assert!(Destination::new("out", path, FORCE).is_err(), "{}", path.display());
        }
        assert!(Destination::new("out", Path::new("/nonexistent/folder/file"), FORCE).is_err());
        assert!(Destination::figure("plot", &folder.path().join("x.png"), FORCE).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_stay() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let (link, file) = (folder.path().join("link"), folder.path().join("file"));
        symlink("file", &link).unwrap();
        Destination::new("out", &link, KEEP).unwrap().write(b"new").unwrap();
        assert!(link.is_symlink() && std::fs::read(&file).unwrap() == b"new");
        assert!(Destination::new("out", &link, KEEP).is_err(), "what the link leads to exists");
        let circle = folder.path().join("circle");
        symlink("circle", &circle).unwrap();
        assert!(Destination::new("out", &circle, FORCE).is_err());
    }
}
