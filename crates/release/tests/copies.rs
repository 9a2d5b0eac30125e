//! Two folders of one release are never both continued, unless someone adopts a copy.

#[path = "common/folder.rs"]
mod folder;

use std::path::Path;
use std::process::Command;

use antinoise_input::BadInput;
use antinoise_release::{Period, Release, Settings, Unit};
use folder::copy;

fn create(folder: &Path) -> Release {
    let settings = Settings { max_periods: 3, ..Settings::new(vec!["a".into()], 6, Unit::User) };
    Release::create(folder, &settings).unwrap()
}

fn go_on(release: &mut Release, period: i64) {
    let mut freezing = release.freeze(&Period::Number(period)).unwrap();
    freezing.add("ada", "a", None).unwrap();
    freezing.commit().unwrap();
    release.publish().unwrap();
}

fn refused(folder: &Path, named: &str) {
    let error = Release::open(folder).unwrap_err();
    assert!(error.is_bad_input() && error.to_string().contains(named), "{named:?} is not in {error}");
}

/// Overwrites files in place with the contents of others, as `cp` does.
fn write_over(from: &Path, to: &Path, names: &[&str]) {
    names
        .iter()
        .for_each(|name| std::fs::write(to.join(name), std::fs::read(from.join(name)).unwrap()).unwrap());
}

#[test]
fn a_backup_that_is_written_over_its_folder_in_place_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let (path, backup) = (root.path().join("release"), root.path().join("backup"));
    let mut release = create(&path);
    go_on(&mut release, 0);
    copy(&path, &backup);
    go_on(&mut release, 1);
    drop(release);
    write_over(&backup, &path, &["release.db", "secret", "seal"]);
    refused(&path, "a copy (seal ");
    // By name, if nothing was published since.
    Release::adopt(&path).unwrap();
    Release::open(&path).unwrap();
}

#[test]
fn copies_that_both_went_on_are_never_taken_for_one_another() {
    let root = tempfile::tempdir().unwrap();
    let (path, other) = (root.path().join("release"), root.path().join("other"));
    let mut release = create(&path);
    copy(&path, &other);
    refused(&other, "a copy (");
    let mut copied = Release::adopt(&other).unwrap();
    // The same events, so that only the tokens differ.
    (0..2).for_each(|period| go_on(&mut release, period));
    (0..2).for_each(|period| go_on(&mut copied, period));
    drop((release, copied));
    write_over(&other, &path, &["release.db"]);
    refused(&path, "older than its seal, or of a copy of the folder");
    write_over(&other, &path, &["release.db", "secret", "seal"]);
    refused(&path, "a copy (");
    std::fs::remove_file(path.join("seal")).unwrap();
    refused(&path, "is absent but must be as the last change wrote it");
    std::fs::write(other.join("seal"), "0\nkey = 1\n").unwrap();
    refused(&other, "seal is damaged");
}

#[test]
fn what_happens_to_any_folder_is_no_alarm() {
    let root = tempfile::tempdir().unwrap();
    let (path, moved) = (root.path().join("release"), root.path().join("moved"));
    go_on(&mut create(&path), 0);
    copy(&path, &root.path().join("backup"));
    std::fs::rename(&path, &moved).unwrap();
    let _ = Command::new("touch").arg(moved.join("release.db")).arg(moved.join("seal")).status();
    for period in 1..3 {
        go_on(&mut Release::open(&moved).unwrap(), period);
    }
    let database = rusqlite::Connection::open(moved.join("release.db")).unwrap();
    database.execute_batch("VACUUM").unwrap();
    Release::open(&moved).unwrap();
}

const INSIDE: &str = "ANTINOISE_TWO_TMPFS";

/// If this process may mount: two fresh file systems in memory assign the same inode numbers.
#[cfg(target_os = "linux")]
#[test]
fn a_copy_on_another_fresh_tmpfs_is_refused() {
    let may = |how: &&str| {
        Command::new("unshare").args([how, "true"]).status().is_ok_and(|status| status.success())
    };
    // As root, or as a user with a name space of one's own.
    let Some(how) = ["-m", "-rm"].into_iter().find(may) else {
        eprintln!(
            "no mounts are allowed here: the unit tests of `copy_detection` compare made-up file systems"
        );
        return;
    };
    let root = tempfile::tempdir().unwrap();
    let script = "mkdir one two && mount -t tmpfs tmpfs one && mount -t tmpfs tmpfs two && exec \"$0\" --exact inside --ignored";
    let inside = Command::new("unshare")
        .args([how, "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .current_dir(root.path())
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&inside.stdout);
    assert!(
        inside.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&inside.stderr)
    );
}

#[test]
#[ignore = "of two file systems that the test above mounts"]
#[cfg(target_os = "linux")]
fn inside() {
    use std::os::unix::fs::MetadataExt;
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let (one, two) = (Path::new("one/release"), Path::new("two/release"));
    go_on(&mut create(one), 0);
    std::fs::create_dir(two).unwrap();
    let inode = |path: &Path| path.metadata().unwrap().ino();
    let mut files: Vec<_> = std::fs::read_dir(one).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort_by_key(|path| inode(path));
    for file in files {
        let to = two.join(file.file_name().unwrap());
        // Creates other files until the next inode number is that of the file.
        for other in 0.. {
            std::fs::copy(&file, &to).unwrap();
            if inode(&to) == inode(&file) {
                break;
            }
            assert!(inode(&to) < inode(&file), "numbers grow from 1 on");
            std::fs::rename(&to, format!("two/{other}-{}", inode(&to))).unwrap();
        }
    }
    refused(two, "a copy (");
    Release::open(one).unwrap();
}

/// The noise of a period is made once, even where its publication could not be written: a second attempt uses
/// the same, and the next period the next.
#[test]
fn a_publication_that_could_not_be_written_has_the_same_noise_the_next_time() {
    let root = tempfile::tempdir().unwrap();
    let (path, other) = (root.path().join("release"), root.path().join("other"));
    let mut release = create(&path);
    go_on(&mut release, 0);
    let freeze = |release: &mut Release, period| {
        let mut freezing = release.freeze(&Period::Number(period)).unwrap();
        freezing.add("ada", "a", None).unwrap();
        freezing.commit().unwrap();
    };
    freeze(&mut release, 1);
    copy(&path, &other);
    // A seal cannot be written where a folder is.
    let (seal, aside) = (path.join("seal"), root.path().join("aside"));
    std::fs::rename(&seal, &aside).unwrap();
    std::fs::create_dir(&seal).unwrap();
    assert!(release.publish().unwrap_err().to_string().contains("seal"));
    std::fs::remove_dir(&seal).unwrap();
    std::fs::rename(&aside, &seal).unwrap();
    let mut copied = Release::adopt(&other).unwrap();
    assert_eq!(release.publish().unwrap(), copied.publish().unwrap());
    for release in [&mut release, &mut copied] {
        freeze(release, 2);
    }
    assert_eq!(release.publish().unwrap(), copied.publish().unwrap());
}
