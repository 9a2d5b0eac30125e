//! Any lower-triangular C: the least loss of all strategies, with a certificate. Noise: O(n m) time a step
//! with regenerated seed noise, no state. Design: O(n^3) time an iteration and about ten n x n matrices of
//! memory.

use antinoise_input::{InvalidParameter, at_least};
use antinoise_linear::{Matrix, lower_inverse};
use serde::{Deserialize, Serialize};

use super::banded::Banded;
use super::class::Class;
use super::contract::{Strategy, loss_of};
use super::design::Design;
use super::spec::StrategySpec;
use super::toeplitz::Toeplitz;
use crate::Problem;
use crate::decoder::ErrorNorms;
use crate::decoder::error_of_matrix;
use crate::numeric::limits::check_materializable;
use crate::optimize::best::Best;
use crate::optimize::{Solution, Status, dense};
use crate::{Encoder, Participation, Recursion, Result, Separation, Workload};

/// A lower-triangular matrix given by its rows.
///
/// ```
/// use antinoise_mechanism::{Strategy, strategy::Dense};
/// let strategy = Dense::new(vec![vec![1.0], vec![0.5, 2.0]])?;
/// assert_eq!(strategy.encoder()?.to_dense()[(1, 0)], 0.5);
/// assert!(Dense::new(vec![vec![1.0], vec![0.5, 0.0]]).is_err()); // not invertible
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dense {
    /// Row t holds C\[t, 0..=t\].
    rows: Vec<Vec<f64>>,
}

impl Dense {
    /// Creates the matrix whose row t is C\[t, 0..=t\].
    ///
    /// # Errors
    /// When there is no row, row t does not have t + 1 numbers, a number is not finite, or a diagonal entry
    /// is not above 0.
    pub fn new(rows: Vec<Vec<f64>>) -> Result<Self> {
        let strategy = Self { rows };
        strategy.check()?;
        Ok(strategy)
    }

    fn of_matrix(c: &Matrix) -> Result<Self> {
        Self::new((0..c.nrows()).map(|i| (0..=i).map(|j| c[(i, j)]).collect()).collect())
    }

    fn matrix(&self) -> Matrix {
        let n = self.rows.len();
        Matrix::from_fn(n, n, |i, j| if i >= j { self.rows[i][j] } else { 0.0 })
    }
}

impl Strategy for Dense {
    fn steps(&self) -> usize {
        self.rows.len()
    }

    fn check(&self) -> Result<()> {
        let n = at_least("rows", self.rows.len(), 1)?;
        check_materializable(n.saturating_mul(n))?;
        for (i, row) in self.rows.iter().enumerate() {
            let refused = |got: String, must_be: String| {
                Err(InvalidParameter::new(format!("row {i}"), got, must_be).into())
            };
            if row.len() != i + 1 {
                return refused(format!("{} numbers", row.len()), format!("{} numbers", i + 1));
            }
            if let Some(j) = row.iter().position(|x| !x.is_finite()) {
                return refused(format!("{:?} at column {j}", row[j]), "finite everywhere".into());
            }
            if row[i] <= 0.0 {
                return refused(format!("{:?} on the diagonal", row[i]), "above 0 there".into());
            }
        }
        Ok(())
    }

    fn encoder(&self) -> Result<Encoder> {
        Ok(Encoder::Dense(self.matrix()))
    }

    fn error(&self, workload: &Workload) -> Result<ErrorNorms> {
        error_of_matrix(&lower_inverse(&self.matrix()), workload)
    }

    fn recursion(&self) -> Result<Recursion> {
        let inverse = lower_inverse(&self.matrix());
        let row = |i: usize| (0..=i).map(|j| (j, inverse[(i, j)])).collect();
        Recursion::SeedCombination { rows: (0..self.steps()).map(row).collect() }.checked()
    }
}

/// Maximum number of steps for which the banded class, which dense contains, is designed too; and for which
/// any other class is.
const MAX_STEPS_OF_BANDED: usize = 64;
const MAX_STEPS_COMPARED: usize = 1024;
/// Maximum number of steps, and of steps times participations, for which all entries are optimised under
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
        let found = dense::minimize(problem, &dense::DenseSettings::of(problem))?;
        let strategy = Self::of_matrix(&found.value)?;
        let cost = squared_loss(&strategy, problem)?;
        let bound = found.gap.map(|gap| cost / (1.0 + gap));
        let mut best = Best::new(strategy.clone(), cost);
        best.offer(found.map(|_| strategy), cost);
        for candidate in contained(problem)? {
            let cost = squared_loss(&candidate, problem)?;
            best.consider(candidate, cost);
        }
        Ok(certified(best, bound))
    }
}

/// Returns the reported squared loss, divided by the number of queries.
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

/// Designs strategies of classes that dense contains, so that a dense design never loses to them because its
/// solver stopped early.
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

/// Designs for min-sep with several participations: from the best contained design, with all entries free.
fn separated(problem: &Problem, b: usize, k: usize) -> Result<Solution<Dense>> {
    let mut candidates = contained(problem)?.into_iter();
    let first = match candidates.next() {
        Some(first) => first,
        // Co-participating columns are orthogonal if C has at most b bands.
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
        for found in dense::separated(&best.value().matrix(), problem)? {
            let Ok(strategy) = Dense::of_matrix(&found.value) else { continue };
            let cost = squared_loss(&strategy, problem)?;
            best.offer(found.map(|_| strategy), cost);
        }
    }
    // Disjoint patterns of the schema that cover all steps: no design under min-sep has less loss than
    // theirs.
    let phases = (0..b).map(|phase| (phase..problem.steps).step_by(b).collect::<Vec<_>>());
    let patterns =
        phases.flat_map(|phase| phase.chunks(k).map(<[usize]>::to_vec).collect::<Vec<_>>()).collect();
    let relaxed = Problem { participation: Participation::Patterns { patterns }, ..problem.clone() };
    let bound = match dense::minimize(&relaxed, &dense::DenseSettings::of(&relaxed))? {
        found if found.gap.is_some() => {
            let cost = squared_loss(&Dense::of_matrix(&found.value)?, &relaxed)?;
            found.gap.map(|gap| cost / (1.0 + gap))
        }
        _ => None,
    };
    Ok(certified(best, bound))
}
