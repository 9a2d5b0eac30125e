//! What is fuzzed, and what must hold of every input: no panic, no abort, and what each target says.

mod arrow;
mod checkpoint;
mod database;
mod events;
mod files;
mod key;
mod ledger;
mod parquet;
mod plan;
mod release;
mod strategy;
mod text;
mod training;

/// A parser and what must hold of it.
pub struct Target {
    /// As the environment variable `TARGET` has it.
    pub name: &'static str,
    /// Panics where something does not hold; whether the input is accepted, or refused by what is to be
    /// explored.
    pub run: fn(&[u8]) -> bool,
    /// Inputs that are accepted.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Whether what is fuzzed catches panics of libraries.
    pub catches_panics: bool,
}

const fn target(name: &'static str, run: fn(&[u8]) -> bool, seeds: fn() -> Vec<Vec<u8>>) -> Target {
    Target { name, run, seeds, catches_panics: false }
}

/// All of them.
pub const TARGETS: &[Target] = &[
    target("plan", plan::run, plan::seeds),
    target("strategy", strategy::run, strategy::seeds),
    target("text", text::run, text::seeds),
    target("settings", text::settings, text::seeds_of_settings),
    target("key", key::run, key::seeds),
    target("noise-checkpoint", checkpoint::run, checkpoint::seeds),
    target("events", events::run, events::seeds),
    target("arrow", arrow::run, arrow::seeds),
    Target { catches_panics: true, ..target("parquet", parquet::run, parquet::seeds) },
    target("ledger", ledger::run, ledger::seeds),
    target("release", release::run, release::seeds),
    target("idx", training::idx::run, training::idx::seeds),
    Target { catches_panics: true, ..target("png", training::png::run, training::png::seeds) },
    target("table", training::table::run, training::table::seeds),
    target("training-checkpoint", training::checkpoint::run, training::checkpoint::seeds),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Every input to start from is kept, as the fuzzer asks of it, and stands in `corpus/`.
    #[test]
    fn inputs_to_start_from_are_kept() {
        let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        for target in TARGETS {
            let files: Vec<_> = std::fs::read_dir(corpus.join(target.name))
                .unwrap()
                .map(|file| file.unwrap().path())
                .collect();
            assert!(!files.is_empty(), "{}", target.name);
            for file in files {
                assert!((target.run)(&std::fs::read(&file).unwrap()), "{}", file.display());
            }
        }
    }
}
