//! The share of a sweep that is checked each time.

/// Whether every case of a sweep is checked: with `ANTINOISE_SWEEPS=whole`, which `scripts/long.sh sweeps`
/// sets.
pub fn is_whole() -> bool {
    std::env::var_os("ANTINOISE_SWEEPS").is_some_and(|sweeps| sweeps == "whole")
}
