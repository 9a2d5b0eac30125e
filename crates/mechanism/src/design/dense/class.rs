//! The dense strategy of least loss: the solvers' result, or a design of a smaller class (banded, Toeplitz)
//! if that is better.

use super::settings::DenseSettings;
use super::solve::{improve_separated, minimize, minimize_separated};
use crate::design::best::Best;
use crate::design::class::{Design, loss_of};
use crate::design::spec::StrategySpec;
use crate::solution::{Solution, Status};
use crate::strategy::{Banded, Class, Dense, Toeplitz};
use crate::{Participation, Problem, Result, Separation, Strategy};

/// Maximum numbers of steps for which smaller classes are designed too: the banded class, and the others.
const MAX_STEPS_OF_BANDED: usize = 64;
const MAX_STEPS_COMPARED: usize = 1024;
/// Certified gap of the squared loss below which smaller classes are not designed: they cannot gain more.
const NEGLIGIBLE: f64 = 1e-6;
/// Maximum number of steps for which a list of patterns grows until few others are violated.
const MAX_CUT: usize = 256;
/// Maximum number of steps, and of steps times participations, for which all entries of C are optimised under
/// min-sep.
const MAX_SEPARATED: (usize, usize) = (512, 1 << 20);

impl Design for Dense {
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>> {
        spec.refuse_bands()?;
        spec.refuse_order()?;
        spec.refuse_form()?;
        let Separation { min_sep: b, max_participations: k } =
            problem.participation.separation(problem.steps);
        if matches!(problem.participation, Participation::MinSep { .. }) && k > 1 && k < problem.steps {
            return separated(problem, b, k);
        }
        let found = minimize(problem, &DenseSettings::of(problem))?;
        let strategy = Self::of_matrix(&found.value)?;
        let cost = squared_loss(&strategy, problem)?;
        let bound = found.gap.map(|gap| cost / (1.0 + gap));
        let mut best = Best::new(strategy.clone(), cost);
        best.offer(found.map(|_| strategy), cost);
        if bound.is_none_or(|bound| cost > bound * (1.0 + NEGLIGIBLE)) {
            for candidate in contained(problem)? {
                let cost = squared_loss(&candidate, problem)?;
                best.consider(candidate, cost);
            }
        }
        Ok(certified(best, bound))
    }
}

/// Returns the reported squared loss (for the RMS loss, the mean over queries).
fn squared_loss(strategy: &Dense, problem: &Problem) -> Result<f64> {
    Ok(loss_of(strategy, problem)?.powi(2))
}

/// Returns the best of several strategies, with its gap to a lower bound on the squared loss.
fn certified(best: Best<Dense>, bound: Option<f64>) -> Solution<Dense> {
    let gap = bound.map(|bound| (best.cost() / bound - 1.0).max(0.0)).filter(|gap| gap.is_finite());
    let found = best.finished();
    let status = match (found.status, gap) {
        (Status::Stalled, Some(gap)) if gap <= CERTIFIED => Status::Converged,
        (status, _) => status,
    };
    Solution { gap, status, improved: true, ..found }
}

/// Maximum gap of the squared loss at which a design counts as converged.
const CERTIFIED: f64 = 1e-5;

/// Designs strategies of smaller classes, so that a dense design is never worse than theirs when its solver
/// stops early.
fn contained(problem: &Problem) -> Result<Vec<Dense>> {
    if problem.steps > MAX_STEPS_COMPARED {
        return Ok(Vec::new());
    }
    let problem = &problem.summed()?;
    let Separation { min_sep: b, max_participations: k } = problem.participation.separation(problem.steps);
    let toeplitz = Toeplitz::design(&StrategySpec::new(Class::Toeplitz), problem)?.value.encoder()?;
    let mut found = vec![toeplitz.to_dense(), toeplitz.with_unit_columns().to_dense()];
    if problem.steps <= MAX_STEPS_OF_BANDED || matches!(problem.participation, Participation::MinSep { .. }) {
        let bands = if k == 1 { problem.steps } else { b };
        let banded = StrategySpec { bands: Some(bands), ..StrategySpec::new(Class::Banded) };
        found.push(Banded::design(&banded, problem)?.value.encoder()?.to_dense());
    }
    found.iter().map(Dense::of_matrix).collect()
}

/// Designs C for min-sep with several participations. The solvers begin at the best design of a smaller
/// class, and all entries are free.
fn separated(problem: &Problem, b: usize, k: usize) -> Result<Solution<Dense>> {
    let mut candidates = contained(problem)?.into_iter();
    let first = match candidates.next() {
        Some(first) => first,
        // With at most b bands, columns of the same pattern are orthogonal.
        None => {
            let bands = StrategySpec { bands: Some(b), ..StrategySpec::new(Class::Banded) };
            Dense::of_matrix(&Banded::design(&bands, &problem.summed()?)?.value.encoder()?.to_dense())?
        }
    };
    let cost = squared_loss(&first, problem)?;
    let mut best = Best::new(first, cost);
    for candidate in candidates {
        let cost = squared_loss(&candidate, problem)?;
        best.consider(candidate, cost);
    }
    if problem.steps <= MAX_SEPARATED.0 && problem.steps * k <= MAX_SEPARATED.1 {
        for found in improve_separated(&best.value().matrix(), problem)? {
            let Ok(strategy) = Dense::of_matrix(&found.value) else { continue };
            let cost = squared_loss(&strategy, problem)?;
            best.offer(found.map(|_| strategy), cost);
        }
    }
    let mut bound = 0.0;
    if problem.steps <= MAX_CUT
        && let Ok(found) = minimize_separated(&best.value().matrix(), problem)
    {
        let strategy = Dense::of_matrix(&found.value)?;
        let cost = squared_loss(&strategy, problem)?;
        // The gap is that of the squared error, at a sensitivity of 1.
        let squared_error = strategy.error(&problem.workload)?.of(problem.objective).powi(2);
        bound = found.gap.map_or(0.0, |gap| squared_error / (1.0 + gap));
        best.offer(found.map(|_| strategy), cost);
    }
    // The lower bound: a schema of disjoint patterns, all of which min-sep allows, has an optimum of at most
    // that of min-sep.
    let phases = (0..b).map(|phase| (phase..problem.steps).step_by(b).collect::<Vec<_>>());
    let patterns =
        phases.flat_map(|phase| phase.chunks(k).map(<[usize]>::to_vec).collect::<Vec<_>>()).collect();
    let relaxed = Problem { participation: Participation::Patterns { patterns }, ..problem.clone() };
    let of_disjoint = match minimize(&relaxed, &DenseSettings::of(&relaxed))? {
        found if found.gap.is_some() => {
            let cost = squared_loss(&Dense::of_matrix(&found.value)?, &relaxed)?;
            found.gap.map(|gap| cost / (1.0 + gap))
        }
        _ => None,
    };
    let bound = f64::max(bound, of_disjoint.unwrap_or(0.0));
    Ok(certified(best, (bound > 0.0).then_some(bound)))
}
