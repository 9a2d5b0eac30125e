//! Minimise ||A C^-1|| sens(C, Pi) over all C, with a certified lower bound.
//!
//! In X = C^T C the problem is convex; its dual needs few variables, is smooth once multipliers are written as
//! squares, and every value of it bounds the loss from below. Each design ascends the dual by L-BFGS, turns the
//! multipliers into a feasible X, and stops on the relative gap between the two. O(n^3) an iteration, about ten
//! n x n matrices of memory.
//!
//! | file | schemas |
//! |---|---|
//! | `disjoint` | single and cyclic, any workload, RMS or max |
//! | `mirrored` | single, max loss, Toeplitz workloads: half the work |
//! | `one_pattern` | full batch |
//! | `overlapping` | listed patterns that share steps, small n |
//! | `primal` | single and cyclic, where the dual is flat: over C itself, with the bounds of its multipliers |
//! | `separated` | min-sep: over C itself, bounded by a design for disjoint patterns |

mod blocks;
mod certified;
mod disjoint;
mod mirrored;
mod one_pattern;
mod overlapping;
mod primal;
mod queries;
mod separated;
mod spectrum;
#[cfg(test)]
mod tests;

use antinoise_input::{InvalidParameter, between};
use antinoise_linear::Mat;

use self::blocks::Blocks;
use self::disjoint::Disjoint;
use self::mirrored::Mirrored;
use self::one_pattern::OnePattern;
use self::overlapping::Overlapping;
use self::primal::Primal;
use self::queries::Queries;
use super::{Objective, Solution};
use crate::{Participation, Problem, Result};

/// The most steps: ten n x n matrices are then 20 GB.
pub(crate) const MOST_STEPS: usize = 16_384;

/// The most steps whose primal is descended where the dual leaves a gap.
const MOST_PRIMAL_STEPS: usize = 1024;

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The largest relative gap of the squared loss, (value - bound) / bound. Default 1e-8 for RMS loss with a
    /// single participation, else 1e-5.
    pub gap: f64,
    /// Most iterations. Default 300.
    pub max_iterations: usize,
}

impl Settings {
    /// The defaults for a problem.
    pub fn of(problem: &Problem) -> Self {
        let easy = problem.objective == Objective::Rms && problem.participation == Participation::Single;
        Self { gap: if easy { 1e-8 } else { 1e-5 }, max_iterations: 300 }
    }
}

/// The lower-triangular C (n x n) of least loss and sensitivity 1, for every schema but min-sep.
///
/// `gap` certifies it among all C, lower triangular or not, whose sensitivity to gradients of any dimension is
/// 1; for patterns that share steps among those whose co-participating columns have no negative inner product.
/// For schemas that leave steps to nobody there is none: those steps are designed as if one unit took part in
/// each.
///
/// ```
/// use antinoise_mechanism::optimize::{Objective, dense};
/// use antinoise_mechanism::{Participation, Problem, Workload};
/// let problem = Problem {
///     steps: 8,
///     workload: Workload::Prefix,
///     participation: Participation::Single,
///     objective: Objective::Max,
/// };
/// let found = dense::minimize(&problem, &dense::Settings::of(&problem))?;
/// assert!(found.gap.unwrap() <= 1e-5);
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
///
/// # Errors
/// When the problem is not valid, `steps` exceeds 16384, or the schema is min-sep with several participations.
pub fn minimize(problem: &Problem, settings: &Settings) -> Result<Solution<Mat<f64>>> {
    problem.check()?;
    let n = between("steps", problem.steps, 1, MOST_STEPS, "the most that a dense strategy can have")?;
    let (groups, covered) = patterns(&problem.participation, n)?;
    let (a, scale) = checked_queries(problem)?;
    let disjoint = groups.iter().map(Vec::len).sum::<usize>() == n;
    let remains = disjoint.then(|| (a.clone(), groups.clone()));
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
        Some((a, groups)) if found.gap.is_none_or(|gap| gap > settings.gap) && n <= MOST_PRIMAL_STEPS => {
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

/// A over its largest entry, and that entry.
fn checked_queries(problem: &Problem) -> Result<(Mat<f64>, f64)> {
    let (a, scale) = queries::written_out(&problem.workload, problem.steps)?;
    if scale == 0.0 {
        return Err(InvalidParameter::new("workload", "0 everywhere", "a query that is not 0").into());
    }
    Ok((a, scale))
}

/// Lower-triangular C for min-sep, each with the status of its solve, found from `start`: the caller picks the one whose
/// reported loss is least.
///
/// # Errors
/// When the problem is not valid.
pub(crate) fn separated(start: &Mat<f64>, problem: &Problem) -> Result<Vec<Solution<Mat<f64>>>> {
    Ok(separated::descend(&checked_queries(problem)?.0, start, problem))
}

/// The schema's patterns, each step in one of them at least, and whether the schema itself covers every step.
fn patterns(participation: &Participation, n: usize) -> Result<(Vec<Vec<usize>>, bool)> {
    let (b, k) = participation.separation(n);
    let mut groups: Vec<Vec<usize>> = match participation {
        Participation::MinSep { .. } if k > 1 && k < n => {
            let must_be = "another schema than min-sep, whose patterns are too many";
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
