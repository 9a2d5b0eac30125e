//! Lanczos' method: a quadrature of a linear map's spectrum from a few of its products with vectors.

use antinoise_linear::{Matrix, symmetric_eigen};

use crate::Error;

/// A remaining part of a product, relative to the product, below which the basis spans an invariant space.
/// Products in single precision are not known better.
const NEGLIGIBLE: f64 = 1e-6;

/// Returns nodes lambda_j and weights w_j for which the sum of w_j f(lambda_j) is near v^T f(S) v, for the
/// symmetric part S of the map A v = `product(v)` and the unit vector v = `start`. There are at most `count`
/// nodes, and the weights add up to 1. `None` if `product` returns it.
///
/// Each product is made orthogonal to the whole basis V, twice, so that rounding makes no copies of
/// eigenvalues. The nodes are the eigenvalues of V^T S V, the symmetric part of V^T A V. For a symmetric A it
/// is tridiagonal, and the quadrature is exact for polynomials of degree 2 `count` - 1.
///
/// # Source
/// G. Golub, J. Welsch, Calculation of Gauss quadrature rules, Math. Comp. 23 (1969).
pub(super) fn quadrature(
    start: Vec<f64>,
    count: usize,
    mut product: impl FnMut(&[f64]) -> Result<Option<Vec<f64>>, Error>,
) -> Result<Option<Vec<(f64, f64)>>, Error> {
    // Column j of V^T A V down to the entry below its diagonal.
    let (mut basis, mut columns): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (vec![start], Vec::new());
    for j in 0..count {
        let Some(mut rest) = product(&basis[j])? else { return Ok(None) };
        let length = norm(&rest);
        let mut column = remove(&basis, &mut rest);
        column.iter_mut().zip(remove(&basis, &mut rest)).for_each(|(sum, more)| *sum += more);
        let left = norm(&rest);
        column.push(left);
        columns.push(column);
        if left <= NEGLIGIBLE * length {
            break;
        }
        basis.push(rest.iter().map(|x| x / left).collect());
    }
    let entry = |i: usize, j: usize| columns[j].get(i).copied().unwrap_or(0.0);
    let k = columns.len();
    let symmetric = Matrix::from_fn(k, k, |i, j| 0.5 * (entry(i, j) + entry(j, i)));
    let (nodes, vectors) = symmetric_eigen(&symmetric)
        .map_err(antinoise_mechanism::Error::from)
        .map_err(antinoise_plan::Error::from)?;
    Ok(Some(nodes.into_iter().enumerate().map(|(j, node)| (node, vectors[(0, j)].powi(2))).collect()))
}

/// Takes the parts along the orthonormal `basis` off `vector`, and returns their sizes.
fn remove(basis: &[Vec<f64>], vector: &mut [f64]) -> Vec<f64> {
    let part = |unit: &Vec<f64>| {
        let size: f64 = unit.iter().zip(&*vector).map(|(x, y)| x * y).sum();
        vector.iter_mut().zip(unit).for_each(|(x, unit)| *x -= size * unit);
        size
    };
    basis.iter().map(part).collect()
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::examples::draws;
    use super::*;

    fn times(matrix: &[Vec<f64>], vector: &[f64]) -> Vec<f64> {
        matrix.iter().map(|row| row.iter().zip(vector).map(|(x, y)| x * y).sum()).collect()
    }

    fn unit(n: usize, draw: &mut impl FnMut() -> f64) -> Vec<f64> {
        let vector: Vec<f64> = (0..n).map(|_| draw() - 0.5).collect();
        let length = norm(&vector);
        vector.iter().map(|x| x / length).collect()
    }

    fn symmetric(n: usize, draw: &mut impl FnMut() -> f64) -> Vec<Vec<f64>> {
        let any: Vec<Vec<f64>> = (0..n).map(|_| (0..n).map(|_| draw() - 0.5).collect()).collect();
        (0..n).map(|i| (0..n).map(|j| any[i][j] + any[j][i]).collect()).collect()
    }

    fn found(matrix: &[Vec<f64>], start: &[f64], count: usize) -> Vec<(f64, f64)> {
        quadrature(start.to_vec(), count, |v| Ok(Some(times(matrix, v)))).unwrap().unwrap()
    }

    /// As many steps as rows find the dense eigenvalues, and the square of the start's part along each.
    #[test]
    fn all_steps_find_the_eigenvalues_of_random_matrices() {
        let mut draw = draws(3);
        for n in 1..25 {
            let (matrix, start) = (symmetric(n, &mut draw), unit(n, &mut draw));
            let dense = Matrix::from_fn(n, n, |i, j| matrix[i][j]);
            let (values, vectors) = symmetric_eigen(&dense).unwrap();
            for (j, (node, weight)) in found(&matrix, &start, n).into_iter().enumerate() {
                let part: f64 = (0..n).map(|i| vectors[(i, j)] * start[i]).sum();
                assert!((node - values[j]).abs() < 1e-10, "{n}: {node} {}", values[j]);
                assert!((weight - part.powi(2)).abs() < 1e-8, "{n}: {weight} {part}");
            }
        }
    }

    /// k steps are exact for the powers up to 2 k - 1, whose values follow from products alone.
    #[test]
    fn few_steps_are_a_gauss_quadrature() {
        let mut draw = draws(5);
        for case in 0..100 {
            let (n, count) = (12 + case % 9, 2 + case % 4);
            let (matrix, start) = (symmetric(n, &mut draw), unit(n, &mut draw));
            let nodes = found(&matrix, &start, count);
            assert!(nodes.len() == count && nodes.iter().all(|&(_, weight)| weight >= 0.0));
            assert!(nodes.windows(2).all(|pair| pair[0].0 <= pair[1].0), "{nodes:?}");
            let mut power = start.clone();
            for degree in 0..2 * count {
                let known: f64 = start.iter().zip(&power).map(|(x, y)| x * y).sum();
                let sum: f64 = nodes.iter().map(|(node, w)| w * node.powi(degree as i32)).sum();
                let scale: f64 = nodes.iter().map(|(node, w)| w * node.abs().powi(degree as i32)).sum();
                assert!((sum - known).abs() < 1e-9 * scale, "{degree}: {sum} {known}");
                power = times(&matrix, &power);
            }
        }
    }

    /// A map with few different eigenvalues ends early, and one that is not symmetric has the symmetric
    /// part's mean.
    #[test]
    fn invariant_spaces_end_it_and_skew_parts_do_not_count() {
        let mut draw = draws(9);
        let start = unit(30, &mut draw);
        let scale = |i: usize| if i < 10 { 2.0 } else { -1.0 };
        let map = |v: &[f64]| Ok(Some(v.iter().enumerate().map(|(i, x)| scale(i) * x).collect()));
        let nodes = quadrature(start.clone(), 20, map).unwrap().unwrap();
        let part: f64 = start[..10].iter().map(|x| x * x).sum();
        assert_eq!(nodes.len(), 2);
        assert!((nodes[0].0 + 1.0).abs() < 1e-12 && (nodes[1].0 - 2.0).abs() < 1e-12, "{nodes:?}");
        assert!((nodes[1].1 - part).abs() < 1e-12, "{nodes:?} {part}");

        let mut skewed = symmetric(30, &mut draw);
        let mean = times(&skewed, &start).iter().zip(&start).map(|(x, y)| x * y).sum::<f64>();
        for i in 0..30 {
            for j in 0..i {
                let skew = draw() - 0.5;
                skewed[i][j] += skew;
                skewed[j][i] -= skew;
            }
        }
        let nodes = found(&skewed, &start, 6);
        assert!((nodes.iter().map(|(node, weight)| node * weight).sum::<f64>() - mean).abs() < 1e-12);
    }
}
