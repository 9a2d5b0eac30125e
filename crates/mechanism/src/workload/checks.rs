//! Checks of the parameters of workloads.

use antinoise_input::{InvalidParameter, at_least, positive};

use crate::Result;

pub(super) fn coefficients(coefficients: &[f64]) -> Result<()> {
    let first = *coefficients
        .first()
        .ok_or_else(|| InvalidParameter::new("coefficients", "empty", "at least one number"))?;
    positive("coefficients[0]", first)?;
    check_finite("coefficients", coefficients)
}

pub(super) fn rates(rates: &[f64]) -> Result<()> {
    at_least("number of rates", rates.len(), 1)?;
    non_negative("rates", rates)
}

fn non_negative(name: &str, numbers: &[f64]) -> Result<()> {
    check_finite(name, numbers)?;
    match numbers.iter().position(|&x| x < 0.0) {
        Some(index) => {
            let got = format!("{:?} at index {index}", numbers[index]);
            Err(InvalidParameter::new(name, got, "0 or above everywhere").into())
        }
        None => Ok(()),
    }
}

/// Refuses numbers of which one is not finite or below 0, or all are 0; there may be none.
pub(super) fn none_or_some_positive(name: &str, numbers: &[f64]) -> Result<()> {
    if !numbers.is_empty() && numbers.iter().all(|&x| x == 0.0) {
        return Err(InvalidParameter::new(name, "0 everywhere", "above 0 somewhere").into());
    }
    non_negative(name, numbers)
}

pub(super) fn prefix_share(share: f64) -> Result<()> {
    match (1e-4..=1e4).contains(&share) {
        true => Ok(()),
        false => Err(InvalidParameter::new("prefix_share", share, "from 1e-4 to 1e4").into()),
    }
}

pub(super) fn rows(rows: &[Vec<f64>]) -> Result<()> {
    at_least("workload's rows", rows.len(), 1)?;
    for (i, row) in rows.iter().enumerate() {
        let name = format!("workload's row {i}");
        if row.len() != i + 1 {
            return Err(InvalidParameter::new(
                name,
                format!("{} numbers", row.len()),
                format!("{} numbers", i + 1),
            )
            .into());
        }
        check_finite(&name, row)?;
    }
    Ok(())
}

/// Refuses rows of different lengths, numbers that are not finite, and batches of zeros.
pub(super) fn queries(rows: &[Vec<f64>]) -> Result<()> {
    at_least("number of queries", rows.len(), 1)?;
    at_least("length of a query", rows[0].len(), 1)?;
    for (i, row) in rows.iter().enumerate() {
        if row.len() != rows[0].len() {
            let must_be = format!("{} numbers, as the first", rows[0].len());
            return Err(InvalidParameter::new(
                format!("query {i}"),
                format!("{} numbers", row.len()),
                must_be,
            )
            .into());
        }
        check_finite(&format!("query {i}"), row)?;
    }
    match rows.iter().flatten().all(|&x| x == 0.0) {
        true => Err(InvalidParameter::new("queries", "0 everywhere", "a query that is not 0").into()),
        false => Ok(()),
    }
}

fn check_finite(name: &str, numbers: &[f64]) -> Result<()> {
    match numbers.iter().position(|x| !x.is_finite()) {
        Some(index) => {
            let got = format!("{:?} at index {index}", numbers[index]);
            Err(InvalidParameter::new(name, got, "finite everywhere").into())
        }
        None => Ok(()),
    }
}
