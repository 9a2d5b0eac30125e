//! Releases without an end, compared by their errors with releases whose number of periods was known.

use std::collections::HashMap;

use antinoise_mechanism::Workload;

use crate::chain::Chain;
use crate::links::{Growth, LONGEST, Links};
use crate::{Query, Result, Settings};

/// Periods after which they are compared.
pub const HORIZONS: [usize; 5] = [100, 365, 1000, 10_000, 1_000_000];
/// Periods of the first link, at least.
const FIRST: usize = 128;
/// Periods of each link where figures reach back for a while alone: nothing is carried on for longer.
const EVEN: usize = 1024;

/// The errors of running counts with these links.
#[derive(Debug, Clone, PartialEq)]
pub struct Horizons {
    /// The links.
    pub links: Links,
    /// For each of [`HORIZONS`]: the largest standard deviation over so many periods, over that of a release that is made for so many.
    pub largest: Vec<f64>,
    /// Their root mean square, over the same.
    pub rms: Vec<f64>,
}

impl Horizons {
    /// The worst of its figures.
    pub fn worst(&self) -> f64 {
        self.largest.iter().chain(&self.rms).copied().fold(0.0, f64::max)
    }
}

/// Compares links that stay as long as the longest (one mechanism for 2^24 periods), that double and that grow by squares, for users of `max_periods`
/// periods.
///
/// # Errors
/// When a setting cannot be used, or no mechanism can be made for it.
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
    /// The same without an end, with the links of the least [`Horizons::worst`]; with even ones where figures only reach back for a while.
    ///
    /// # Errors
    /// When a setting cannot be used, or no mechanism can be made for it.
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

/// A power of two, and twice as many periods as a user may be counted in.
fn first(settings: &Settings) -> usize {
    FIRST
        .max(settings.max_periods.saturating_mul(2).checked_next_power_of_two().unwrap_or(LONGEST))
        .min(LONGEST)
}
