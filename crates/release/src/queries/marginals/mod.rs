//! Marginals: the strategy over the cells of several tables of counts, and least squares from their noisy
//! cells.
//!
//! Every table A has a cell for each combination of its attributes' classes. With x_A for the true counts,
//! the increments are M_A x_A for a matrix of whole numbers ([`code`]): mostly p_A I, so that a row adds p_A
//! points to its own cell. Everything that a row adds has the same l2 norm whatever its classes are, which
//! [`Marginals::codes`] keeps within the points of a row, in integers. The numbers approach the strategy of
//! smallest error ([`precision`]).
//!
//! Least squares separates by residuals (ResidualPlanner, Xiao et al. 2023). With P = I - 1 1^T / n for an
//! attribute of n classes, the residual of a set B of attributes is r_B = (kron_{i in B} P) x_B. The noisy
//! cells y_A of a table A that contains B, summed to the attributes of B and centred, are lambda_{A,B} r_B
//! plus noise of variance N_A / N_B in each direction of the residual, where lambda_{A,B} is the factor of
//! M_A on it; other tables say nothing about r_B. So the best estimate is
//!
//! ```text
//! r_B = (1 / tau_B) sum over A of lambda_{A,B} (N_B / N_A) (y_A, summed and centred),
//! tau_B = sum over A of lambda_{A,B}^2 N_B / N_A,
//! ```
//!
//! with variance 1 / tau_B in each direction, independently for different B. A table is put together as x_A =
//! sum over B in A of (N_B / N_A) r_B, repeated along the other attributes. Every r_B with B in A is the same
//! for all tables: sums of a table over an attribute are the cells of the table without it.

pub(crate) mod code;
pub(crate) mod precision;
pub(crate) mod tables;

use crate::queries::attribute::{Attribute, TOTAL};
use crate::queries::buckets::LEAST_POINTS;
use crate::queries::marginals::precision::{Precisions, of_residual, precisions};
use crate::queries::marginals::tables::Tables;

/// The relative step by which codes are made smaller until rows are within their bound.
const STEP: f64 = 1.0 / 4096.0;

/// The tables of a query for marginals, and the strategy over their cells.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Marginals {
    pub(crate) tables: Tables,
    pub(crate) precisions: Precisions,
}

/// Least squares from the noisy cells of a key's tables.
#[derive(Debug, Clone)]
pub(crate) struct LeastSquares<'m> {
    tables: &'m Tables,
    /// lambda_{A,B} for each table A and each of its subsets B, in points.
    factors: Vec<Vec<f64>>,
    /// tau_B, for cells with noise of variance 1.
    precisions: Vec<f64>,
}

impl Marginals {
    /// Attributes with `sizes` classes, of which the tables of `ways` attributes are published.
    pub(crate) fn new(sizes: Vec<usize>, ways: &[usize]) -> Self {
        let tables = Tables::new(sizes, ways);
        let precisions = Precisions::best(&tables);
        Self { tables, precisions }
    }

    /// The points of a row with which it adds at least [`LEAST_POINTS`] to each table that has a share of the
    /// budget: rounding them then adds less than 1% to standard deviations.
    pub(crate) fn least_points(&self) -> f64 {
        let own = self.precisions.factors.iter().filter_map(|factors| factors.last().copied());
        let least = own.filter(|factor| *factor > 0.0).fold(1.0, f64::min);
        LEAST_POINTS as f64 / least
    }

    /// The code of each table, such that a row adds at most `all` points to all tables together, in l2 norm.
    pub(crate) fn codes(&self, all: i64) -> Vec<Vec<i64>> {
        let bound = i128::from(all).pow(2);
        for step in 0u32.. {
            let scale = all as f64 * (1.0 - STEP * f64::from(step)).max(0.0);
            let of_table = |(table, factors): (usize, &Vec<f64>)| {
                let factors: Vec<f64> = factors.iter().map(|factor| factor * scale).collect();
                code::of_factors(&self.tables.sizes_of(table), &factors)
            };
            let codes: Vec<Vec<i64>> = self.precisions.factors.iter().enumerate().map(of_table).collect();
            if scale == 0.0 || self.squared_norm(&codes).is_some_and(|norm| norm <= bound) {
                return codes;
            }
        }
        unreachable!("a scale of 0 ends the loop")
    }

    /// The squared l2 norm of what a row adds; `None` beyond 127 bits.
    pub(crate) fn squared_norm(&self, codes: &[Vec<i64>]) -> Option<i128> {
        codes.iter().enumerate().try_fold(0i128, |sum, (table, code)| {
            sum.checked_add(code::squared_norm(&self.tables.sizes_of(table), code)?)
        })
    }

    /// Whether every residual is observed where a row adds `all` points.
    pub(crate) fn are_observed(&self, all: i64) -> bool {
        LeastSquares::new(self, all).precisions.iter().all(|tau| *tau > 0.0)
    }

    /// Converts a key's rows in the cells of all tables to points; `None` on overflow.
    pub(crate) fn encode(&self, codes: &[Vec<i64>], cells: &mut [i64]) -> Option<()> {
        for (at, (table, code)) in self.tables.tables.iter().zip(codes).enumerate() {
            let rows = &mut cells[table.first..table.first + table.cells];
            let mut points = vec![0i64; table.cells];
            for (set, number) in self.tables.subsets[at].iter().zip(code).filter(|(_, number)| **number != 0)
            {
                let places = self.tables.projection(at, *set);
                let mut sums = vec![0i64; self.tables.tables[*set].cells];
                for (rows, place) in rows.iter().zip(&places) {
                    sums[*place] = sums[*place].checked_add(*rows)?;
                }
                for (points, place) in points.iter_mut().zip(places) {
                    *points = points.checked_add(sums[place].checked_mul(*number)?)?;
                }
            }
            rows.copy_from_slice(&points);
        }
        Some(())
    }
}

impl<'m> LeastSquares<'m> {
    /// Least squares for rows of `all` points.
    pub(crate) fn new(marginals: &'m Marginals, all: i64) -> Self {
        let tables = &marginals.tables;
        let codes = marginals.codes(all).into_iter().enumerate();
        let factors: Vec<Vec<f64>> =
            codes.map(|(table, code)| code::factors(&tables.sizes_of(table), &code)).collect();
        let precisions = precisions(tables, &factors);
        Self { tables, factors, precisions }
    }

    /// The indices of the published tables.
    pub(crate) fn asked(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.factors.len()).filter(|table| self.tables.tables[*table].is_asked)
    }
    /// The names of the cells of the published tables: `city=north;age 18 to 30`, or `all` for the total.
    pub(crate) fn names(&self, attributes: &[Attribute]) -> Vec<String> {
        let of_cell = |table: usize, cell: usize| -> String {
            let classes = self.tables.classes(table, cell).into_iter();
            let named = classes.map(|(attribute, class)| attributes[attribute].class_name(class));
            named_or_all(named.collect(), ";")
        };
        let cells = |table: usize| (0..self.tables.tables[table].cells).map(move |cell| (table, cell));
        self.asked().flat_map(cells).map(|(table, cell)| of_cell(table, cell)).collect()
    }

    /// The columns of a table: `city,age`, or `all` for the total.
    pub(crate) fn columns(&self, table: usize, attributes: &[Attribute]) -> String {
        let columns = self.tables.tables[table].attributes.iter().map(|at| attributes[*at].column.clone());
        named_or_all(columns.collect(), ",")
    }

    /// Standard deviation in rows of each cell of `table`, for cells with noise of variance 1.
    pub(crate) fn deviation(&self, table: usize) -> f64 {
        let of_set = |set: &usize| of_residual(self.tables, table, *set) / self.precisions[*set];
        self.tables.subsets[table].iter().map(of_set).sum::<f64>().sqrt()
    }

    /// The estimated rows in each cell of the published tables, from the noisy cells of all tables.
    pub(crate) fn counts(&self, cells: &[i64]) -> Vec<Vec<f64>> {
        let residuals = self.residuals(cells);
        let of_table = |table: usize| {
            let mut counts = vec![0.0; self.tables.tables[table].cells];
            for set in &self.tables.subsets[table] {
                let (share, residual) = (self.tables.share(*set, table), &residuals[*set]);
                let places = self.tables.projection(table, *set);
                counts.iter_mut().zip(places).for_each(|(count, place)| *count += share * residual[place]);
            }
            counts
        };
        self.asked().map(of_table).collect()
    }

    /// r_B for each set B.
    fn residuals(&self, cells: &[i64]) -> Vec<Vec<f64>> {
        let tables = &self.tables.tables;
        let mut residuals: Vec<Vec<f64>> = tables.iter().map(|table| vec![0.0; table.cells]).collect();
        for (at, table) in tables.iter().enumerate() {
            let noisy = &cells[table.first..table.first + table.cells];
            for (set, factor) in self.tables.subsets[at].iter().zip(&self.factors[at]) {
                let weight = factor * self.tables.share(*set, at) / self.precisions[*set];
                if weight == 0.0 {
                    continue;
                }
                let residual = &mut residuals[*set];
                let places = self.tables.projection(at, *set);
                noisy.iter().zip(places).for_each(|(y, place)| residual[place] += weight * *y as f64);
            }
        }
        for (set, residual) in residuals.iter_mut().enumerate() {
            self.tables.center(set, residual);
        }
        residuals
    }
}

fn named_or_all(names: Vec<String>, between: &str) -> String {
    if names.is_empty() { TOTAL.into() } else { names.join(between) }
}

#[cfg(test)]
mod tests;
