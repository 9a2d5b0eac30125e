//! The segments of an open-ended release: their designs, the proof that all together have one (epsilon,
//! delta), and the errors of figures across segments.
//!
//! # Proof
//!
//! Segment i has the strategy C_i and seed noise of standard deviation nu_i, independent across segments. All
//! segments together are the matrix mechanism of the block-diagonal strategy diag(C_1 / nu_1, C_2 / nu_2,
//! ...) with noise of standard deviation 1. Let f_i(k) be the squared sensitivity of C_i G_i / nu_i to a unit
//! that is counted in any k periods of segment i. A unit is counted in K periods in all, k_i of them in
//! segment i, so the squared sensitivity of everything is at most sum f_i(k_i). The hypothesis, for the mu
//! with which a Gaussian mechanism is (epsilon, delta)-differentially private:
//!
//! ```text
//! f_i(k) <= (k / K) mu^2    for every segment i and every k = 1, ..., K.
//! ```
//!
//! Then sum f_i(k_i) <= sum (k_i / K) mu^2 <= mu^2: however a unit spreads its periods, and however many
//! segments there are, the whole has the (epsilon, delta) of one segment. The hypothesis is checked on the
//! numbers ([`spread`]) when a release is made and whenever a segment is read; the noise is increased for a
//! plan whose f_i(k) / k is largest below K. A segment's data may depend on earlier publications, as within a
//! segment: its noise is fresh, and its block comes after theirs.
//!
//! If the release counts users at their bound, a user adds to the cell of this count only once: in the user's
//! K-th counted period, which lies in some segment j. With m, w and the clip norm c = sqrt(m^2 + R^2 w^2) of
//! `design/layout.rs`, f_i is the squared sensitivity to vectors of norm c, so that the user moves everything
//! by at most
//!
//! ```text
//! (m^2 / c^2) sum f_i(k_i) + (K R^2 w^2 / c^2) f_j(1) <= (m^2 + R^2 w^2) / c^2 mu^2 = mu^2,
//! ```
//!
//! by the hypothesis for k = k_i in every segment i, and for k = 1 in segment j.

use std::sync::OnceLock;

use antinoise_accounting::{Gdp, gaussian_noise_multiplier_upper};
use antinoise_input::between;
use antinoise_mechanism::design::StrategySpec;
use antinoise_mechanism::{AnyStrategy, Class, Participation, Strategy, Workload};
use antinoise_plan::Plan;

use crate::design::estimate::Estimator;
use crate::design::plan::{Design, Progress, of_part};
use crate::segments::Segment;
use crate::{Error, Query, Result, Settings};

/// Tolerance for rounding in comparisons.
const ROUNDING: f64 = 1e-9;
/// Squared weights of past noise below which the rest of a variance is negligible.
const FORGOTTEN: f64 = 1e-18;
/// Numbers of buffers that are tried for a segment's BLT.
const ORDERS: std::ops::RangeInclusive<usize> = 1..=6;

/// The designs of a release: one for a release of a fixed number of periods; one per length of a segment
/// otherwise. Plans of later segments are verified when they are needed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chain {
    settings: Settings,
    /// The plans as texts.
    plans: Vec<String>,
    designs: Vec<OnceLock<Design>>,
}

impl Chain {
    /// Chooses the designs of smallest loss.
    pub(crate) fn new(settings: &Settings, progress: &Progress<'_>) -> Result<Self> {
        settings.check()?;
        match settings.segments {
            Some(segments) => {
                let count = segments.distinct();
                let designs = (0..count).map(|segment| {
                    let progress = of_part(progress, segment, count);
                    designed(&settings.of_link(segments.length(segment)), &progress)
                });
                Self::made(settings, designs.collect::<Result<_>>()?)
            }
            None => Self::made(settings, vec![Design::new(settings, progress)?]),
        }
    }

    fn made(settings: &Settings, designs: Vec<Design>) -> Result<Self> {
        let plans = designs.iter().map(|design| design.plan.to_toml()).collect();
        let chain = Self::unread(settings, plans)?;
        for (design, place) in designs.into_iter().zip(&chain.designs) {
            chain.check(&design, chain.designs[0].get())?;
            let _ = place.set(design);
        }
        Ok(chain)
    }

    /// The chain of existing `plans`. The first is verified here, others on first use.
    pub(crate) fn of(settings: &Settings, plans: Vec<String>) -> Result<Self> {
        let chain = Self::unread(settings, plans)?;
        chain.design(0)?;
        Ok(chain)
    }

    fn unread(settings: &Settings, plans: Vec<String>) -> Result<Self> {
        settings.check()?;
        let wanted = settings.segments.map_or(1, |segments| segments.distinct());
        between("plans of the release", plans.len(), wanted, wanted, "one for each length of a segment")?;
        let designs = plans.iter().map(|_| OnceLock::new()).collect();
        Ok(Self { settings: settings.clone(), plans, designs })
    }

    /// Refuses a segment's design that does not fit the first one, or whose noise is too small for a unit in
    /// several segments.
    fn check(&self, design: &Design, first: Option<&Design>) -> Result<()> {
        if self.settings.segments.is_none() {
            return Ok(());
        }
        let spacing = first.map_or(design.spacing, |first| first.spacing);
        // Sums are carried from segment to segment in points, multiples of the spacing.
        if design.spacing != spacing {
            let must_be = format!("{spacing:e}, that of the first segment, for all segments");
            return Err(Error::invalid(
                "grid spacing of a segment",
                format!("{:e}", design.spacing),
                must_be,
            ));
        }
        let factor = factor(design, &self.settings)?;
        if factor > 1.0 + ROUNDING {
            let must_be = format!("{factor} times as large, so that a unit in several segments is covered");
            return Err(Error::invalid(
                "noise multiplier of a segment",
                design.plan.noise_multiplier,
                must_be,
            ));
        }
        Ok(())
    }

    /// The design of the first segment, whose layout and grid are those of every segment.
    pub(crate) fn first(&self) -> &Design {
        self.designs[0].get().expect("the first design is made with the chain")
    }

    /// The largest standard deviation of the noise in each period's figures of `query`; see
    /// [`crate::Release::errors`].
    pub(crate) fn errors(&self, query: &Query) -> Result<Vec<f64>> {
        self.check_query(query)?;
        if self.settings.segments.is_some() {
            return Err(Error::invalid(
                "periods of the errors",
                "all of an open-ended release",
                "a single one, since there are infinitely many",
            ));
        }
        self.first().errors(query)
    }

    /// As [`Self::errors`], for one period, counted from 0.
    pub(crate) fn error(&self, query: &Query, period: usize) -> Result<f64> {
        self.check_query(query)?;
        if self.settings.segments.is_none() {
            between("period", period, 0, self.settings.periods - 1, "the last one")?;
            return Ok(self.first().errors(query)?[period]);
        }
        self.deviation(query, period)
    }

    fn check_query(&self, query: &Query) -> Result<()> {
        match self.settings.queries.iter().any(|(asked, _)| asked == query) {
            true => Ok(()),
            false => Err(Error::invalid("query", query, "a query of the release")),
        }
    }

    /// Number of plans: later segments use the last one.
    pub(crate) fn plans(&self) -> usize {
        self.plans.len()
    }

    /// The text of a segment's plan.
    pub(crate) fn plan(&self, segment: usize) -> &str {
        &self.plans[segment.min(self.plans.len() - 1)]
    }

    /// The design of a segment; an error if its plan is invalid or does not cover the settings.
    pub(crate) fn design(&self, segment: usize) -> Result<&Design> {
        let place = segment.min(self.plans.len() - 1);
        if let Some(design) = self.designs[place].get() {
            return Ok(design);
        }
        let plan = Plan::from_toml(self.plan(segment))?;
        let design = match self.settings.segments {
            Some(segments) => Design::of(&self.settings.of_link(segments.length(place)), plan)?,
            None => Design::of(&self.settings, plan)?,
        };
        let first = if place > 0 { Some(self.first()) } else { None };
        self.check(&design, first)?;
        Ok(self.designs[place].get_or_init(|| design))
    }

    /// Number of periods before a segment.
    pub(crate) fn started(&self, segment: usize) -> usize {
        self.settings
            .segments
            .map_or(0, |segments| (0..segment).map(|segment| segments.length(segment)).sum())
    }

    pub(crate) fn place(&self, period: usize) -> Segment {
        match self.settings.segments {
            Some(segments) => segments.place(period),
            None => Segment { segment: 0, start: 0, step: period },
        }
    }

    /// The largest standard deviation of the noise in a period's figures of `query`, in the query's unit; see
    /// [`crate::Release::errors`].
    pub(crate) fn deviation(&self, query: &Query, period: usize) -> Result<f64> {
        let first = self.first();
        let largest = Estimator::new(query, &first.layout, first.spacing).largest_deviation();
        Ok(self.noise_in_points(query, period)? * largest)
    }

    /// For marginals, the columns of each published table and the standard deviation of its cells, relative
    /// to the largest; empty for other queries.
    pub(crate) fn tables(&self, query: &Query) -> Vec<(String, f64)> {
        let first = self.first();
        Estimator::new(query, &first.layout, first.spacing).tables()
    }

    /// Standard deviation of the noise in a cell after a period, through the linear map of `query`, in
    /// points.
    pub(crate) fn noise_in_points(&self, query: &Query, period: usize) -> Result<f64> {
        Ok(self.variance(&query.workload(), period)?.sqrt() / self.first().spacing)
    }

    /// Variance of a figure's noise, before division by the grid spacing: the noise of the period's own
    /// segment, and the share of earlier segments' noise that the workload still includes.
    fn variance(&self, workload: &Workload, period: usize) -> Result<f64> {
        let Segment { segment, start, step } = self.place(period);
        let mut sum = row(self.design(segment)?, workload, step)?;
        let mut end = start;
        for segment in (0..segment).rev() {
            let design = self.design(segment)?;
            let last = design.plan.steps - 1;
            let age = period - (end - 1);
            sum += match workload {
                Workload::Window { width } => {
                    let Some(left) = width.checked_sub(age).filter(|left| *left > 0) else { break };
                    row(design, &Workload::Window { width: left.min(last + 1) }, last)?
                }
                Workload::Decay { gamma } => {
                    let weight = gamma.powf(2.0 * age as f64);
                    if weight < FORGOTTEN {
                        break;
                    }
                    weight * row(design, workload, last)?
                }
                _ => row(design, workload, last)?,
            };
            end -= last + 1;
        }
        Ok(sum)
    }
}

/// The variance of row `step` of A C^-1 Z over the steps of one segment, where A is `workload`.
fn row(design: &Design, workload: &Workload, step: usize) -> Result<f64> {
    let seed = design.plan.noise_std().powi(2);
    let squared = match &design.plan.strategy {
        AnyStrategy::Blt(blt) => {
            let leading = blt.leading(step + 1)?;
            match workload {
                // The last row has the largest variance, which has a closed form.
                Workload::Prefix => leading.error(workload)?.max.powi(2),
                _ => leading.row_errors_squared(workload)?[step],
            }
        }
        other => other.row_errors_squared(workload)?[step],
    };
    Ok(seed * squared)
}

/// Designs a BLT for a segment, with the noise that a unit in several segments needs.
fn designed(settings: &Settings, progress: &Progress<'_>) -> Result<Design> {
    let specs = ORDERS.map(|order| StrategySpec { order: Some(order), ..StrategySpec::new(Class::Blt) });
    let specs: Vec<_> = specs.collect();
    let design = Design::among(settings, specs.clone(), &of_part(progress, 0, 2))?;
    let factor = factor(&design, settings)?;
    if factor <= 1.0 {
        return Ok(design);
    }
    let wanted = Gdp::from_noise_multiplier_upper(design.plan.noise_multiplier * factor)?;
    let epsilon = wanted.epsilon_lower(settings.delta)?;
    Design::among(&Settings { epsilon, ..settings.clone() }, specs, &of_part(progress, 1, 2))
}

/// The factor by which the noise of a segment must grow so that f(k) <= (k / K) mu^2 for every k; at most 1
/// if this already holds.
fn factor(design: &Design, settings: &Settings) -> Result<f64> {
    let (plan, most): (&Plan, usize) = (&design.plan, settings.max_periods);
    let mu = 1.0 / gaussian_noise_multiplier_upper(settings.epsilon, settings.delta)?;
    let largest = plan.sensitivity.value;
    let noise = plan.noise_multiplier * largest * plan.rounding_factor;
    let squares = (1..=most).map(|k| -> Result<f64> {
        let schema = Participation::MinSep { min_sep: 1, max_participations: k };
        // The rounding allowance is known for K periods; use all of it for k < K (an upper bound).
        let moved = plan.strategy.sensitivity(&schema)?.value + (plan.rounding_factor - 1.0) * largest;
        Ok((moved / noise).powi(2))
    });
    Ok((spread(&squares.collect::<Result<Vec<_>>>()?) / (mu * mu)).sqrt())
}

/// max over k of (K / k) f(k), with f(k) at index k - 1: the smallest mu^2 that covers every way to spread K
/// periods over segments with this f.
fn spread(squares: &[f64]) -> f64 {
    let most = squares.len() as f64;
    squares.iter().zip(1..).map(|(square, k)| square * most / f64::from(k)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests;
