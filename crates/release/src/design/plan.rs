//! The design of a release: one verified plan for all queries, and the map from its noise to the error of
//! each published figure.

use antinoise_mechanism::design::StrategySpec;
use antinoise_mechanism::{Participation, PrivacyUnit, Recursion, Workload};
use antinoise_noise::{NoiseStream, StreamBuilder};
use antinoise_plan::{Length, Request, Setting, VerifiedPlan, choose_with};

use crate::design::estimate::Estimator;
use crate::design::layout::{Layout, once_per_user};
use crate::queries::measure::Measure;
use crate::{Error, Query, Result, Settings, Unit};

/// Maximum number of vectors of past noise that a strategy may store for each cell: they are written with
/// every publication.
const VECTORS: usize = 16;
const BYTES: u64 = 8;

/// A function that is called with the work done and expected so far, in a common unit.
pub(crate) type Progress<'a> = dyn Fn(f64, f64) + Sync + 'a;

/// Reports the progress of part `part` of `parts` equal parts as progress of the whole.
pub(crate) fn of_part<'a>(
    progress: &'a Progress<'_>,
    part: usize,
    parts: usize,
) -> impl Fn(f64, f64) + Sync + 'a {
    move |done, expected| {
        let share = if expected > 0.0 { done / expected } else { 0.0 };
        progress(part as f64 + share, parts as f64);
    }
}

/// The plan of a release, and the layout of its queries in the plan's vector.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Design {
    pub(crate) layout: Layout,
    pub(crate) plan: VerifiedPlan,
    pub(crate) spacing: f64,
}

impl Design {
    /// The plan of smallest loss for `settings`.
    pub(crate) fn new(settings: &Settings, progress: &Progress<'_>) -> Result<Self> {
        Self::chosen(settings, None, progress)
    }

    /// As [`Self::new`], among the given strategies.
    pub(crate) fn among(
        settings: &Settings,
        specs: Vec<StrategySpec>,
        progress: &Progress<'_>,
    ) -> Result<Self> {
        Self::chosen(settings, Some(specs), progress)
    }

    fn chosen(
        settings: &Settings,
        specs: Option<Vec<StrategySpec>>,
        progress: &Progress<'_>,
    ) -> Result<Self> {
        settings.check()?;
        let layout = Layout::new(settings);
        let plan = choose_with(&Request { specs, ..request(settings, &layout) }, progress)?.plan;
        Self::of(settings, plan)
    }

    /// The design of an existing `plan`; an error if its numbers do not cover the settings.
    pub(crate) fn of(settings: &Settings, plan: VerifiedPlan) -> Result<Self> {
        settings.check()?;
        let layout = Layout::new(settings);
        let wanted = request(settings, &layout);
        let schedule = wanted.schedule()?;
        let privacy = &plan.privacy;
        let covers = *plan.schedule() == schedule
            && plan.clip_norm >= wanted.clip_norm
            && (privacy.unit, privacy.adjacency) == (wanted.unit, wanted.adjacency)
            && privacy.epsilon <= settings.epsilon * (1.0 + 1e-6)
            && privacy.delta <= settings.delta;
        if !covers {
            let must_be = "one with the periods, schema, bound and privacy of the release's settings";
            return Err(Error::invalid("plan of the release", "one for other settings", must_be));
        }
        plan.check_dim(layout.cells())?;
        let Some(grid) = plan.arithmetic.grid()? else {
            return Err(Error::invalid("arithmetic of the plan", "plain", "grid: counts are whole numbers"));
        };
        let spacing = grid.spacing();
        if !layout.are_counted(spacing) {
            let must_be = "so fine that every row adds at least one point";
            return Err(Error::invalid("grid spacing of the plan", spacing, must_be));
        }
        if layout.part_if_any(&Measure::AtBound).is_some() {
            check_once(&plan, settings.max_periods)?;
        }
        Ok(Self { layout, plan, spacing })
    }

    /// The builder of the noise of all cells.
    pub(crate) fn noise(&self) -> Result<StreamBuilder> {
        let recursion: Recursion = self.plan.strategy.recursion()?;
        let (steps, cells) = (self.plan.steps, self.layout.cells());
        Ok(NoiseStream::builder(recursion, steps, cells, self.plan.noise_std()))
    }

    /// Standard deviation of the noise in a cell after each period, through the linear map of `query`, in
    /// points.
    pub(crate) fn noise_in_points(&self, query: &Query) -> Result<Vec<f64>> {
        let of_point = self.plan.noise_std() / self.spacing;
        let rows = self.plan.strategy.row_errors(&query.workload())?;
        Ok(rows.into_iter().map(|row| row * of_point).collect())
    }

    /// The largest standard deviation of the noise in each period's figures of `query`; see
    /// [`crate::Release::errors`].
    pub(crate) fn errors(&self, query: &Query) -> Result<Vec<f64>> {
        let largest = Estimator::new(query, &self.layout, self.spacing).largest_deviation();
        Ok(self.noise_in_points(query)?.into_iter().map(|noise| noise * largest).collect())
    }
}

/// Refuses a plan unless sqrt(K) S_1 <= S, where S_1 is the sensitivity to a single period and S that to K =
/// `max_periods` periods: a user adds to users-at-bound only once, but sqrt(K) times as much. See
/// [`crate::design::layout`].
fn check_once(plan: &VerifiedPlan, max_periods: usize) -> Result<()> {
    if max_periods == 1 {
        // With one period per user, the contribution to users-at-bound lies in that period, within its clip
        // norm.
        return Ok(());
    }
    let schema = Participation::MinSep { min_sep: 1, max_participations: 1 };
    // Conservative: S_1 gets the whole allowance for rounding, and S none of it.
    let rounding = (plan.rounding_factor - 1.0) * plan.sensitivity.value;
    let once = plan.strategy.sensitivity(&schema)?.value + rounding;
    if once_per_user(max_periods) * once <= plan.sensitivity.value - rounding {
        return Ok(());
    }
    let must_be = "at least sqrt(max_periods) times that to a unit of one period, to publish users-at-bound: leave this query out (--no-left-out)";
    Err(Error::invalid("sensitivity of the strategy", plan.sensitivity.value, must_be))
}

/// The request for the plan. Users may be counted in any `max_periods` periods, consecutive ones included; a
/// unit of a single period takes part once.
fn request(settings: &Settings, layout: &Layout) -> Request {
    let min_sep = if settings.max_periods == 1 { settings.periods } else { 1 };
    let setting = Setting::Federated { min_sep, max_participations: Some(settings.max_periods) };
    let (workload, clip_norm) = (workload(settings), layout.clip_norm(settings.max_rows));
    let vectors = match workload {
        Workload::Window { width } => width.clamp(VECTORS, settings.periods.max(VECTORS)),
        _ => VECTORS,
    };
    let cells = layout.cells();
    Request {
        unit: match settings.unit {
            Unit::User => PrivacyUnit::User,
            Unit::Event => PrivacyUnit::Example,
        },
        epsilon: settings.epsilon,
        delta: settings.delta,
        workload,
        clip_norm,
        dim: cells,
        spacing: Some(layout.coarsest_spacing()),
        memory: Some((vectors as u64).saturating_mul(BYTES).saturating_mul(cells as u64)),
        ..Request::new(1, 1, Length::Steps(settings.periods), setting)
    }
}

/// The workload for which the noise is designed: that of the queries of rows if all have the same, else
/// prefix sums.
fn workload(settings: &Settings) -> Workload {
    let of_rows = settings.queries.iter().filter(|(query, _)| !query.is_of_users());
    let mut workloads = of_rows.map(|(query, _)| query.workload());
    let first = workloads.next().unwrap_or_default();
    if workloads.all(|other| other == first) { first } else { Workload::Prefix }
}
