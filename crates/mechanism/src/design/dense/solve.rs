//! The choice of the dense solver for a schema.

use antinoise_input::{InvalidParameter, between};
use antinoise_linear::Matrix;

use super::blocks::Blocks;
use super::cuts;
use super::disjoint::{self, Disjoint};
use super::mirrored::{self, Mirrored};
use super::one_pattern::{self, OnePattern};
use super::overlapping::{self, Overlapping};
use super::primal::{self, Primal};
use super::queries::{self, Queries};
use super::separated::descend;
use super::settings::DenseSettings;
use crate::problem::Objective;
use crate::solution::Solution;
use crate::{Participation, Problem, Result, Separation};

/// Maximum number of steps: ten n x n matrices are then 20 GB.
pub(crate) const MAX_STEPS: usize = 16_384;

/// Maximum number of steps for which the primal is minimised if the dual leaves a gap that is too large.
const MAX_PRIMAL_STEPS: usize = 1024;

/// Returns the lower-triangular C (n x n) of least loss and sensitivity 1, for every schema except min-sep.
///
/// The `gap` of the solution holds against all C, lower triangular or not, whose sensitivity to gradients of
/// any dimension is 1. For patterns that share steps, C is the best one in which columns of the same pattern
/// have no negative inner products, which may leave a gap. If some step belongs to no pattern, there is no
/// gap; C is then designed as if a unit took part in that step alone.
///
/// # Errors
/// When the problem is not valid, `steps` exceeds 16384, or the schema is min-sep with several
/// participations.
pub(crate) fn minimize(problem: &Problem, settings: &DenseSettings) -> Result<Solution<Matrix>> {
    problem.check()?;
    let n = between("steps", problem.steps, 1, MAX_STEPS, "the maximum of a dense strategy")?;
    let (groups, covered) = patterns(&problem.participation, n)?;
    let (a, scale) = checked_queries(problem)?;
    let disjoint = groups.iter().map(Vec::len).sum::<usize>() == n;
    let remains = (disjoint && n <= MAX_PRIMAL_STEPS).then(|| (a.clone(), groups.clone()));
    let found = if groups.len() == 1 && groups[0].len() == n {
        one_pattern::minimize(OnePattern::new(a, scale), problem, settings)
    } else if groups.len() == n && covered && problem.objective == Objective::Max && mirrored::is_mirrored(&a)
    {
        mirrored::minimize(Mirrored::new(&a, scale), problem, settings)
    } else {
        let queries = Queries::new(a, problem.objective);
        if disjoint {
            disjoint::minimize(Disjoint::new(queries, Blocks::new(groups), scale), problem, settings)
        } else {
            overlapping::minimize(Overlapping::new(queries, &groups, n, scale), problem, settings)
        }
    }?;
    let found = match remains {
        Some((a, groups)) if found.gap.is_none_or(|gap| gap > settings.enough()) => {
            let primal = Primal { a: &a, groups: &groups };
            let queries = Queries::new(a.clone(), problem.objective);
            let mut dual = Disjoint::new(queries, Blocks::new(groups.clone()), scale);
            let start = found.value.clone();
            primal::descend(&primal, &mut dual, found, &start, problem, settings)?
        }
        _ => found,
    };
    Ok(Solution { gap: found.gap.filter(|_| covered), ..found })
}

/// Returns A divided by its largest magnitude, and that magnitude.
fn checked_queries(problem: &Problem) -> Result<(Matrix, f64)> {
    let (a, scale) = queries::materialized(&problem.workload, problem.steps)?;
    if scale == 0.0 {
        return Err(InvalidParameter::new("workload", "0 everywhere", "a query that is not 0").into());
    }
    Ok((a, scale))
}

/// Returns a lower-triangular C for min-sep from each stage of the solver, which begins at `start`. The
/// caller picks the C of least reported loss.
///
/// # Errors
/// When the problem is not valid.
pub(crate) fn improve_separated(start: &Matrix, problem: &Problem) -> Result<Vec<Solution<Matrix>>> {
    Ok(descend(&checked_queries(problem)?.0, start, problem))
}

/// Returns the lower-triangular C of least loss for min-sep, with its gap.
pub(crate) fn minimize_separated(start: &Matrix, problem: &Problem) -> Result<Solution<Matrix>> {
    let (a, scale) = checked_queries(problem)?;
    cuts::minimize(&a, scale, start, problem)
}

/// Returns the patterns of the schema, extended so that each step is in at least one, and whether the schema
/// itself covers every step.
pub(super) fn patterns(participation: &Participation, n: usize) -> Result<(Vec<Vec<usize>>, bool)> {
    let Separation { min_sep: b, max_participations: k } = participation.separation(n);
    let mut groups: Vec<Vec<usize>> = match participation {
        Participation::MinSep { .. } if k > 1 && k < n => {
            let must_be = "a schema other than min-sep, which has too many patterns";
            return Err(InvalidParameter::new("participation", participation, must_be).into());
        }
        Participation::Patterns { patterns } => patterns.clone(),
        _ if k == 1 => (0..n).map(|t| vec![t]).collect(),
        _ => (0..b).map(|phase| (phase..n).step_by(b).take(k).collect()).collect(),
    };
    let mut taken = vec![false; n];
    groups.iter().flatten().for_each(|&t| taken[t] = true);
    let covered = taken.iter().all(|&taken| taken);
    groups.extend((0..n).filter(|&t| !taken[t]).map(|t| vec![t]));
    Ok((groups, covered))
}
