//! Measures the errors of marginals next to what a release without them can do at the same (epsilon, delta):
//! a release for each table, with the budget split evenly, and a release of the full table, summed up.
//!
//! ```text
//! cargo run --release -p antinoise-release --example marginals -- STREAMS
//! ```
//!
//! The error of a table is the root mean square over its cells, all periods and the releases, in rows.

mod simulation;

use simulation::{Way, deviations, errors};

/// Numbers of categories of each column, and the numbers of columns of the published tables.
const SHAPES: [(&[usize], &[usize]); 4] =
    [(&[10, 10], &[1, 2]), (&[10, 10], &[0, 1, 2]), (&[10, 5, 4], &[1, 2]), (&[4, 4, 4, 4], &[1, 2])];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let releases = std::env::args().nth(1).map_or(Ok(50), |text| text.parse())?;
    println!(
        "| columns | table | marginals, stated | measured | a release for each table | the full table, summed |"
    );
    println!("|---|---|---|---|---|---|");
    for (sizes, ways) in SHAPES {
        let stated = deviations(sizes, ways)?;
        let [marginals, apart, full] =
            [Way::Marginals, Way::Apart, Way::Full].map(|way| errors(way, sizes, ways, releases));
        let (marginals, apart, full) = (marginals?, apart?, full?);
        let columns = sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ");
        let all = |errors: &[f64]| (errors.iter().map(|x| x * x).sum::<f64>() / errors.len() as f64).sqrt();
        let line = |name: &str, figures: [f64; 4]| {
            let figures = figures.map(|figure| format!("{figure:.1}")).join(" | ");
            println!("| {columns} | {name} | {figures} |");
        };
        for (at, (name, stated)) in stated.iter().enumerate() {
            line(name, [*stated, marginals[at], apart[at], full[at]]);
        }
        let stated: Vec<f64> = stated.iter().map(|(_, stated)| *stated).collect();
        line("root mean square of all tables", [all(&stated), all(&marginals), all(&apart), all(&full)]);
    }
    Ok(())
}
