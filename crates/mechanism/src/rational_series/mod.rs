//! Power series P(X) / Q(X), where X = x / (1 - x) maps a sequence to the sums of its earlier terms.
//!
//! 1. Every rational function of x of degree d with value 1 at 0 is such a quotient, with P(0) = Q(0) = 1 and
//!    degrees at most d: multiply numerator and denominator by (1 + X)^d, since x = X / (1 + X).
//! 2. A factor 1 - lambda x is (1 - x)(1 + delta X) with delta = 1 - lambda. So the coefficient of X^k is the
//!    elementary symmetric function e_k of the complements delta of the poles or zeros. It does not lose
//!    digits as lambda approaches 1, where the coefficients of powers of x cancel, and it changes by a few
//!    units in the last place if the complements do.
//! 3. Complex and repeated poles need no other form.

pub(crate) mod powers;
pub(crate) mod running_sums;
pub(crate) mod sections;
pub(crate) mod stability;
