//! Sums over p < k of L_ip = sum over j <= p of lambda_i^(jb), for k participations that are b steps apart,
//! in O(log k) operations and with positive terms only.
//!
//! 1. After the first K participations, L_i(K+q) = g_i + r_i L_iq for q >= 0, where g_i = sum over j < K of
//!    lambda_i^(jb) and r_i = lambda_i^(Kb).
//! 2. So the sums over K + M participations follow from the sums over K and the sums over M.
//! 3. Doubling gives the sums over any number of participations.

use super::geometric::power;

/// A number and its derivative in delta_i.
#[derive(Debug, Clone, Copy)]
pub(super) struct DualNumber {
    pub(super) value: f64,
    pub(super) slope: f64,
}

impl std::ops::Add for DualNumber {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { value: self.value + other.value, slope: self.slope + other.slope }
    }
}

impl std::ops::Mul for DualNumber {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let slope = self.slope * other.value + self.value * other.slope;
        Self { value: self.value * other.value, slope }
    }
}

const fn constant(value: f64) -> DualNumber {
    DualNumber { value, slope: 0.0 }
}

/// Sums over the first k - 1 participations, for the nodes i and j of C.
pub(super) struct Shifts {
    /// The sum over p < k - 1 of L_ip, defined at the head of this file.
    pub(super) sums: DualNumber,
    /// The sum over p < k - 1 of L_ip L_jp.
    pub(super) products: DualNumber,
    /// The product L_i(k-1) L_j(k-1).
    pub(super) last_product: DualNumber,
}

/// The sums of the head of this file over `count` consecutive participations.
#[derive(Clone, Copy)]
struct Run {
    count: f64,
    g: [DualNumber; 2],
    sums: [DualNumber; 2],
    products: DualNumber,
}

impl Shifts {
    pub(super) fn new(delta_i: f64, delta_j: f64, b: usize, k: usize) -> Self {
        let one = constant(1.0);
        let once = Run { count: 1.0, g: [one; 2], sums: [one; 2], products: one };
        let zero = constant(0.0);
        let mut run = Run { count: 0.0, g: [zero; 2], sums: [zero; 2], products: zero };
        let after = |run: Run, next: Run| run.followed_by(next, [delta_i, delta_j], b as f64);
        let count = k - 1;
        for bit in (0..usize::BITS - count.leading_zeros()).rev() {
            run = after(run, run);
            if count >> bit & 1 == 1 {
                run = after(run, once);
            }
        }
        let last = after(run, once).g;
        Self { sums: run.sums[0], products: run.products, last_product: last[0] * last[1] }
    }
}

impl Run {
    fn followed_by(self, next: Self, delta: [f64; 2], b: f64) -> Self {
        let steps = self.count * b;
        let slope = if steps == 0.0 { 0.0 } else { -steps * power(steps - 1.0, delta[0]) };
        let r = [DualNumber { value: power(steps, delta[0]), slope }, constant(power(steps, delta[1]))];
        let repeated = |x: DualNumber| constant(next.count) * x;
        let each = |f: &dyn Fn(usize) -> DualNumber| [f(0), f(1)];
        Self {
            count: self.count + next.count,
            g: each(&|i| self.g[i] + r[i] * next.g[i]),
            sums: each(&|i| self.sums[i] + repeated(self.g[i]) + r[i] * next.sums[i]),
            products: self.products
                + repeated(self.g[0] * self.g[1])
                + self.g[0] * r[1] * next.sums[1]
                + self.g[1] * r[0] * next.sums[0]
                + r[0] * r[1] * next.products,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_the_sums_and_slopes_their_derivatives() {
        for (b, k) in [(1, 1), (1, 2), (3, 5), (2, 8), (1, 1000), (7, 129)] {
            for (x, y) in [(1e-6, 0.3), (0.02, 0.02), (0.9, 1e-9), (1.0, 0.5)] {
                let l = |x: f64, p: usize| (0..=p).map(|j| (1.0 - x).powi((j * b) as i32)).sum::<f64>();
                let of = |term: &dyn Fn(usize) -> f64| (0..k - 1).map(term).sum::<f64>();
                let close = |got: f64, want: f64| (got - want).abs() <= 1e-11 * want.abs();
                let found = Shifts::new(x, y, b, k);
                assert!(close(found.sums.value, of(&|p| l(x, p))), "{b} {k} {x} {y}");
                assert!(close(found.products.value, of(&|p| l(x, p) * l(y, p))), "{b} {k} {x} {y}");
                assert!(close(found.last_product.value, l(x, k - 1) * l(y, k - 1)), "{b} {k} {x} {y}");
                if x < 1.0 {
                    let h = 1e-4 * x.min(1.0 - x);
                    let at = |h: f64| Shifts::new(x + h, y, b, k);
                    let (up, down) = (at(h), at(-h));
                    for (up, down, slope) in [
                        (up.sums.value, down.sums.value, found.sums.slope),
                        (up.products.value, down.products.value, found.products.slope),
                        (up.last_product.value, down.last_product.value, found.last_product.slope),
                    ] {
                        let difference = (up - down) / (2.0 * h);
                        let noise = 1e-15 * up / h;
                        assert!(
                            (difference - slope).abs() <= 1e-5 * slope.abs() + 10.0 * noise,
                            "{b} {k} {x} {y}: {difference} {slope}"
                        );
                    }
                }
            }
        }
    }
}
