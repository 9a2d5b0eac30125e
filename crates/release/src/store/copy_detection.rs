//! Detection of copied releases: the machine and the identities of a release's files, which a copy of the
//! folder does not share by accident.

use std::fs::{File, Metadata};
use std::time::UNIX_EPOCH;

use antinoise_input::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The machine and the files of a folder. A field that the system does not report is `None`, and equals every
/// value in comparisons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Home {
    /// A digest of the machine's identifier.
    pub(crate) machine: Option<String>,
    pub(crate) database: Place,
    pub(crate) seal: Place,
}

/// The identity of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// Kind and identifier of the file system; not the device number, which may change when a machine starts.
    pub(crate) volume: Option<String>,
    pub(crate) inode: Option<u64>,
    /// The creation time of the file, in nanoseconds since 1970.
    pub(crate) born: Option<String>,
}

impl Home {
    /// The home of a release with these open files: its database and its seal.
    pub(crate) fn of(database: &File, seal: &File) -> std::io::Result<Self> {
        Ok(Self { machine: machine(), database: Place::of(database)?, seal: Place::of(seal)? })
    }

    /// The difference between this home and `now`, in words; `None` if there is no difference.
    pub(crate) fn difference(&self, now: &Self) -> Option<String> {
        if differ(self.machine.as_ref(), now.machine.as_ref()) {
            return Some("on another machine".into());
        }
        let files = [("release.db", &self.database, &now.database), ("seal", &self.seal, &now.seal)];
        files.into_iter().find_map(|(name, before, now)| Some(format!("{name} {}", before.difference(now)?)))
    }
}

impl Place {
    fn of(file: &File) -> std::io::Result<Self> {
        let found = file.metadata()?;
        let born = found.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Ok(Self {
            volume: volume(file, &found),
            inode: inode(&found),
            born: born.map(|time| time.as_nanos().to_string()),
        })
    }

    fn difference(&self, now: &Self) -> Option<&'static str> {
        if differ(self.volume.as_ref(), now.volume.as_ref()) {
            Some("on another file system")
        } else if differ(self.inode.as_ref(), now.inode.as_ref()) {
            Some("is another file")
        } else if differ(self.born.as_ref(), now.born.as_ref()) {
            Some("was made at another time")
        } else {
            None
        }
    }
}

fn differ<T: PartialEq>(before: Option<&T>, now: Option<&T>) -> bool {
    matches!((before, now), (Some(before), Some(now)) if before != now)
}

/// A digest of `/etc/machine-id`, whose value should not be disclosed.
fn machine() -> Option<String> {
    let text = std::fs::read_to_string("/etc/machine-id").ok()?;
    let name = text.trim();
    let is_one = !name.is_empty() && name != "uninitialized";
    is_one.then(|| hex(&Sha256::digest(format!("antinoise release {name}").as_bytes())[..16]))
}

#[cfg(unix)]
fn inode(found: &Metadata) -> Option<u64> {
    Some(std::os::unix::fs::MetadataExt::ino(found))
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> Option<u64> {
    None
}

/// The identity of a file system. For file systems in memory: the mount and the start of the machine, which
/// they do not survive. For file systems that store an identifier on disk: the identifier. For others only
/// the kind: their identifier contains device numbers, which may change when a machine starts.
#[cfg(target_os = "linux")]
fn volume(file: &File, found: &Metadata) -> Option<String> {
    const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];
    const IDENTIFIED: [u32; 2] = [0xef53, 0x9123_683e];
    let kind = rustix::fs::fstatfs(file).ok()?.f_type as u32;
    let identifier = rustix::fs::fstatvfs(file).ok()?.f_fsid;
    if IN_MEMORY.contains(&kind) {
        let start = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let device = std::os::unix::fs::MetadataExt::dev(found);
        return Some(format!("{kind:x} {identifier:x} {device:x} {}", start.trim()));
    }
    Some(if IDENTIFIED.contains(&kind) { format!("{kind:x} {identifier:x}") } else { format!("{kind:x}") })
}

#[cfg(not(target_os = "linux"))]
fn volume(_: &File, _: &Metadata) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> Home {
        let place = |inode, born: &str| Place {
            volume: Some("1021994 0 1d start".into()),
            inode: Some(inode),
            born: Some(born.into()),
        };
        Home { machine: Some("m".into()), database: place(4, "100"), seal: place(5, "200") }
    }

    /// Each property that a copy cannot share by accident is detected separately; unknown properties equal
    /// every value.
    #[test]
    fn a_copy_is_known_by_anything_that_differs() {
        type Change = (fn(&mut Home), &'static str);
        let changes: [Change; 8] = [
            (|home| home.machine = Some("n".into()), "on another machine"),
            (
                |home| home.database.volume = Some("1021994 0 1d later".into()),
                "release.db on another file system",
            ),
            (|home| home.database.inode = Some(6), "release.db is another file"),
            (|home| home.database.born = Some("101".into()), "release.db was made at another time"),
            (|home| home.seal.volume = Some("ef53 7".into()), "seal on another file system"),
            (|home| home.seal.inode = Some(4), "seal is another file"),
            (|home| home.seal.born = Some("100".into()), "seal was made at another time"),
            (|home| home.machine = None, ""),
        ];
        for (change, told) in changes {
            let mut now = home();
            change(&mut now);
            for difference in [home().difference(&now), now.difference(&home())] {
                assert_eq!(difference.unwrap_or_default(), told);
            }
        }
        let unknown = Place { volume: None, inode: None, born: None };
        let now = Home { database: unknown.clone(), seal: unknown, ..home() };
        assert_eq!((home().difference(&home()), home().difference(&now)), (None, None));
    }

    /// Writing, reading and renaming do not change a file's home; copying does.
    #[test]
    fn a_file_that_is_used_stays_where_it_is_and_a_copy_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a"), folder.path().join("b"));
        let place = |path| Place::of(&File::open(path).unwrap()).unwrap();
        std::fs::write(&path, "1").unwrap();
        let before = place(&path);
        std::fs::write(&path, "2").unwrap();
        std::fs::rename(&path, &other).unwrap();
        assert_eq!(place(&other), before);
        std::fs::copy(&other, &path).unwrap();
        assert!(before.difference(&place(&path)).is_some());
    }
}
