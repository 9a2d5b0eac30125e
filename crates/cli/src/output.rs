//! Output of a command, as one JSON object or as text.

use std::fmt::Display;
use std::io::Write;

use antinoise_accounting::{Markup, delta_warning};
use serde::Serialize;

use crate::failure::{Failure, Result};

/// Prints `report` on stdout.
pub fn print(report: &(impl Serialize + Display), json: bool) -> Result<()> {
    let text = if json {
        serde_json::to_string(report).map_err(Failure::other)?
    } else {
        report.to_string().trim_end().to_string()
    };
    match writeln!(std::io::stdout().lock(), "{text}") {
        // The reader of the pipe has read enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| Failure::other(format!("stdout: {error}"))),
    }
}

/// Warns on stderr of a delta of 1/N or more, for N units. `unit` is the word for a unit.
pub fn warn_of_delta(delta: f64, units: usize, unit: impl Display) {
    if let Some(warning) = delta_warning(delta, units, &unit.to_string()) {
        eprintln!("warning: {warning}");
    }
}

/// Rows of cells under a header, each column as wide as it needs; the first is left-aligned.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).chain([header[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let padded: Vec<String> = cells
            .iter()
            .zip(&widths)
            .enumerate()
            .map(
                |(i, (cell, &width))| {
                    if i == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                },
            )
            .collect();
        format!("{}\n", padded.join("  ").trim_end())
    };
    let rule = "-".repeat(widths.iter().sum::<usize>() + 2 * (widths.len() - 1));
    let body: String = rows.iter().map(|row| line(row.iter().map(String::as_str).collect())).collect();
    format!("{}{rule}\n{body}", line(header.to_vec()))
}

/// Rows of cells under a header in `markup`; the first column is left-aligned.
pub fn marked_table(markup: Markup, header: &[&str], rows: &[Vec<String>]) -> String {
    let escaped = |cells: Vec<&str>, between: &str| -> String {
        cells.into_iter().map(|cell| markup.escaped(cell)).collect::<Vec<_>>().join(between)
    };
    let lines = || rows.iter().map(|row| row.iter().map(String::as_str).collect::<Vec<_>>());
    let others = header.len().saturating_sub(1);
    match markup {
        Markup::Text => table(header, rows),
        Markup::Markdown => {
            let line = |cells| format!("| {} |\n", escaped(cells, " | "));
            let body: String = lines().map(line).collect();
            format!("{}|---|{}\n{body}", line(header.to_vec()), "---:|".repeat(others))
        }
        Markup::Latex => {
            let line = |cells| format!("{} \\\\\n", escaped(cells, " & "));
            let body: String = lines().map(line).collect();
            let columns = "r".repeat(others);
            let header = line(header.to_vec());
            format!("\\begin{{tabular}}{{l{columns}}}\n{header}\\hline\n{body}\\end{{tabular}}\n")
        }
    }
}

/// Bytes of this machine's memory, if the system reports them.
pub fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(1024 * line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?)
}

/// A number of bytes as readable text.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut value, mut unit) = (count as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// A time as readable text, to two digits.
pub fn seconds(time: f64) -> String {
    let (value, unit) = match time {
        t if t < 1e-3 => (1e6 * t, "us"),
        t if t < 1.0 => (1e3 * t, "ms"),
        t => (t, "s"),
    };
    if value < 9.95 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}
