//! How often intervals hold in simulated releases with heavy users: of the rows counted, of all rows, and of
//! the users at their bounds.
//!
//! ```sh
//! cargo run --release -p antinoise-release --example left_out -- 300
//! ```
//!
//! Argument: the number of releases for each unit. Prints the table of `docs/release.md`.

mod simulation;

use antinoise_release::Unit;
use simulation::{settings, simulate};

fn main() {
    let releases = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(300);
    println!(
        "| unit | query | truth | of all rows | width | holds its truth | holds all | lower end holds all |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for unit in [Unit::User, Unit::Event] {
        for of_query in simulate(&settings(unit), releases, 20_260_301) {
            let percent = |held: usize| format!("{:.1}%", 100.0 * held as f64 / releases as f64);
            let of_rows = |text: String| if of_query.query.starts_with("users") { "".into() } else { text };
            println!(
                "| {unit} | `{}` | {:.0} | {} | {:.0} | {} | {} | {} |",
                of_query.query,
                of_query.truth,
                of_rows(format!("{:.0}", of_query.all)),
                of_query.width,
                percent(of_query.held),
                of_rows(percent(of_query.held_all)),
                of_rows(percent(of_query.above_lower)),
            );
        }
    }
}
