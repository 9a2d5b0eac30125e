//! The federation of the example, smaller: its server is killed repeatedly, and the ledger is counted by SQL.

#[path = "../examples/federation/simulation.rs"]
mod simulation;

use std::path::Path;
use std::process::{Command, Stdio};

use simulation::{Draws, Federation};

const SMALL: Federation = Federation {
    users: 20_000,
    cohort: 100,
    rounds: 150,
    min_sep: 20,
    most: 5,
    dim: 10_000,
    saved_every: 10,
    summed: 10,
};
const KILLS: usize = 8;
/// The folder of the run of this process.
const LIFE: &str = "ANTINOISE_LIFE";

#[test]
#[ignore = "a life of a server that is to be killed"]
fn life() {
    let Some(folder) = std::env::var_os(LIFE) else { return };
    SMALL.live(Path::new(&folder)).unwrap();
}

#[test]
fn a_killed_server_keeps_every_limit() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    SMALL.begin(folder).unwrap();
    let born = || {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "life", "--ignored", "--test-threads=1", "--nocapture"])
            .env(LIFE, folder)
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let whole = SMALL.kill(folder, KILLS, &mut Draws(1), born);
    let account = SMALL.account(folder).unwrap();
    println!("{account}");
    assert!(account.least_gap >= SMALL.min_sep && account.most <= SMALL.most);
    assert!(account.noisy_sums == SMALL.rounds && account.smallest_round >= SMALL.cohort);
    // Users of a round that a kill interrupted stay charged, and some users take part as often as they may.
    assert!(account.participations >= SMALL.rounds * SMALL.cohort && account.most == SMALL.most);
    assert!(account.users > SMALL.users / 10 && account.bytes > 0 && account.peak_mib < 2048.0);
    assert!(account.ledger_share + account.noise_share < 1.0 && account.seconds <= whole.as_secs_f64());
}
