//! `antinoise noise`: rows of C^-1 Z in a NumPy file.

use std::fmt;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use antinoise_input::files::Access;
use antinoise_input::{InvalidParameter, between, hex, positive};
use antinoise_noise::{Key, NoiseStream, RunId, Shard};
use clap::Args;
use serde::Serialize;

use crate::destination::{Destination, Overwriting};
use crate::failure::{Failure, Result};
use crate::numbers::{count, real};
use crate::progress::Progress;
use crate::signals::Stop;
use crate::source::SourceOptions;

/// Write steps of correlated noise to a NumPy file of float32.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  head -c 32 /dev/urandom > key && chmod 600 key
  antinoise noise --strategy blt:4 --steps 1000 --dim 1e6 --key-file key \\
      --count 10 --out noise.npy
  antinoise noise --strategy blt:4 --steps 1000 --dim 1e6 --key-file key \\
      --from 500 --count 1 --shard 0/8 --out part.npy
  antinoise loss --strategy blt:4 --steps 100 --out blt.toml
  antinoise noise --strategy file:blt.toml --steps 100 --dim 60k \\
      --key-file key --run second --out other.npy
  antinoise plan --examples 60k --batch-size 500 --epochs 4 --epsilon 4 \\
      --delta 1e-5 --setting cyclic --out plan.toml
  antinoise noise --plan plan.toml --dim 60k --key-file key --count 3 \\
      --out planned.npy

Row t is step FROM + t of one stream. A stream is determined by a key, a run and a
description: the strategy with every bit of its coefficients, --steps, --dim and
--noise-std. The same three give the same bits in every process, for any --from,
--count and --shard. Streams that differ in any of the three share no bit. Use
another run for another data set, and for a second training on the same one. With
--plan, --noise-std is the plan's, and rows lie on its grid.

Processes that make parts of one stream should read one saved strategy (file:PATH)
and print the same description: a strategy designed on another machine may differ
in its last bits.

Only the owner can read OUT: anyone who knows the noise can subtract it."
)]
pub struct Arguments {
    #[command(flatten)]
    source: SourceOptions,
    /// Number of coordinates of the whole stream: the model's parameters.
    #[arg(long, value_name = "M", value_parser = count)]
    dim: usize,
    /// First step to write.
    #[arg(long, value_name = "T", value_parser = count, default_value = "0")]
    from: usize,
    /// Number of steps to write [default: all following ones].
    #[arg(long, value_name = "K", value_parser = count)]
    count: Option<usize>,
    /// Write only part I of J of the coordinates, counting I from 0.
    #[arg(long, value_name = "I/J", default_value = "0/1", allow_hyphen_values = true)]
    shard: String,
    /// Standard deviation of the seed noise.
    #[arg(long, value_name = "NU", default_value = "1", value_parser = real, conflicts_with = "plan")]
    noise_std: f64,
    /// File with the key, readable only by its owner: 32 random bytes, or 64 hexadecimal digits.
    #[arg(long, value_name = "FILE")]
    key_file: PathBuf,
    /// Name of the run: under one key, two runs share no bit.
    #[arg(long, value_name = "NAME", default_value_t)]
    run: RunId,
    /// NumPy file to write: COUNT rows of the shard's coordinates.
    #[arg(long, value_name = "FILE.npy")]
    out: PathBuf,
    #[command(flatten)]
    overwriting: Overwriting,
}

/// Number of coordinates that are written at a time.
const PORTION: usize = 1 << 14;

/// Output of `antinoise noise`.
#[derive(Debug, Serialize)]
pub struct WrittenNoise {
    out: PathBuf,
    strategy: &'static str,
    run: String,
    /// Digest of everything except key and run that determines the noise.
    description: String,
    rows: usize,
    columns: usize,
    from: usize,
    state: String,
    state_bytes: u64,
    seconds: f64,
}

/// Makes the noise and writes it.
pub fn run(arguments: &Arguments) -> Result<WrittenNoise> {
    let (problem, plan) = arguments.source.problem()?;
    let steps = antinoise_input::at_least("steps", problem.steps, 1)?;
    antinoise_input::at_least("dim", arguments.dim, 1)?;
    positive("noise_std", arguments.noise_std)?;
    between("from", arguments.from, 0, steps - 1, "steps - 1")?;
    let rest = steps - arguments.from;
    let rows = between("count", arguments.count.unwrap_or(rest), 1, rest, "steps - from")?;
    let (index, parts) = shard(&arguments.shard)?;
    let shard = Shard::part(index, parts, arguments.dim)?;
    if let Some(plan) = &plan {
        plan.check_dim(arguments.dim)?;
    }
    let source = arguments.source.solve_for(problem, plan)?;
    let (strategy, plan) = (source.solution.value, source.plan);
    let out = Destination::new("out", &arguments.out, arguments.overwriting)?;
    let key = Key::from_file(&arguments.key_file)?;
    out.refuse_to_be("key_file", &arguments.key_file)?;
    out.check_room(4 * rows as u128 * shard.len() as u128)?;
    let recursion = strategy.recursion()?;
    let noise_std = plan.as_ref().map_or(arguments.noise_std, |plan| plan.noise_std());
    let builder = NoiseStream::builder(recursion, steps, arguments.dim, noise_std)
        .shard(shard)
        .run(arguments.run.clone());
    let grid = plan.as_ref().map_or(Ok(None), |plan| plan.arithmetic.grid())?;
    let mut stream = builder.grid(grid).build(key)?;
    // Installed before the first output, so that a signal sent after that output is handled.
    let stop = Stop::on_signals()?;
    eprintln!("noise: {}", stream.placement());
    let start = std::time::Instant::now();
    stream.seek(arguments.from)?;
    write(&mut stream, rows, &out, &stop)?;
    let placement = stream.placement();
    Ok(WrittenNoise {
        out: arguments.out.clone(),
        strategy: strategy.class().name(),
        run: arguments.run.to_string(),
        description: hex(&stream.description()),
        rows,
        columns: stream.len(),
        from: arguments.from,
        state: format!("{:?}", placement.state).to_lowercase(),
        state_bytes: placement.bytes,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// "I/J" with I below J.
fn shard(text: &str) -> Result<(usize, usize)> {
    let pair = text.split_once('/').and_then(|(i, j)| Some((i.parse().ok()?, j.parse().ok()?)));
    match pair {
        Some((index, parts)) if index < parts => Ok((index, parts)),
        _ => Err(InvalidParameter::new("shard", format!("{text:?}"), "I/J, I from 0 and below J").into()),
    }
}

/// Writes rows to a temporary file next to `out` and renames it when it is complete; a signal removes it.
fn write(stream: &mut NoiseStream, rows: usize, out: &Destination, stop: &Stop) -> Result<()> {
    let failed = |error: std::io::Error| Failure::other(format!("out: {}: {error}", out.path().display()));
    let mut writer = BufWriter::with_capacity(1 << 20, out.create(Access::Owner)?);
    writer.write_all(&npy_header(rows, stream.len())).map_err(failed)?;
    let mut row = vec![0f32; stream.len()];
    let mut bytes = Vec::with_capacity(4 * PORTION);
    let progress = Progress::new("noise", "rows", rows as u64);
    for _ in 0..rows {
        stream.next_into(&mut row)?;
        for portion in row.chunks(PORTION) {
            if stop.asked().load(Ordering::Relaxed) {
                return Err(Failure::stopped("stopped; nothing is left of the file", stop.status()));
            }
            bytes.clear();
            bytes.extend(portion.iter().flat_map(|x| x.to_le_bytes()));
            writer.write_all(&bytes).map_err(failed)?;
        }
        progress.advance(1);
    }
    let file = writer.into_inner().map_err(|error| failed(error.into_error()))?;
    file.commit().map_err(failed)
}

/// The header of version 1.0 of NumPy's format, padded so that the numbers start at a multiple of 64.
fn npy_header(rows: usize, columns: usize) -> Vec<u8> {
    let mut text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    while (10 + text.len() + 1) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    let length = (text.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], text.as_bytes()].concat()
}

impl fmt::Display for WrittenNoise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} steps from {} of {}, {} coordinates; {} state, {}; {:.2} s\nrun {}, description {}",
            self.out.display(),
            self.rows,
            self.from,
            self.strategy,
            self.columns,
            self.state,
            crate::output::bytes(self.state_bytes),
            self.seconds,
            self.run,
            self.description
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_numpys() {
        let header = npy_header(3, 1000);
        assert_eq!(header.len() % 64, 0);
        assert_eq!(u16::from_le_bytes([header[8], header[9]]) as usize, header.len() - 10);
        assert!(header.ends_with(b"\n") && header.starts_with(b"\x93NUMPY"));
    }

    #[test]
    fn shards_are_read() {
        assert_eq!(shard("2/3").unwrap(), (2, 3));
        for text in ["", "1", "3/3", "-1/2", "a/b", "0/0", "1/2/3"] {
            assert!(shard(text).is_err(), "{text}");
        }
    }
}
