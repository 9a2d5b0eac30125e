//! Open-ended releases: their errors of running counts relative to a release whose number of periods was
//! known.
//!
//! ```sh
//! cargo run --release -p antinoise-release --example horizons -- 1 7 60
//! ```
//!
//! Arguments: the maximum number of periods of a user, with one table for each.

use antinoise_release::{HORIZONS, Settings, Unit, horizons};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut given: Vec<usize> =
        std::env::args().skip(1).map(|most| most.parse()).collect::<Result<_, _>>()?;
    if given.is_empty() {
        given.push(1);
    }
    for max_periods in given {
        let settings = Settings { max_periods, ..Settings::new(vec!["all".into()], max_periods, Unit::User) };
        let columns: String = HORIZONS.iter().map(|periods| format!(" {periods} periods |")).collect();
        println!(
            "\n| K = {max_periods}: links |{columns} worst |\n|---|{}---|",
            "---|".repeat(HORIZONS.len())
        );
        let compared = horizons(&settings)?;
        let least = compared.iter().map(|found| found.worst()).fold(f64::INFINITY, f64::min);
        for found in compared {
            let lengths: Vec<_> = (0..3).map(|link| found.links.length(link).to_string()).collect();
            let cells = found.largest.iter().zip(&found.rms);
            let cells: String = cells.map(|(largest, rms)| format!(" {largest:.2}, {rms:.2} |")).collect();
            let worst = if found.worst() == least {
                format!("**{least:.2}**")
            } else {
                format!("{:.2}", found.worst())
            };
            println!("| {}, ... |{cells} {worst} |", lengths.join(", "));
        }
    }
    Ok(())
}
