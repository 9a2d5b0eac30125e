//! The whole numbers by which the rows of a table's cells are multiplied.
//!
//! For a table A of k attributes, the code is M = sum over C in A of m_C (product over the attributes: I if
//! it is in C, else 1 1^T), with 2^k whole numbers m_C. A row adds, to each cell that has the same class as
//! it of the attributes S and no others, the sum of m_C over C in S. On the residual of a set B in A, M is
//! the number lambda_B = sum over C from B to A of m_C N_A / N_C. Places of subsets are those of
//! [`Tables::subsets`](super::tables::Tables::subsets).

/// m_C of a table of attributes with `sizes` classes, for which the lambda_B are about `factors`.
///
/// A row's own cell gets its sum rounded down in m_A; other numbers are the nearest whole ones.
pub(crate) fn of_factors(sizes: &[usize], factors: &[f64]) -> Vec<i64> {
    let mut sums = factors.to_vec();
    for_pairs(sizes.len(), |without, with| sums[without] -= sums[with]);
    let whole = sums.len() - 1;
    let of_set = |(set, sum): (usize, f64)| match set == whole {
        true => sum.floor() as i64,
        false => (sum / outside(sizes, set)).round_ties_even() as i64,
    };
    sums.into_iter().enumerate().map(of_set).collect()
}

/// lambda_B for each B.
pub(crate) fn factors(sizes: &[usize], code: &[i64]) -> Vec<f64> {
    let mut sums: Vec<f64> =
        code.iter().enumerate().map(|(set, number)| *number as f64 * outside(sizes, set)).collect();
    for_pairs(sizes.len(), |without, with| sums[without] += sums[with]);
    sums
}

/// The squared l2 norm of what a row adds to the table, whatever its classes; `None` beyond 127 bits.
pub(crate) fn squared_norm(sizes: &[usize], code: &[i64]) -> Option<i128> {
    let mut added: Vec<i128> = code.iter().map(|number| i128::from(*number)).collect();
    for_pairs(sizes.len(), |without, with| added[with] += added[without]);
    added.iter().enumerate().try_fold(0i128, |sum, (same, added)| {
        let others = (0..sizes.len()).filter(|at| same >> at & 1 == 0);
        let cells = others.map(|at| sizes[at] as i128 - 1).try_fold(1i128, i128::checked_mul)?;
        sum.checked_add(added.checked_mul(*added)?.checked_mul(cells)?)
    })
}

/// N_A / N_C, for the place of C.
fn outside(sizes: &[usize], set: usize) -> f64 {
    sizes.iter().enumerate().filter(|(at, _)| set >> at & 1 == 0).map(|(_, size)| *size as f64).product()
}

/// Calls `change` with the places of each set without an attribute, and of the same set with it, one
/// attribute after the other.
fn for_pairs(attributes: usize, mut change: impl FnMut(usize, usize)) {
    for bit in (0..attributes).map(|at| 1usize << at) {
        for without in (0..1usize << attributes).filter(|set| set & bit == 0) {
            change(without, without | bit);
        }
    }
}
