//! Open-ended releases, compared by their errors with releases for a known number of periods.

use std::collections::HashMap;

use antinoise_mechanism::Workload;

use crate::chain::Chain;
use crate::links::{Growth, LONGEST, Links};
use crate::{Query, Result, Settings};

/// Numbers of periods at which they are compared.
pub const HORIZONS: [usize; 5] = [100, 365, 1000, 10_000, 1_000_000];
/// Minimum number of periods of the first link.
const FIRST: usize = 128;
/// Periods of each link if figures reach back only for a limited time: nothing is carried on for longer.
const EVEN: usize = 1024;

/// The errors of running counts with these links.
#[derive(Debug, Clone, PartialEq)]
pub struct Horizons {
    /// The links.
    pub links: Links,
    /// For each of [`HORIZONS`]: the largest standard deviation over that many periods, relative to a release
    /// made for exactly that many.
    pub largest: Vec<f64>,
    /// For each of [`HORIZONS`]: the root mean square of the standard deviations, relative to the same.
    pub rms: Vec<f64>,
}

impl Horizons {
    /// The largest of these ratios.
    pub fn worst(&self) -> f64 {
        self.largest.iter().chain(&self.rms).copied().fold(0.0, f64::max)
    }
}

/// Compares three growth rules for users of `max_periods` periods: constant links of the maximum length (one
/// mechanism for 2^24 periods), doubling links, and squaring links.
///
/// # Errors
/// If a setting cannot be used, or no mechanism can be made for it.
pub fn horizons(settings: &Settings) -> Result<Vec<Horizons>> {
    let settings = Settings { queries: vec![(Query::Counts, 1.0)], ..settings.clone() };
    let first = first(&settings);
    let candidates = [
        Links { first: LONGEST, growth: Growth::Even },
        Links { first, growth: Growth::Doubles },
        Links { first, growth: Growth::Squares },
    ];
    let mut designs = HashMap::new();
    let known = HORIZONS.map(|periods| {
        let links = Links { first: periods.max(settings.max_periods), growth: Growth::Even };
        Chain::remembered(&settings, links, &mut designs)?.errors(periods)
    });
    let known = known.into_iter().collect::<Result<Vec<_>>>()?;
    let compared = candidates.into_iter().map(|links| {
        let chain = Chain::remembered(&settings, links, &mut designs)?;
        let (mut largest, mut rms) = (Vec::new(), Vec::new());
        for (periods, known) in HORIZONS.into_iter().zip(&known) {
            let found = chain.errors(periods)?;
            largest.push(found.0 / known.0);
            rms.push(found.1 / known.1);
        }
        Ok(Horizons { links, largest, rms })
    });
    compared.collect()
}

impl Settings {
    /// These settings without an end: with the links of the smallest [`Horizons::worst`], or with links of
    /// constant length if figures reach back only for a limited time.
    ///
    /// # Errors
    /// If a setting cannot be used, or no mechanism can be made for it.
    pub fn endless(&self) -> Result<Self> {
        if self.queries.iter().all(|(query, _)| query.workload() != Workload::Prefix) {
            let links = Links { first: EVEN.max(first(self)), growth: Growth::Even };
            return Ok(self.clone().with_links(links));
        }
        let compared = horizons(self)?;
        let least = compared.iter().min_by(|x, y| x.worst().total_cmp(&y.worst())).expect("there are three");
        Ok(self.clone().with_links(least.links))
    }
}

/// A power of two that is at least twice the number of periods in which a user may be counted.
fn first(settings: &Settings) -> usize {
    FIRST
        .max(settings.max_periods.saturating_mul(2).checked_next_power_of_two().unwrap_or(LONGEST))
        .min(LONGEST)
}
