//! Open-ended releases: their errors of running counts relative to a release whose number of periods was
//! known.
//!
//! ```sh
//! cargo run --release -p antinoise-release --example horizons -- 1 7 60
//! ```
//!
//! Arguments: the maximum number of periods of a user, with one table for each.

use std::collections::HashMap;

use antinoise_mechanism::{AnyStrategy, Strategy, Workload};
use antinoise_plan::VerifiedPlan;
use antinoise_release::{Growth, Release, Segments, Settings, Unit};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const HORIZONS: [usize; 5] = [100, 365, 1000, 10_000, 1_000_000];

/// The plans of segments, by their length.
struct Plans {
    max_periods: usize,
    found: HashMap<usize, VerifiedPlan>,
}

impl Plans {
    fn of_length(&mut self, length: usize) -> Result<&VerifiedPlan> {
        if !self.found.contains_key(&length) {
            let settings = Settings::new(vec!["all".into()], length, Unit::User);
            let settings = Settings { max_periods: self.max_periods, ..settings };
            let segments = Segments { first: length, growth: Growth::Even };
            let folder = tempfile::tempdir()?;
            let release = Release::create(folder.path(), &settings.with_segments(segments))?;
            self.found.insert(length, release.plan().clone());
        }
        Ok(&self.found[&length])
    }

    /// The maximum and the root mean square, over the first `periods` periods, of the standard deviation of
    /// running counts.
    fn errors(&mut self, segments: Segments, periods: usize) -> Result<[f64; 2]> {
        let (mut ended, mut sum, mut start, mut segment) = (0.0, 0.0, 0, 0);
        while start < periods {
            let plan = self.of_length(segments.length(segment))?;
            let AnyStrategy::Blt(blt) = &plan.strategy else { return Err("segments have BLTs".into()) };
            let (steps, seed) = (plan.steps.min(periods - start), plan.noise_std().powi(2));
            let error = blt.leading(steps)?.error(&Workload::Prefix)?;
            sum += steps as f64 * (ended + seed * error.rms.powi(2));
            ended += seed * error.max.powi(2);
            start += plan.steps;
            segment += 1;
        }
        // The standard deviation grows from period to period, so that the last one is the largest.
        Ok([f64::sqrt(ended), f64::sqrt(sum / periods as f64)])
    }

    /// For each of [`HORIZONS`], the errors relative to a release made for exactly that many periods.
    fn ratios(&mut self, segments: Segments) -> Result<Vec<[f64; 2]>> {
        let ratio = |periods: usize| {
            let known = Segments { first: periods.max(self.max_periods), growth: Growth::Even };
            let ([largest, rms], known) = (self.errors(segments, periods)?, self.errors(known, periods)?);
            Ok([largest / known[0], rms / known[1]])
        };
        HORIZONS.into_iter().map(ratio).collect()
    }
}

fn main() -> Result<()> {
    let mut given: Vec<usize> =
        std::env::args().skip(1).map(|most| most.parse()).collect::<std::result::Result<_, _>>()?;
    if given.is_empty() {
        given.push(1);
    }
    for max_periods in given {
        let columns: String = HORIZONS.iter().map(|periods| format!(" {periods} periods |")).collect();
        println!(
            "\n| K = {max_periods}: segments |{columns} worst |\n|---|{}---|",
            "---|".repeat(HORIZONS.len())
        );
        let mut plans = Plans { max_periods, found: HashMap::new() };
        let settings = Settings::new(vec!["all".into()], max_periods, Unit::User);
        let squares = Settings { max_periods, ..settings }.open_ended().segments.ok_or("open-ended")?;
        for segments in [
            Segments { first: 1 << 24, growth: Growth::Even },
            Segments { growth: Growth::Doubles, ..squares },
            squares,
        ] {
            let ratios = plans.ratios(segments)?;
            let lengths: Vec<_> = (0..3).map(|segment| segments.length(segment).to_string()).collect();
            let cells: String =
                ratios.iter().map(|[largest, rms]| format!(" {largest:.2}, {rms:.2} |")).collect();
            let worst = ratios.iter().flatten().copied().fold(0.0, f64::max);
            println!("| {}, ... |{cells} {worst:.2} |", lengths.join(", "));
        }
    }
    Ok(())
}
