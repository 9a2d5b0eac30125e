//! The design of a spec: a strategy of its class, with columns of norm 1 and restarts if these are requested.

use antinoise_input::between;

use super::class::design;
use super::coefficient_rule::CoefficientRule;
use super::column_normalized;
use super::spec::StrategySpec;
use crate::solution::Solution;
use crate::strategy::{AnyStrategy, BandedToeplitz, Class, ColumnNormalized, Restarted, Toeplitz};
use crate::{Encoder, Participation, Problem, Result, Workload};

/// Maximum number of steps for which a batch of queries is replaced by a lower-triangular workload, which
/// takes O(n^3) time; over more steps, classes that can sum its rows one by one do.
const MOST_TRIANGULAR: usize = 512;

impl StrategySpec {
    /// Designs the best strategy of this class for the problem, with the workload of
    /// [`StrategySpec::design_workload`]. For a batch of queries, classes other than dense minimise the RMS
    /// loss.
    ///
    /// # Errors
    /// When the problem is not valid, an option does not belong to the class, or it is out of range.
    pub fn design(&self, problem: &Problem) -> Result<Solution<AnyStrategy>> {
        problem.check()?;
        let workload = self.design_workload(&problem.workload, problem.steps);
        let objective = self.design_objective(&workload, problem.objective);
        let problem = Problem { workload, objective, ..problem.clone() };
        match &problem.workload {
            Workload::Queries { .. } if self.class != Class::OutputPerturbation => {
                self.design_for_queries(&problem)
            }
            _ => self.design_runs(&problem),
        }
    }

    fn design_for_queries(&self, problem: &Problem) -> Result<Solution<AnyStrategy>> {
        let sums_rows = matches!(
            self.class,
            Class::Toeplitz
                | Class::BandedToeplitz
                | Class::BandedInverse
                | Class::Banded
                | Class::Blt
                | Class::VaryingBlt
                | Class::Rational
        );
        if sums_rows
            && problem.steps > MOST_TRIANGULAR
            && problem.workload.summed_rows(problem.steps)?.is_some()
        {
            let found = self.design_runs(problem)?;
            return Ok(Solution { gap: None, ..found });
        }
        let spanning = problem.workload.spanning(problem.steps)?;
        let certified = spanning.is_none();
        let workload = spanning.unwrap_or_else(|| problem.workload.clone());
        let problem = Problem { workload, ..problem.clone() };
        // Over few steps only dense strategies are designed for batches of queries; other classes use the one
        // workload whose Gram matrix is the sum of the queries' Gram matrices.
        let problem = if self.class == Class::Dense { problem } else { problem.summed()? };
        let found = self.design_runs(&problem)?;
        Ok(Solution { gap: found.gap.filter(|_| certified), ..found })
    }

    fn design_runs(&self, problem: &Problem) -> Result<Solution<AnyStrategy>> {
        match self.restarts {
            None => self.design_run(problem),
            Some(restarts) => self.design_restarted(problem, restarts),
        }
    }

    fn design_run(&self, problem: &Problem) -> Result<Solution<AnyStrategy>> {
        if let Participation::EachEpoch { .. } = problem.participation {
            // No class is designed for steps that are free within epochs: more patterns are allowed.
            let participation =
                Participation::min_sep(problem.steps, problem.participation.separation(problem.steps));
            let found = self.design_run(&Problem { participation, ..problem.clone() })?;
            return Ok(Solution { gap: None, ..found });
        }
        let has_coefficients = matches!(self.class, Class::Toeplitz | Class::BandedToeplitz);
        let is_approximated = self.rule == CoefficientRule::RationalApproximation;
        let takes_rule = match self.class {
            Class::Blt => is_approximated,
            _ => has_coefficients && !is_approximated,
        };
        if !takes_rule && self.rule != CoefficientRule::SquareRoot {
            self.refuse_form()?;
        }
        let found = design(self, problem)?;
        if !self.column_normalize {
            return Ok(found);
        }
        let found = match &found.value {
            AnyStrategy::Toeplitz(_) | AnyStrategy::BandedToeplitz(_)
                if self.rule == CoefficientRule::Optimized =>
            {
                for_unit_columns(found, problem)?
            }
            _ => found,
        };
        let normalized = found.try_map(ColumnNormalized::new)?.map(AnyStrategy::ColumnNormalized);
        // The certificate is of the strategy before its columns are scaled.
        Ok(Solution { gap: None, ..normalized })
    }

    fn design_restarted(&self, problem: &Problem, restarts: usize) -> Result<Solution<AnyStrategy>> {
        between("restarts", restarts, 1, problem.steps, "steps")?;
        let period = problem.steps.div_ceil(restarts);
        let participation = problem.participation.within_runs_of(period);
        let run = self.design_run(&Problem { steps: period, participation, ..problem.clone() })?;
        let restarted = run.try_map(|run| Restarted::new(problem.steps, run))?.map(AnyStrategy::Restarted);
        // The certificate is of one run between restarts.
        Ok(Solution { gap: None, ..restarted })
    }
}

/// Returns the Toeplitz strategy whose loss is least once its columns are scaled to norm 1. Returns `found`
/// if columns of the same pattern overlap, so that their norms do not determine the sensitivity, or if the
/// solve would take too long.
fn for_unit_columns(found: Solution<AnyStrategy>, problem: &Problem) -> Result<Solution<AnyStrategy>> {
    let Encoder::Toeplitz { steps, coefficients } = found.value.encoder()? else {
        return Ok(found);
    };
    if !problem.participation.separation(steps).is_orthogonal(coefficients.len()) {
        return Ok(found);
    }
    let Some(better) = column_normalized::minimize(&coefficients, problem)? else { return Ok(found) };
    let improved = found.improved || better.improved;
    let better = better.try_map(|coefficients| {
        Ok(match found.value {
            AnyStrategy::Toeplitz(_) => AnyStrategy::Toeplitz(Toeplitz::new(steps, coefficients)?),
            _ => AnyStrategy::BandedToeplitz(BandedToeplitz::new(steps, coefficients)?),
        })
    })?;
    Ok(Solution { improved, ..better })
}
