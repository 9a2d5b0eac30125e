//! The strategy of smallest error for marginals: how precisely each residual is observed, and in which
//! tables.
//!
//! With n_i classes of attribute i, let N_A be the number of cells of table A, and P_i = I - 1 1^T / n_i. The
//! residual of a set B of attributes is its table of true counts, centred along each of them, by the product
//! of the P_i. A strategy that treats all classes alike observes it with a precision tau_B (the inverse
//! variance in each direction, for noise of variance 1 in each cell). A row of data has the residuals'
//! squared norms c_B = product over i in B of (1 - 1 / n_i), so it moves a strategy of these precisions by
//! the square root of sum_B c_B tau_B in l2 norm, and a cell of table A is estimated with the variance
//!
//! ```text
//! sum over B in A of (N_B / N_A)^2 c_B / tau_B.
//! ```
//!
//! F = sum_B v_B / tau_B is the sum of this variance over the published tables, whatever their numbers of
//! cells. Where sum_B c_B tau_B = 1, it is smallest, (sum_B sqrt(v_B c_B))^2, for tau_B in proportion to
//! sqrt(v_B / c_B) (Xiao et al. 2023, ResidualPlanner). Averaging a strategy over all permutations of
//! classes makes it treat them alike and, since F is convex, does not increase F: so no strategy does better.
//!
//! Table A in which a row adds lambda to one cell observes the residual of each B in A with precision
//! lambda^2 N_B / N_A. From the largest sets down, set B gets a table of its own with what is missing to
//! tau_B. If larger tables already observe B more precisely than tau_B, they are changed to add lambda_{A,B}
//! in the direction of this residual, all by the same factor.

use crate::queries::marginals::tables::Tables;

/// A table that would get less than this part of an even share of the budget gets none.
const LEAST: f64 = 0.01;

/// The strategy of smallest F, for rows that move it by 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Precisions {
    /// lambda_{A,B} for each table A and each B among its subsets, in the order of [`Tables::subsets`].
    pub(crate) factors: Vec<Vec<f64>>,
}

/// tau_B for each set B: the sum over tables A of lambda_{A,B}^2 N_B / N_A.
pub(crate) fn precisions(tables: &Tables, factors: &[Vec<f64>]) -> Vec<f64> {
    let mut precisions = vec![0.0; factors.len()];
    for (table, (subsets, factors)) in tables.subsets.iter().zip(factors).enumerate() {
        for (set, factor) in subsets.iter().zip(factors) {
            precisions[*set] += factor * factor * tables.share(*set, table);
        }
    }
    precisions
}

/// (N_B / N_A)^2 c_B: the part of residual B's variance in a cell of table A.
pub(crate) fn of_residual(tables: &Tables, table: usize, set: usize) -> f64 {
    let share = tables.share(set, table);
    share * share * tables.residual(set)
}

/// v_B for each set B.
fn errors(tables: &Tables) -> Vec<f64> {
    let mut errors = vec![0.0; tables.tables.len()];
    for (table, subsets) in tables.subsets.iter().enumerate().filter(|(at, _)| tables.tables[*at].is_asked) {
        subsets.iter().for_each(|set| errors[*set] += of_residual(tables, table, *set));
    }
    errors
}

/// F: the sum over the published tables of the variance of a cell.
#[cfg(test)]
pub(crate) fn loss(tables: &Tables, factors: &[Vec<f64>]) -> f64 {
    errors(tables).iter().zip(precisions(tables, factors)).map(|(error, tau)| error / tau).sum()
}

/// The smallest F of any strategy.
#[cfg(test)]
pub(crate) fn bound(tables: &Tables) -> f64 {
    let errors = errors(tables).into_iter().enumerate();
    errors.map(|(set, error)| (error * tables.residual(set)).sqrt()).sum::<f64>().powi(2)
}

impl Precisions {
    /// The strategy of smallest F.
    ///
    /// Computed with sums, products, quotients and roots in a fixed order: every machine has the same.
    pub(crate) fn best(tables: &Tables) -> Self {
        let (count, errors) = (tables.tables.len(), errors(tables));
        let wanted: Vec<f64> = (0..count).map(|set| (errors[set] / tables.residual(set)).sqrt()).collect();
        let norm: f64 = (0..count).map(|set| tables.residual(set) * wanted[set]).sum();
        let mut factors: Vec<Vec<f64>> = tables.subsets.iter().map(|sets| vec![0.0; sets.len()]).collect();
        // Larger sets have larger indices.
        for set in (0..count).rev() {
            let above = &tables.supersets[set];
            let of_table = |(table, place): &(usize, usize)| {
                let factor = factors[*table][*place];
                factor * factor * tables.share(set, *table)
            };
            let observed: f64 = above.iter().map(of_table).sum();
            if observed > wanted[set] {
                let factor = (wanted[set] / observed).sqrt();
                above.iter().for_each(|(table, place)| factors[*table][*place] *= factor);
            } else if observed == 0.0 || wanted[set] - observed > LEAST * norm / count as f64 {
                factors[set].fill((wanted[set] - observed).sqrt());
            }
        }
        let taus = precisions(tables, &factors);
        let norm: f64 = (0..count).map(|set| tables.residual(set) * taus[set]).sum();
        factors.iter_mut().flatten().for_each(|factor| *factor /= norm.sqrt());
        Self { factors }
    }
}
