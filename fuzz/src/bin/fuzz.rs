//! libFuzzer on the target that the environment variable `TARGET` names; `TARGET=seeds` writes what each one
//! starts from to `corpus/`.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use antinoise_fuzz::{TARGETS, Target};
use libfuzzer_sys::{Corpus, fuzz_target};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("TARGET").unwrap_or_default();
    if name == "seeds" {
        write_seeds().expect("the corpus can be written");
        std::process::exit(0);
    }
    TARGETS.iter().find(|target| target.name == name).unwrap_or_else(|| {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        panic!("TARGET is {name:?} but must be seeds or one of {}", names.join(", "))
    })
});

/// Small inputs that are accepted, or refused by what is to be explored.
fn write_seeds() -> std::io::Result<()> {
    for target in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
        std::fs::create_dir_all(&folder)?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            assert!((target.run)(seed), "seed {number} of {} is not kept", target.name);
            std::fs::write(folder.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}

fuzz_target!(
    init: {
        LazyLock::force(&TARGET);
        if TARGET.catches_panics {
            // A panic that is caught is no finding; one that leaves the target still ends the process.
            std::panic::set_hook(Box::new(|_| ()));
        }
    },
    |data: &[u8]| -> Corpus {
        if (TARGET.run)(data) { Corpus::Keep } else { Corpus::Reject }
    }
);
