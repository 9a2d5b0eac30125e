//! One step of a composition as a pair of distributions, by its hockey-stick curve.
//!
//! For a pair (P, Q), D(t) = integral of (P - t Q)_+ is convex in t = e^loss, and its slope is
//! -Q(loss > ln t). Below loss 0 the curve is kept as D(t) - (1 - t) = integral of (t Q - P)_+, which is as
//! small there as D is above: neither side cancels.

/// The direction in which the curve may err.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    Up,
    Down,
}

impl Rounding {
    pub fn sign(self) -> f64 {
        if self == Self::Up { 1.0 } else { -1.0 }
    }
}

/// The curve at one loss.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    /// D(t) where loss >= 0, D(t) - (1 - t) below; rounded as asked.
    pub value: f64,
    /// Q(beyond): Q(loss > ln t) where loss >= 0, Q(loss <= ln t) below; to nearest.
    pub slope: f64,
}

impl Point {
    pub const ZERO: Self = Self { value: 0.0, slope: 0.0 };
}

/// A normal distribution with standard deviation 1 in the mixture P.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Component {
    pub mean: f64,
    pub ln_weight: f64,
}

/// The pair (P, Q) of a step: mixtures of normal distributions with standard deviation 1 on a line.
pub(crate) trait Pair: std::fmt::Debug + Send + Sync {
    /// The loss at `z`, monotone in `z`.
    fn loss(&self, z: f64) -> f64;

    /// The derivative of [`loss`](Self::loss) in `z`, without its sign.
    fn steepness(&self, z: f64) -> f64;

    /// The supremum of the loss.
    fn bound(&self) -> f64;

    /// The greatest loss within `reach` standard deviations of the means of P.
    fn greatest(&self, reach: f64) -> f64;

    /// The curve at `loss`.
    fn at(&self, loss: f64, rounding: Rounding) -> Point;

    /// The components of P, by increasing mean.
    fn components(&self) -> Vec<Component>;
}

/// A pair, and its number of repetitions.
pub(crate) type Phase = (Box<dyn Pair>, u64);
