//! Workloads and schemas, by name or from files of numbers.

use antinoise_input::InvalidParameter;
use antinoise_mechanism::{Participation, Workload};

/// A workload by name, or from a file of numbers.
pub fn workload(text: &str) -> std::result::Result<Workload, antinoise_mechanism::Error> {
    match text.split_once(':') {
        Some(("file", path)) => Ok(read_workload(path)?),
        Some(("schedule", given)) => Ok(read_schedule(given)?),
        Some(("learned", path)) => Ok(learned(path)?),
        Some(("last-iterate", given)) if given.matches(',').count() > 1 => last_iterate(given),
        _ => text.parse().map_err(with_files),
    }
}

/// The error of a workload that was not read, with the forms that name files.
fn with_files(mut error: antinoise_mechanism::Error) -> antinoise_mechanism::Error {
    if let antinoise_mechanism::Error::Invalid(InvalidParameter { parameter, must_be, .. }) = &mut error
        && parameter == "workload"
    {
        *must_be += "; from files file:PATH, schedule:PATH[,BETA], learned:PATH or last-iterate:BETA,PREFIX_SHARE,PATH";
    }
    error
}

/// Reads the workload of the last iterate from BETA,SHARE,PATH.
fn last_iterate(text: &str) -> std::result::Result<Workload, antinoise_mechanism::Error> {
    let (momentum, share_and_path) = text.split_once(',').unwrap_or((text, ""));
    let (share, path) = share_and_path.split_once(',').unwrap_or((share_and_path, ""));
    let constant: Workload = format!("last-iterate:{momentum},{share}").parse()?;
    let workload = constant.with_schedule(read_rates(path)?, 0.0);
    workload.check()?;
    Ok(workload)
}

/// Reads a workload that `antinoise probe` has saved.
fn learned(path: &str) -> std::result::Result<Workload, antinoise_mechanism::Error> {
    let refused = |got: String| {
        let must_be = "a file that antinoise probe --out has written";
        InvalidParameter::new(format!("learned workload {path}"), got, must_be)
    };
    let text = std::fs::read_to_string(path).map_err(|error| refused(format!("unreadable ({error})")))?;
    let workload: Workload = toml::from_str(&text).map_err(|error| refused(error.message().into()))?;
    if !matches!(workload, Workload::LastIterate { .. }) {
        return Err(refused(workload.to_string()).into());
    }
    workload.check()?;
    Ok(workload)
}

/// Reads a schedule from PATH or PATH,MOMENTUM.
fn read_schedule(text: &str) -> std::result::Result<Workload, InvalidParameter> {
    let number = |(path, number): (_, &str)| Some((path, number.trim().parse::<f64>().ok()?));
    let (path, momentum) = text.rsplit_once(',').and_then(number).unwrap_or((text, 0.0));
    Ok(Workload::Schedule { rates: read_rates(path)?, momentum })
}

/// Reads the learning rates of all steps.
fn read_rates(path: &str) -> std::result::Result<Vec<f64>, InvalidParameter> {
    let refused = |got: String| {
        InvalidParameter::new(
            format!("schedule file {path}"),
            got,
            "a file of numbers: one learning rate a step",
        )
    };
    let text = std::fs::read_to_string(path).map_err(|error| refused(format!("unreadable ({error})")))?;
    Ok(numbers::<f64>(&text).map_err(refused)?.concat())
}

fn read_workload(path: &str) -> std::result::Result<Workload, InvalidParameter> {
    let refused = |got: String| {
        let must_be = "a file of numbers: one a line, the rows of a lower-triangular matrix, or queries of equal length";
        InvalidParameter::new(format!("workload file {path}"), got, must_be)
    };
    let text = std::fs::read_to_string(path).map_err(|error| refused(format!("unreadable ({error})")))?;
    let rows = numbers::<f64>(&text).map_err(refused)?;
    if rows.iter().all(|row| row.len() == 1) && rows.len() > 1 {
        return Ok(Workload::Toeplitz { coefficients: rows.concat() });
    }
    let size = rows.len();
    let is_lower = |(i, row): (usize, &Vec<f64>)| {
        row.len() == i + 1 || row.len() == size && row[i + 1..].iter().all(|&x| x == 0.0)
    };
    if rows.iter().enumerate().all(is_lower) {
        let lower = |(i, row): (usize, Vec<f64>)| row[..=i].to_vec();
        return Ok(Workload::Matrix { rows: rows.into_iter().enumerate().map(lower).collect() });
    }
    let length = rows[0].len();
    match rows.iter().position(|row| row.len() != length) {
        Some(i) => Err(refused(format!("a row {i} of {} numbers after one of {length}", rows[i].len()))),
        None => Ok(Workload::Queries { rows }),
    }
}

/// A schema by name, or from a file that lists its patterns.
pub fn participation(text: &str) -> std::result::Result<Participation, antinoise_mechanism::Error> {
    let Some(path) = text.strip_prefix("file:") else { return text.parse() };
    let refused = |got: String| {
        let must_be = "a file with one pattern a line: steps from 0, in increasing order";
        InvalidParameter::new(format!("participation file {path}"), got, must_be)
    };
    let text = std::fs::read_to_string(path).map_err(|error| refused(format!("unreadable ({error})")))?;
    Ok(Participation::Patterns { patterns: numbers(&text).map_err(refused)? })
}

/// Rows of numbers, separated by commas or blanks; empty lines and comments, which begin with #, are left
/// out.
fn numbers<T: std::str::FromStr>(text: &str) -> std::result::Result<Vec<Vec<T>>, String> {
    let mut rows = Vec::new();
    for (line, content) in text.lines().enumerate() {
        let content = content.split('#').next().unwrap_or("");
        let words = content.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty());
        let row: Vec<T> = words
            .map(|word| word.parse().map_err(|_| format!("{word:?} on line {}", line + 1)))
            .collect::<std::result::Result<_, _>>()?;
        if !row.is_empty() {
            rows.push(row);
        }
    }
    if rows.is_empty() { Err("empty".into()) } else { Ok(rows) }
}
