//! The folder of one run: locked against other processes, with at most one committed checkpoint.

use std::path::{Path, PathBuf};

use antinoise_input::InvalidParameter;
use antinoise_input::files::{Lock, owner, target_name};
use antinoise_noise::RunId;

use super::files::{self, mismatch};
use super::manifest::{self, Manifest};
use crate::Error;

/// The name of the lock file, which remains in the folder.
const LOCK: &str = ".lock";

/// The exclusive right to write into a folder, held until it is dropped or the process ends in any way.
///
/// ```
/// use antinoise_train::checkpoint::FolderLock;
/// let folder = tempfile::tempdir().unwrap();
/// let held = FolderLock::take(folder.path())?;
/// assert!(FolderLock::take(folder.path()).unwrap_err().to_string().contains("in use by another run"));
/// drop(held);
/// assert!(FolderLock::take(folder.path()).is_ok());
/// # Ok::<(), antinoise_train::Error>(())
/// ```
///
/// The lock is advisory: it excludes only processes that take it.
#[derive(Debug)]
pub struct FolderLock {
    _held: Lock,
}

impl FolderLock {
    /// Locks `folder`, which must exist.
    ///
    /// # Errors
    /// If another run, in this process or another, holds the lock; if the file system has no locks.
    pub fn take(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(LOCK);
        let held = Lock::take(&path).map_err(Error::io(&path))?.ok_or_else(|| {
            let must_be = "one that nobody else is writing into: wait for that run, or name another folder";
            let what = format!("folder {}", folder.display());
            InvalidParameter::new(what, "in use by another run", must_be)
        })?;
        Ok(Self { _held: held })
    }
}

/// The contents of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    /// No checkpoint: the run starts from the beginning, with a fresh key.
    Empty,
    /// A checkpoint from which the run can resume.
    Unfinished {
        /// Number of steps done.
        step: usize,
    },
    /// The results of a run whose key was wiped.
    Finished,
}

/// The folder of one run's checkpoints, locked against other processes while this value lives.
///
/// `checkpoint.toml` names the committed files `noise-N.safetensors` (key and noise state) and
/// `training-N.safetensors` (everything else); other such files are leftovers of a killed run. All are
/// readable only by their owner: they reveal the noise and the unprotected history.
///
/// ```
/// use antinoise_noise::RunId;
/// use antinoise_train::checkpoint::{Checkpoints, Committed};
/// let folder = tempfile::tempdir().unwrap();
/// let checkpoints = Checkpoints::open(&folder.path().join("run"), RunId::new("my run")?)?;
/// assert_eq!(checkpoints.committed()?, Committed::Empty);
/// # Ok::<(), antinoise_train::Error>(())
/// ```
#[derive(Debug)]
pub struct Checkpoints {
    path: PathBuf,
    run: RunId,
    _lock: FolderLock,
}

impl Checkpoints {
    /// Locks the folder at `path` (created if absent) for the run called `run`, and wipes incomplete files
    /// that a killed run left there. Two runs on the same data must have different names.
    ///
    /// # Errors
    /// If another process holds the folder, it contains another run, or its manifest is damaged.
    pub fn open(path: &Path, run: RunId) -> Result<Self, Error> {
        owner::make_folder(path).map_err(Error::io(path))?;
        let lock = FolderLock::take(path)?;
        let checkpoints = Self { path: path.to_owned(), run, _lock: lock };
        checkpoints.clean(checkpoints.manifest()?.as_ref())?;
        Ok(checkpoints)
    }

    /// The committed state of the run.
    ///
    /// # Errors
    /// If the manifest cannot be read or is damaged.
    pub fn committed(&self) -> Result<Committed, Error> {
        Ok(match self.manifest()? {
            None => Committed::Empty,
            Some(Manifest { noise: None, .. }) => Committed::Finished,
            Some(manifest) => Committed::Unfinished { step: manifest.step },
        })
    }

    /// The name of the run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    pub(crate) fn manifest(&self) -> Result<Option<Manifest>, Error> {
        let manifest = Manifest::read(&self.path)?;
        if let Some(manifest) = &manifest
            && manifest.run != self.run.as_str()
        {
            return Err(mismatch(&self.path.join(manifest::NAME), format!("of run {:?}", manifest.run)));
        }
        Ok(manifest)
    }

    pub(crate) fn noise_file(&self, save: u64) -> PathBuf {
        self.path.join(noise_name(save))
    }

    pub(crate) fn training_file(&self, save: u64) -> PathBuf {
        self.path.join(training_name(save))
    }

    /// Commits `manifest`, whose files are already on disk under their names, and wipes the previous files.
    pub(crate) fn commit(&self, mut manifest: Manifest, with_noise: bool) -> Result<(), Error> {
        let digest = |path: PathBuf| files::sha256(&path).map_err(Error::io(&path));
        manifest.training = digest(self.training_file(manifest.save))?;
        manifest.noise = with_noise.then(|| digest(self.noise_file(manifest.save))).transpose()?;
        manifest.commit(&self.path)?;
        self.clean(Some(&manifest))
    }

    /// Refuses files that differ from those that `manifest` names.
    pub(crate) fn check_files(&self, manifest: &Manifest) -> Result<(), Error> {
        let noise = manifest.noise.as_ref().map(|digest| (self.noise_file(manifest.save), digest));
        for (path, digest) in
            noise.into_iter().chain([(self.training_file(manifest.save), &manifest.training)])
        {
            match files::sha256(&path) {
                Ok(found) if found == *digest => {}
                Ok(_) => return Err(mismatch(&path, format!("not the file that {} names", manifest::NAME))),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    return Err(mismatch(&path, "absent"));
                }
                Err(error) => return Err(Error::io(&path)(error)),
            }
        }
        Ok(())
    }

    /// Wipes every file of a checkpoint that is not committed.
    fn clean(&self, manifest: Option<&Manifest>) -> Result<(), Error> {
        let keep = manifest.map_or([None, None], |manifest| {
            let noise = manifest.noise.is_some().then(|| noise_name(manifest.save));
            [noise, Some(training_name(manifest.save))]
        });
        let first = [noise_name(0), training_name(0)];
        let leftover = |name: &str| {
            is_temporary(name) || is_ours(name) && !keep.iter().flatten().any(|kept| kept == name)
        };
        if manifest.is_none()
            && let Some(name) =
                files::find(&self.path, |name| is_ours(name) && !first.iter().any(|x| x == name))?
        {
            // A second checkpoint is written only after a first one was committed.
            let path = self.path.join(manifest::NAME);
            return Err(mismatch(&path, format!("absent next to {name}")));
        }
        files::wipe_all(&self.path, leftover)
    }
}

fn noise_name(save: u64) -> String {
    format!("noise-{save}.safetensors")
}

fn training_name(save: u64) -> String {
    format!("training-{save}.safetensors")
}

fn is_ours(name: &str) -> bool {
    let save = name
        .strip_suffix(".safetensors")
        .and_then(|stem| stem.strip_prefix("noise-").or_else(|| stem.strip_prefix("training-")));
    save.is_some_and(|save| save.parse::<u64>().is_ok_and(|number| number.to_string() == save))
}

/// Whether `name` is the temporary name of a checkpoint's file: `.NAME.tmp-PID-N`.
fn is_temporary(name: &str) -> bool {
    target_name(name).is_some_and(|name| name == manifest::NAME || is_ours(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_we_give_are_ours() {
        assert!(is_ours(&noise_name(0)) && is_ours(&training_name(u64::MAX)));
        for name in ["noise-.safetensors", "noise-01.safetensors", "noise-1", "training-x.safetensors", "a-1"]
        {
            assert!(!is_ours(name), "{name}");
        }
    }
}
