//! The program `antinoise`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(antinoise_cli::run(std::env::args_os()))
}
