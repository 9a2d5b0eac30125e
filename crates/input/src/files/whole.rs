//! Files that are written completely or not at all, with the permissions of their kind.
//!
//! A file is written under a temporary name in its own folder, `.NAME.tmp-PID-N`, and renamed once it is
//! complete. The temporary file is created exclusively and locked while it is written. The lock distinguishes
//! files of live writers from files of killed ones, which [`remove_stale`] removes.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Error, ErrorKind, Read, Result, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::owner;

/// The text between a file's name and the numbers of its writer.
const MARK: &str = ".tmp-";
/// Largest number of temporary names to try.
const MAX_NAMES: usize = 1000;

/// The users who may read a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The owner only: for keys, noise and other secrets.
    Owner,
    /// The default readers of new files of this process.
    Everyone,
}

/// A file that is being written under a temporary name in its folder. It is removed if it is dropped before
/// [`NewFile::commit`].
///
/// ```
/// use antinoise_input::files::{Access, NewFile};
/// use std::io::Write;
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("rows.npy");
/// let mut file = NewFile::beside(&path, Access::Everyone)?;
/// file.write_all(b"one row")?;
/// assert!(!path.exists());
/// file.commit()?;
/// assert_eq!(std::fs::read(&path)?, b"one row");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct NewFile {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
}

impl NewFile {
    /// A new, empty file that [`NewFile::commit`] will rename to `path`.
    ///
    /// # Errors
    /// When the folder is absent or not writable, or `path` exists and is not a regular file: folders, links
    /// and devices are not replaced.
    pub fn beside(path: &Path, access: Access) -> Result<Self> {
        let name =
            path.file_name().ok_or_else(|| Error::new(ErrorKind::InvalidInput, "not a file's name"))?;
        if let Ok(there) = path.symlink_metadata()
            && !there.is_file()
        {
            let message = "not a regular file: nothing else is replaced";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        for _ in 0..MAX_NAMES {
            static NUMBER: AtomicU64 = AtomicU64::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let mut temporary = std::ffi::OsString::from(".");
            temporary.push(name);
            temporary.push(format!("{MARK}{}-{number}", std::process::id()));
            let temporary = folder_of(path).join(temporary);
            // A process with the same id may have left this one.
            let file = match options(access).open(&temporary) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                opened => opened?,
            };
            // Another process may remove the file as stale before it is locked here. On file systems without
            // locks no file is stale.
            let raced = matches!(file.try_lock(), Err(TryLockError::WouldBlock)) || !temporary.exists();
            let file = Self { file, temporary, path: path.to_path_buf() };
            if !raced {
                return Ok(file);
            }
        }
        Err(Error::new(ErrorKind::AlreadyExists, format!("{MAX_NAMES} temporary files stand in the way")))
    }

    /// The file under its temporary name, which [`NewFile::commit`] renames.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Syncs the file to the disk and renames it, replacing an existing file.
    ///
    /// # Errors
    /// When the disk is full or the file cannot be renamed; an existing file is then unchanged.
    pub fn commit(self) -> Result<()> {
        failpoint();
        self.file.sync_all()?;
        failpoint();
        std::fs::rename(&self.temporary, &self.path)?;
        // The name should survive a failure of the machine too; not every system can sync a folder.
        if let Ok(folder) = File::open(folder_of(&self.path)) {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // After `commit` no file has this name.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

/// Writes `contents` to `path`, whole or not at all.
///
/// ```
/// use antinoise_input::files::{Access, write_whole};
/// let folder = tempfile::tempdir()?;
/// write_whole(&folder.path().join("plan.toml"), Access::Everyone, b"steps = 3")?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`NewFile::beside`] and [`NewFile::commit`]; nothing is left behind.
pub fn write_whole(path: &Path, access: Access, contents: &[u8]) -> Result<()> {
    let mut file = NewFile::beside(path, access)?;
    file.write_all(contents)?;
    file.commit()
}

/// [Wipes](wipe) temporary files that killed writers left in `folder`, and returns their number: regular
/// files of this user with a temporary name of [`NewFile`] that no writer has locked, and whose final name
/// `ours` accepts.
///
/// # Errors
/// When the folder cannot be read or a stale file not be removed.
pub fn remove_stale(folder: &Path, ours: impl Fn(&str) -> bool) -> Result<usize> {
    let mut removed = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let is_ours = target_name(&entry.file_name().to_string_lossy()).is_some_and(&ours);
        if is_ours && is_own_file(&entry.path()) {
            let Ok(file) = File::open(entry.path()) else { continue };
            if file.try_lock().is_ok() {
                drop(file);
                wipe(&entry.path())?;
                removed += 1;
            }
        }
    }
    Ok(removed)
}

/// Overwrites a file, which may hold a key, and removes it, if it exists. Copies that a file system or a
/// backup keeps are out of reach.
///
/// # Errors
/// When it cannot be written or removed.
pub fn wipe(path: &Path) -> Result<()> {
    let mut file = match OpenOptions::new().write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let length = file.metadata()?.len();
    failpoint();
    io::copy(&mut io::repeat(0).take(length), &mut file)?;
    file.sync_all()?;
    failpoint();
    std::fs::remove_file(path)
}

/// A point at which tests end the process, with the feature `failpoints`: before a new file is synced, before
/// it is renamed, before a file is overwritten, and before it is removed. The process aborts at the point
/// whose number, from 0, is in `ANTINOISE_FAILPOINT`.
#[cfg(feature = "failpoints")]
pub fn failpoint() {
    static REACHED: AtomicU64 = AtomicU64::new(0);
    let reached = REACHED.fetch_add(1, Ordering::SeqCst).to_string();
    if std::env::var("ANTINOISE_FAILPOINT").is_ok_and(|wanted| wanted == reached) {
        std::process::abort();
    }
}

/// Does nothing without the feature `failpoints`.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn failpoint() {}

/// NAME, if `temporary` is `.NAME.tmp-PID-N`, a temporary name of [`NewFile`].
///
/// ```
/// use antinoise_input::files::target_name;
/// assert_eq!(target_name(".plan.toml.tmp-17-0"), Some("plan.toml"));
/// assert_eq!(target_name("plan.toml"), None);
/// ```
pub fn target_name(temporary: &str) -> Option<&str> {
    let (name, numbers) = temporary.strip_prefix('.')?.rsplit_once(MARK)?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (pid, number) = numbers.split_once('-')?;
    (!name.is_empty() && is_number(pid) && is_number(number)).then_some(name)
}

#[cfg(unix)]
fn is_own_file(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let own = rustix::process::geteuid().as_raw();
    path.symlink_metadata().is_ok_and(|found| found.is_file() && found.uid() == own)
}

#[cfg(not(unix))]
fn is_own_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file())
}

fn options(access: Access) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    if access == Access::Owner {
        owner::owner_only(&mut options);
    }
    options
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_whole_and_a_failure_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.toml");
        write_whole(&path, Access::Everyone, b"one").unwrap();
        write_whole(&path, Access::Everyone, b"two").unwrap();
        let mut unfinished = NewFile::beside(&path, Access::Everyone).unwrap();
        unfinished.write_all(b"thr").unwrap();
        assert_eq!(names(folder.path()).len(), 2);
        drop(unfinished);
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        let absent = folder.path().join("absent").join("plan.toml");
        assert_eq!(
            write_whole(&absent, Access::Owner, b"").unwrap_err().kind(),
            std::io::ErrorKind::NotFound
        );
        assert_eq!(names(folder.path()), ["plan.toml"]);
    }

    #[test]
    fn only_regular_files_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let occupied = folder.path().join("occupied");
        std::fs::create_dir(&occupied).unwrap();
        assert!(write_whole(&occupied, Access::Everyone, b"one").is_err());
        #[cfg(unix)]
        {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink("target", &link).unwrap();
            assert!(
                write_whole(&link, Access::Everyone, b"one")
                    .unwrap_err()
                    .to_string()
                    .contains("regular file")
            );
        }
        assert!(write_whole(Path::new(".."), Access::Everyone, b"one").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn access_holds_from_the_first_byte_on() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        write_whole(&path, Access::Everyone, b"one").unwrap();
        let everyone = mode(&path);
        let file = NewFile::beside(&path, Access::Owner).unwrap();
        assert_eq!(mode(&file.temporary), 0o600);
        file.commit().unwrap();
        assert_eq!(mode(&path), 0o600);
        std::fs::write(folder.path().join("plain"), b"").unwrap();
        assert_eq!(everyone, mode(&folder.path().join("plain")));
    }

    #[test]
    fn stale_files_are_removed_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let written = NewFile::beside(&folder.path().join("noise"), Access::Owner).unwrap();
        let name = written.temporary.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.starts_with(".noise.tmp-"));
        for name in [".noise.tmp-17-3", ".a.b.tmp-1-0", "noise.tmp-17-3", ".noise.tmp-17", ".noise.tmp-x-3"] {
            std::fs::write(folder.path().join(name), b"secret").unwrap();
        }
        std::fs::create_dir(folder.path().join(".folder.tmp-17-3")).unwrap();
        assert_eq!(remove_stale(folder.path(), |name| name == "noise").unwrap(), 1);
        let mut left = vec![".a.b.tmp-1-0", ".folder.tmp-17-3", ".noise.tmp-17", ".noise.tmp-x-3"];
        left.extend([&name[..], "noise.tmp-17-3"]);
        left.sort_unstable();
        assert_eq!(names(folder.path()), left);
        written.commit().unwrap();
        assert!(folder.path().join("noise").is_file());
    }
}
