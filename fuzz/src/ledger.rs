//! Ledgers, of which bytes or rows were altered.

use std::sync::LazyLock;

use antinoise_ledger::{Error, Ledger};
use antinoise_plan::{Length, PrivacyUnit, Request, Setting, VerifiedPlan, choose};

use crate::database::altered;
use crate::files::folder;

const MIN_SEP: usize = 3;
const MOST: usize = 2;
const TABLES: &[(&str, &[&str])] = &[
    ("run", &["name", "value"]),
    ("participations", &["user", "step"]),
    ("releases", &["step", "base", "noisy_sum"]),
];

struct Saved {
    plan: VerifiedPlan,
    file: Vec<u8>,
}

static SAVED: LazyLock<Saved> = LazyLock::new(|| {
    let setting = Setting::Federated { min_sep: MIN_SEP, max_participations: Some(MOST) };
    let request = Request {
        unit: PrivacyUnit::User,
        thorough: false,
        ..Request::new(40, 2, Length::Steps(8), setting)
    };
    let plan = choose(&request).expect("a plan").plan;
    let path = folder("ledgers").join("saved.db");
    let mut ledger = Ledger::open(&path, &plan, "0").expect("a ledger");
    for users in [&["ada", "grace"][..], &["edsger"], &[], &["ada", "barbara"]] {
        let charged = ledger.charge(users).expect("they may");
        ledger.release(charged, "base", &[1, 2, 3]).expect("a release");
    }
    drop(ledger);
    Saved { plan, file: std::fs::read(path).expect("a file") }
});

/// What still opens keeps the plan's limits, and goes on.
pub fn run(data: &[u8]) -> bool {
    let path = folder("ledgers").join("ledger.db");
    for end in ["", "-wal", "-shm", "-journal"] {
        let _ = std::fs::remove_file(format!("{}{end}", path.display()));
    }
    altered(&path, &SAVED.file, data, TABLES);
    if let Err(error) = looked_at(&path) {
        assert!(error.is_bad_input(), "{error:?}");
    }
    true
}

fn looked_at(path: &std::path::Path) -> Result<(), Error> {
    let mut ledger = Ledger::open(path, &SAVED.plan, "0")?;
    let mut all = ledger.participations()?;
    all.sort();
    for pair in all.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        assert!(pair[1].1 >= pair[0].1 + MIN_SEP, "{pair:?}");
    }
    assert!(all.windows(MOST + 1).all(|some| some[0].0 != some[MOST].0), "{all:?}");
    let observed = ledger.observed()?;
    assert!(observed.participations <= all.len() && observed.steps <= 8);
    ledger.last_release()?;
    if ledger.step() < 8 {
        let charged = ledger.charge(&["somebody new"])?;
        ledger.release(charged, "", &[])?;
    }
    Ok(())
}

pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        vec![],
        vec![0],
        vec![0, 100, 0, 0],
        vec![1, 5, 0, 0, 40, b'a', b'd', b'a', 1, 9],
        vec![1, 4, 0, 1],
        vec![1, 10, 1, 0, 1, 4],
    ]
}
