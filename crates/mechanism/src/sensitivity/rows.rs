//! The sensitivity to rows of l1 norm at most 1, and so to scalars.

use std::fmt;

use antinoise_input::{InvalidParameter, larger};
use serde::{Deserialize, Serialize};

use super::general::cyclic;
use super::patterns::{Blocks, MAX_TABLED, listed, magnitudes, spectral_bound};
use super::signs::SignSearch;
use super::value::{Kind, Sensitivity};
use super::worst_pattern::PatternSearch;
use crate::numeric::limits::check_held;
use crate::{Encoder, Participation, Result, Separation};

/// Number of operations after which a search ends with an upper bound: about a second.
const OPERATIONS: usize = 1 << 27;
/// Source of an exact value.
const WORST_SIGNS: &str = "rows bounded in l1: the worst pattern and signs of scalar contributions";

/// The norm in which a row of G, the contribution of one unit to one step, is at most 1 (in clip norms).
///
/// With rows bounded in l1, sens^2 is the maximum over patterns pi and over signs u_t = +-1 of the sum over
/// t, tau in pi of u_t u_tau (C^T C)\[t, tau\]: the sensitivity to scalars, for rows of every length m. With
/// rows bounded in l2 it is at least that, and at most sqrt(pi / 2) times (Grothendieck).
///
/// # Proof
/// 1. ||C G||_F^2 is convex in G, so its maximum over rows in the l1 ball is attained where each row is an
///    extreme point u_t e_c(t): a sign at a single coordinate c(t).
/// 2. Let u^c be u at the steps where c(t) = c, and 0 elsewhere. Then ||C G||_F^2 is the sum over coordinates
///    c of ||C u^c||^2.
/// 3. That is the mean of ||C sum over c of s_c u^c||^2 over independent uniform signs s_c, hence at most its
///    maximum. Each sum is a vector of signs.
/// 4. Scalars G = u attain it.
///
/// ```
/// use antinoise_mechanism::{AnyStrategy, Participation, sensitivity::RowNorm};
/// use antinoise_linear::Matrix;
/// let rows = [[2.0, 1.0, 1.0], [1.0, 2.0, -1.0], [1.0, -1.0, 2.0], [0.0, 0.0, 0.1]];
/// let c = AnyStrategy::of_matrix(&Matrix::from_fn(4, 3, |i, j| rows[i][j]))?;
/// let of = |rows| c.sensitivity_of(&Participation::FullBatch, rows);
/// assert!((of(RowNorm::L1)?.value.powi(2) - 24.01).abs() < 1e-9); // signs +, +, +
/// assert!(of(RowNorm::L2)?.value.powi(2) > 26.4); // attained by vectors of two dimensions
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
///
/// The same maximum holds for rows of l2 norm at most 1 that are all multiples of one vector (they are that
/// vector times scalars), or orthogonal to each other (step 3 with one coordinate for each row).
///
/// # Source
/// Multi-epoch paper, Theorem H.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowNorm {
    /// The l2 norm: gradients that are clipped as vectors.
    #[default]
    L2,
    /// The l1 norm: scalars, and vectors whose magnitudes sum to at most 1.
    L1,
}

impl fmt::Display for RowNorm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::L2 => "l2",
            Self::L1 => "l1",
        })
    }
}

impl std::str::FromStr for RowNorm {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "l2" => Ok(Self::L2),
            "l1" => Ok(Self::L1),
            _ => Err(InvalidParameter::new("row norm", format!("{text:?}"), "l1 or l2").into()),
        }
    }
}

/// Returns the sensitivity to rows bounded in l1, where `vectors` is an upper bound for rows bounded in l2.
///
/// Patterns are searched with their signs by branch and bound: exact, unless the search takes too many
/// operations. The smaller of its upper bound and `vectors` is then returned; `vectors` where a unit takes
/// part once in each epoch.
pub(crate) fn of_l1_rows(
    encoder: &Encoder,
    participation: &Participation,
    vectors: Sensitivity,
) -> Result<Sensitivity> {
    let n = encoder.steps();
    let Separation { min_sep: b, max_participations: k } = participation.separation(n);
    let found = match participation {
        Participation::MinSep { .. } => min_sep(encoder, b, k)?,
        Participation::EachEpoch { .. } => return Ok(vectors),
        Participation::Patterns { patterns } => over_patterns(&listed(encoder, patterns)?)?,
        Participation::Single | Participation::FullBatch | Participation::Cyclic { .. } => {
            check_held("steps times participations", n.saturating_mul(k))?;
            // For Toeplitz C, C u of a later phase is the beginning of C u of the first one.
            let toeplitz = matches!(encoder, Encoder::Toeplitz { .. });
            let blocks = cyclic(encoder, b, k);
            over_patterns(&Blocks { count: if toeplitz { 1 } else { blocks.count }, ..blocks })?
        }
    };
    Ok(match found {
        Some(found) if found.value <= vectors.value || found.kind == Kind::Exact => found,
        _ => vectors,
    })
}

/// Returns the maximum over patterns and signs, from the pattern of the largest magnitudes down. Patterns
/// whose magnitudes sum to less than the maximum are left out.
fn over_patterns(blocks: &Blocks<'_>) -> Result<Option<Sensitivity>> {
    let mut bounds: Vec<(f64, usize)> = (0..blocks.count).map(|u| (magnitudes(&(blocks.of)(u)), u)).collect();
    bounds.sort_unstable_by(|x, y| y.0.total_cmp(&x.0));
    let (mut exact, mut beyond, mut left) = (0.0, 0.0, OPERATIONS);
    for (bound, u) in bounds {
        if bound <= larger(exact, beyond) {
            break;
        }
        let block = (blocks.of)(u);
        let mut search = SignSearch::new(&block, left);
        let found = search.largest();
        left = search.left();
        if found.exact {
            exact = larger(exact, found.value);
        } else {
            beyond = larger(beyond, found.value.min(bound).min(spectral_bound(&block)));
        }
    }
    stated(larger(exact, beyond), exact >= beyond).map(Some)
}

/// Returns the maximum over patterns of min-sep and signs; `None` if C^T C is too large to be held.
fn min_sep(encoder: &Encoder, b: usize, k: usize) -> Result<Option<Sensitivity>> {
    let n = encoder.steps();
    if n.saturating_mul(n.max(k)) > MAX_TABLED {
        return Ok(None);
    }
    let x = encoder.gram();
    let separation = Separation { min_sep: b, max_participations: k };
    let found = PatternSearch::signed(&x, separation).largest(OPERATIONS);
    stated(found.value, found.exact).map(Some)
}

fn stated(squared: f64, exact: bool) -> Result<Sensitivity> {
    let of = if exact { Sensitivity::exact } else { Sensitivity::upper_bound };
    of(squared.sqrt(), WORST_SIGNS)
}
