//! A million users, 2,000 rounds of 1,000, noise for 10^6 parameters, and a server that is killed 20 times:
//!
//! ```sh
//! cargo run --release -p antinoise-ledger --example federation -- 1000000 1000 2000 100 10 1000000 20
//! ```
//!
//! The arguments are USERS COHORT ROUNDS MIN_SEP MOST DIM KILLS. Further arguments: a folder to keep, rounds
//! between saves of the noise, and the number of updates that are clipped and summed in a round (default 0).

mod simulation;

use std::path::Path;
use std::process::Command;

use antinoise_ledger::Ledger;
use antinoise_plan::Plan;
use simulation::{Draws, Federation};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.len() < 7 {
        return Err("USERS COHORT ROUNDS MIN_SEP MOST DIM KILLS [FOLDER [SAVED_EVERY [SUMMED]]]".into());
    }
    let numbers = words[..7].iter().map(|word| word.parse()).collect::<Result<Vec<usize>, _>>()?;
    let federation = Federation {
        users: numbers[0],
        cohort: numbers[1],
        rounds: numbers[2],
        min_sep: numbers[3],
        most: numbers[4],
        dim: numbers[5],
        saved_every: words.get(8).map_or(Ok(50), |word| word.parse())?,
        summed: words.get(9).map_or(Ok(0), |word| word.parse())?,
    };
    if let Some(folder) = std::env::var_os(LIFE) {
        return federation.live(Path::new(&folder));
    }
    let folder = words.get(7).map_or_else(|| std::env::temp_dir().join("antinoise-federation"), Into::into);
    std::fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let plan = federation.begin(&folder)?;
    println!("{}", plan.strategy.class().name());
    let born =
        || Command::new(std::env::current_exe().unwrap()).args(&words).env(LIFE, &folder).spawn().unwrap();
    let whole = federation.kill(&folder, numbers[6], &mut Draws(1), born);
    let account = federation.account(&folder)?;
    println!("{account}\n{:.0} s with all lives, {} killed", whole.as_secs_f64(), numbers[6]);
    assert!(account.least_gap >= federation.min_sep && account.most <= federation.most);
    assert!(account.noisy_sums == federation.rounds && account.smallest_round >= federation.cohort);
    let start = std::time::Instant::now();
    let plan = Plan::load(&folder.join("plan.toml"))?;
    let observed = Ledger::open_begun(&folder.join("ledger.db"), &plan)?.observed()?;
    let (read, start) = (start.elapsed(), std::time::Instant::now());
    let privacy = plan.observed(&observed.patterns)?;
    println!(
        "read in {:.1} s; {} patterns, epsilon {:.4} ({:?}: {}) in {:.1} s; the plan's {:.4}",
        read.as_secs_f64(),
        observed.patterns.len(),
        privacy.epsilon(plan.privacy.delta)?.upper,
        privacy.sensitivity.kind,
        privacy.sensitivity.source,
        start.elapsed().as_secs_f64(),
        plan.privacy.epsilon
    );
    Ok(())
}

/// The folder of the run of this process.
const LIFE: &str = "ANTINOISE_LIFE";
