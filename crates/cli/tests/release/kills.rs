//! Kills and full disks at any moment between freezing and publishing.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::{ALL_QUERIES, EVENTS, VALUE, freeze, init, init_with, json, refused};

/// Kills, spread over six periods.
const KILLS: u64 = 204;

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Runs a command and kills it after so long; whether it had not ended before.
#[cfg(unix)]
fn killed(folder: &Path, arguments: &[&str], after: Duration) -> bool {
    let mut child = Command::new(env!("CARGO_BIN_EXE_antinoise"))
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(after);
    let is_alive = child.try_wait().unwrap().is_none();
    let _ = child.kill();
    child.wait().unwrap();
    is_alive
}

/// `kill -9` at moments spread over freezing and publishing: whatever was done, the same figures are
/// published bit for bit, every user is within the bounds, and no period is published twice.
#[cfg(unix)]
#[test]
fn a_killed_release_publishes_the_same_bits() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    init_with(folder, "whole", &ALL_QUERIES);
    // A copy from before anything was frozen, with the same key: what it publishes may not differ. It is
    // adopted.
    copy(&folder.join("whole"), &folder.join("killed"));
    json(folder, &["release", "adopt", "killed"]);
    let mut took = Duration::MAX;
    for period in ["0", "1", "2", "3", "4", "5"] {
        let begun = Instant::now();
        freeze(folder, "whole", period);
        json(folder, &["release", "publish", "whole"]);
        took = took.min(begun.elapsed() / 2);
    }
    let all = |dir: &str| json(folder, &["release", "query", dir, "SELECT * FROM published"])["rows"].clone();
    let wanted = all("whole");
    let (mut random, mut kills, mut periods) = (1u64, 0, ["0", "1", "2", "3", "4", "5"].iter());
    for period in &mut periods {
        for _ in 0..KILLS / 6 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Moments from the first to a fifth beyond what a command takes here.
            let after = took.mul_f64(1.2 * (random >> 33) as f64 / 2f64.powi(31));
            let status = json(folder, &["release", "status", "killed"]);
            let done = status["frozen"].as_u64().unwrap() > period.parse::<u64>().unwrap();
            let arguments = match done {
                true => vec!["release", "publish", "killed"],
                false => [&["release", "freeze", "killed", period][..], &EVENTS, &VALUE].concat(),
            };
            kills += u64::from(killed(folder, &arguments, after));
        }
        if json(folder, &["release", "status", "killed"])["frozen"].as_u64().unwrap()
            <= period.parse().unwrap()
        {
            freeze(folder, "killed", period);
        }
        json(folder, &["release", "publish", "killed"]);
    }
    assert!(kills >= KILLS / 6, "{kills} of {KILLS} were killed before they ended");
    assert_eq!(all("killed"), wanted);
    let database = rusqlite::Connection::open(folder.join("killed/release.db")).unwrap();
    let number = |sql: &str| -> i64 { database.query_row(sql, [], |row| row.get(0)).unwrap() };
    // Of each period and key: a count, a window, three numbers and three shares of a cdf, and a quantile; of
    // each period: the users at their bounds.
    assert_eq!(number("SELECT COUNT(*) FROM published"), 6 * (3 * (1 + 1 + 6 + 1) + 2));
    let mut periods = std::collections::HashMap::<String, usize>::new();
    let release = antinoise_release::Release::open(&folder.join("killed")).unwrap();
    release
        .counted(|user, _, rows| {
            *periods.entry(user.into()).or_default() += 1;
            assert!(rows <= 2, "{user}");
        })
        .unwrap();
    assert!(periods.len() == 23 && periods.values().all(|periods| *periods <= 3));
}

/// Runs a command whose files may not grow beyond `blocks` blocks of 512 bytes: what writes beyond is
/// refused, as on a disk that is full.
#[cfg(unix)]
fn limited(folder: &Path, blocks: usize, arguments: &[&str]) -> Output {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let binary = env!("CARGO_BIN_EXE_antinoise");
    let arguments = [&["-c", &script, binary], arguments].concat();
    Command::new("sh").args(arguments).current_dir(folder).output().expect("there is a shell")
}

/// No room at any point of freezing and publishing: it is reported, nothing is lost, and once there is room
/// the same bits are published as by a release that never met it.
#[cfg(unix)]
#[test]
fn a_full_disk_loses_nothing() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    init_with(folder, "whole", &ALL_QUERIES);
    copy(&folder.join("whole"), &folder.join("full"));
    json(folder, &["release", "adopt", "full"]);
    let periods = ["0", "1", "2", "3", "4", "5"];
    for period in periods {
        freeze(folder, "whole", period);
        json(folder, &["release", "publish", "whole"]);
    }
    let all = |dir: &str| json(folder, &["release", "query", dir, "SELECT * FROM published"])["rows"].clone();
    let (mut failed, mut halfway) = ([0, 0], 0);
    for (done, period) in periods.into_iter().enumerate() {
        for blocks in (0..).step_by(3) {
            let status = json(folder, &["release", "status", "full"]);
            let [frozen, published] =
                ["frozen", "published"].map(|name| status[name].as_u64().unwrap() as usize);
            assert!(frozen - published <= 1 && published >= done);
            if published > done {
                break;
            }
            let is_publication = frozen > done;
            let output = match is_publication {
                true => limited(folder, blocks, &["release", "publish", "full"]),
                false => {
                    let freeze = ["release", "freeze", "full", period];
                    limited(folder, blocks, &[&freeze[..], &EVENTS, &VALUE].concat())
                }
            };
            if !output.status.success() {
                let stderr = String::from_utf8_lossy(&output.stderr);
                assert!(stderr.contains("full/"), "the file is named: {stderr}");
                failed[usize::from(is_publication)] += 1;
                let now = json(folder, &["release", "status", "full"])["published"].as_u64().unwrap();
                halfway += usize::from(now as usize > published);
            }
        }
    }
    assert!(failed.iter().all(|failed| *failed >= 12), "{failed:?}, {halfway} halfway");
    assert_eq!(all("full"), all("whole"));
    let counted = |dir: &str| {
        let mut counted = Vec::new();
        let release = antinoise_release::Release::open(&folder.join(dir)).unwrap();
        release.counted(|user, period, rows| counted.push((user.to_string(), period, rows))).unwrap();
        counted
    };
    assert_eq!(counted("full"), counted("whole"));
}

/// After the last period, the secret is gone, wherever the publication was stopped; what was published is
/// still read.
#[test]
fn the_secret_is_wiped_after_the_last_period() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    init(folder, "shops");
    let mut last_secret = Vec::new();
    for period in ["0", "1", "2", "3", "4", "5"] {
        freeze(folder, "shops", period);
        last_secret = std::fs::read(folder.join("shops/secret")).unwrap();
        let published = json(folder, &["release", "publish", "shops"]);
        assert_eq!(published["complete"], period == "5");
    }
    let secret = folder.join("shops/secret");
    assert!(!secret.exists());
    // As a process leaves it that was killed before it wiped.
    std::fs::write(&secret, &last_secret).unwrap();
    let half_written = folder.join("shops/.secret.tmp-17-0");
    std::fs::write(&half_written, last_secret).unwrap();
    let again = json(folder, &["release", "publish", "shops"]);
    assert!(
        again["complete"] == true && again["published"].as_array().unwrap().is_empty() && !secret.exists()
    );
    assert!(!half_written.exists(), "it holds the key");
    let status = json(folder, &["release", "status", "shops"]);
    assert_eq!((status["published"].as_u64(), status["complete"].as_bool()), (Some(6), Some(true)));
    let rows = json(folder, &["release", "query", "shops", "SELECT * FROM published"])["rows"].clone();
    assert_eq!(rows.as_array().unwrap().len(), 30);
    json(folder, &["release", "report", "shops", "--out", "page.html"]);
    let freeze = [&["release", "freeze", "shops", "6"][..], &EVENTS].concat();
    refused(folder, &freeze, "one of the 6 periods of the plan");
}
