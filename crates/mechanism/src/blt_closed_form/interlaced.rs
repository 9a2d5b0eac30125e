//! Interlaced nodes p_0 < p_1 < ... in (0, 1) from unconstrained variables u, and the weights that follow
//! from them.
//!
//! 1. Even nodes are the delta_i of C, odd nodes the delta^_i of C^-1.
//! 2. Their logits are x_0 = u_0 and x_{j+1} = x_j + e^{u_{j+1}}, so that every u in R^{2d} is a valid BLT.
//! 3. The residue of node a is rho_a = prod over nodes b of the other kind |p_b - p_a| / prod over the other
//!    nodes b of its kind |p_b - p_a|. The weights alpha_i = rho_{2i} and beta_i = rho_{2i+1} / p_{2i+1} are
//!    all positive.

/// Returns 1 / (1 + e^-x).
fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Nodes and residues at a point u, and the numbers by which their derivatives are mapped to derivatives in
/// u.
pub(crate) struct Interlaced {
    gaps: Vec<f64>,
    complements: Vec<f64>,
    /// delta_1, delta^_1, delta_2, ...
    pub(crate) nodes: Vec<f64>,
    /// rho, one per node.
    pub(crate) residues: Vec<f64>,
    /// The distances |p_b - p_a| of all pairs of nodes, row by row.
    differences: Vec<f64>,
}

impl Interlaced {
    pub(crate) fn from_variables(u: &[f64]) -> Self {
        let gaps: Vec<f64> = u.iter().enumerate().map(|(j, u)| if j == 0 { *u } else { u.exp() }).collect();
        let logits: Vec<f64> = gaps
            .iter()
            .scan(0.0, |x, gap| {
                *x += gap;
                Some(*x)
            })
            .collect();
        let nodes: Vec<f64> = logits.iter().map(|&x| logistic(x)).collect();
        let complements: Vec<f64> = logits.iter().map(|&x| logistic(-x)).collect();
        let size = nodes.len();
        let mut differences = vec![0.0; size * size];
        for a in 0..size {
            let mut apart = 0.0;
            for b in a + 1..size {
                apart += gaps[b];
                // logistic(y) - logistic(x), without a subtraction
                let difference = nodes[b] * complements[a] * -(-apart).exp_m1();
                differences[a * size + b] = difference;
                differences[b * size + a] = difference;
            }
        }
        let residues = (0..size).map(|a| residue(a, &differences[a * size..(a + 1) * size])).collect();
        Self { gaps, complements, nodes, residues, differences }
    }

    /// Returns g = prod delta_i / delta^_i, the limit of b_t.
    pub(crate) fn limit(&self) -> f64 {
        self.nodes.chunks_exact(2).map(|pair| pair[0] / pair[1]).product()
    }

    /// Maps d/dnodes and d/dresidues to d/du.
    pub(crate) fn gradient(&self, d_nodes: &[f64], d_residues: &[f64]) -> Vec<f64> {
        let size = self.nodes.len();
        let mut d = d_nodes.to_vec();
        for a in 0..size {
            let flow = d_residues[a] * self.residues[a];
            for b in (0..size).filter(|&b| b != a) {
                let sign = if (a + b) % 2 == 1 { 1.0 } else { -1.0 };
                let direction = if b > a { 1.0 } else { -1.0 };
                let slope = sign * direction * flow / self.differences[a * size + b];
                d[b] += slope;
                d[a] -= slope;
            }
        }
        let d_logits = (0..size).map(|a| d[a] * self.nodes[a] * self.complements[a]);
        let mut tail = 0.0;
        let mut out: Vec<f64> = d_logits
            .rev()
            .map(|d| {
                tail += d;
                tail
            })
            .collect();
        out.reverse();
        for (out, gap) in out.iter_mut().zip(&self.gaps).skip(1) {
            *out *= gap;
        }
        out
    }
}

/// Returns the residue rho of node `a` from its distances to all nodes. Factors and divisors alternate, so
/// that the result does not overflow on the way.
fn residue(a: usize, distances: &[f64]) -> f64 {
    let opposite = distances.iter().enumerate().filter(|(b, _)| (a + b) % 2 == 1).map(|(_, d)| d);
    let same =
        distances.iter().enumerate().filter(|&(b, _)| b != a && (a + b).is_multiple_of(2)).map(|(_, d)| d);
    opposite.zip(same.chain(std::iter::once(&1.0))).map(|(up, down)| up / down).product()
}

/// Returns rho for every node of a list of interlaced nodes, such as a stored BLT's.
pub(crate) fn residues(nodes: &[f64]) -> Vec<f64> {
    (0..nodes.len())
        .map(|a| {
            let distances: Vec<f64> = nodes.iter().map(|p| (p - nodes[a]).abs()).collect();
            residue(a, &distances)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Tolerance, assert_gradient};

    #[test]
    fn any_variables_interlace_and_the_weights_add_up() {
        for u in [vec![-3.0, 0.5, -1.0, 0.2], vec![-12.0, 1.0, 0.0, 1.5, -2.0, 0.7]] {
            let blt = Interlaced::from_variables(&u);
            assert!(blt.nodes.windows(2).all(|p| p[0] < p[1]));
            let beta_sum: f64 = (1..u.len()).step_by(2).map(|a| blt.residues[a] / blt.nodes[a]).sum();
            assert!((blt.limit() + beta_sum - 1.0).abs() < 1e-13, "b_0 = 1");
            for (x, y) in blt.residues.iter().zip(residues(&blt.nodes)) {
                assert!((x - y).abs() < 1e-12 * y);
            }
        }
    }

    #[test]
    fn the_gradient_is_the_finite_difference() {
        let u = [-2.0, 0.3, -0.7, 0.4, 0.1, -0.2];
        let f = |u: &[f64]| {
            let blt = Interlaced::from_variables(u);
            let weigh = |x: &[f64]| x.iter().enumerate().map(|(i, x)| (i + 1) as f64 * x * x).sum::<f64>();
            weigh(&blt.nodes) + weigh(&blt.residues)
        };
        let blt = Interlaced::from_variables(&u);
        let slopes =
            |x: &[f64]| -> Vec<f64> { x.iter().enumerate().map(|(i, x)| 2.0 * (i + 1) as f64 * x).collect() };
        let gradient = blt.gradient(&slopes(&blt.nodes), &slopes(&blt.residues));
        let tolerance = Tolerance { absolute: 1e-8, relative: 1e-8 };
        assert_gradient("interlaced", f, &u, &gradient, 1e-5, tolerance);
    }
}
