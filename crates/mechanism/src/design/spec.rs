//! The request for a design: the class and its options.

use std::fmt;
use std::str::FromStr;

use antinoise_input::InvalidParameter;
use serde::{Deserialize, Serialize};

use super::coefficient_rule::CoefficientRule;
use crate::problem::Objective;
use crate::{AnyStrategy, Class, Result, Workload};

/// Maximum number of steps for which Toeplitz classes are designed for workloads that are not Toeplitz, where
/// an evaluation takes O(n^2) time.
const MAX_STEPS_OF_SCHEDULES: usize = 16_384;
/// The same for the last iterate, where it takes O(n log n) time.
const MAX_STEPS_OF_LAST_ITERATE: usize = 131_072;

/// A class of strategies and its options; an option that is not given takes the class's default.
///
/// ```
/// use antinoise_mechanism::{Problem, design::{Objective, StrategySpec}};
/// let problem = Problem::prefix(8).with_objective(Objective::Max);
/// let strategy = "toeplitz".parse::<StrategySpec>()?.design(&problem)?.value;
/// let sensitivity = strategy.sensitivity(&problem.participation)?;
/// let error = strategy.error(&problem.workload)?;
/// assert_eq!(format!("{:.3}", sensitivity.value * error.max), "1.718");
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StrategySpec {
    /// The class.
    pub class: Class,
    /// Number of bands, for the banded classes. Default min(16, steps).
    pub bands: Option<usize>,
    /// Number of buffers, for BLTs, where by default buffers are added while each lowers the loss by a
    /// thousandth, and for BLTs whose weights vary by step (default 4); degree, for rational strategies
    /// (default 4).
    pub order: Option<usize>,
    /// Rule by which Toeplitz coefficients are chosen.
    pub rule: CoefficientRule,
    /// Whether the columns are scaled to norm 1.
    pub column_normalize: bool,
    /// Number of restarts: the steps are cut into this number of parts, each with the same strategy.
    pub restarts: Option<usize>,
}

impl StrategySpec {
    /// Returns the spec of `class` with default options.
    pub fn new(class: Class) -> Self {
        Self {
            class,
            bands: None,
            order: None,
            rule: CoefficientRule::Optimized,
            column_normalize: false,
            restarts: None,
        }
    }

    /// Returns the spec that names a given strategy: its class and size.
    ///
    /// # Errors
    /// When the strategy is too large.
    ///
    /// ```
    /// use antinoise_mechanism::design::StrategySpec;
    /// let spec: StrategySpec = "banded-toeplitz:2+x3".parse()?;
    /// let strategy = spec.design(&antinoise_mechanism::Problem::prefix(12))?.value;
    /// assert_eq!(StrategySpec::of(&strategy)?, spec);
    /// # Ok::<(), antinoise_mechanism::Error>(())
    /// ```
    pub fn of(strategy: &AnyStrategy) -> Result<Self> {
        let size = || Ok::<_, crate::Error>(strategy.recursion()?.state_vectors());
        let spec = Self::new(strategy.class());
        Ok(match strategy {
            AnyStrategy::ColumnNormalized(scaled) => {
                Self { column_normalize: true, ..Self::of(scaled.inner())? }
            }
            AnyStrategy::Restarted(restarted) => {
                let restarts = strategy.steps().div_ceil(restarted.run().steps());
                Self { restarts: Some(restarts), ..Self::of(restarted.run())? }
            }
            AnyStrategy::BandedToeplitz(_) | AnyStrategy::Banded(_) | AnyStrategy::BandedInverse(_) => {
                Self { bands: Some(size()? + 1), ..spec }
            }
            AnyStrategy::Blt(_) | AnyStrategy::VaryingBlt(_) | AnyStrategy::Rational(_) => {
                Self { order: Some(size()?), ..spec }
            }
            _ => spec,
        })
    }

    /// Sets sizes that are given in addition to the text of the spec. A size that is given in both must be
    /// the same.
    ///
    /// ```
    /// use antinoise_mechanism::design::StrategySpec;
    /// let spec: StrategySpec = "blt+x3".parse()?;
    /// assert_eq!(spec.sized(None, Some(4), None)?.to_string(), "blt:4+x3");
    /// assert!(spec.sized(None, None, Some(2)).is_err());
    /// # Ok::<(), antinoise_mechanism::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the text of the spec has another number of bands, buffers or restarts than the argument.
    pub fn sized(self, bands: Option<usize>, order: Option<usize>, restarts: Option<usize>) -> Result<Self> {
        let pick = |size: &str, named: Option<usize>, given: Option<usize>| match (named, given) {
            (Some(named), Some(given)) if named != given => {
                let must_be = format!("left out, or {named} as the strategy's name says");
                Err(InvalidParameter::new(size, given, must_be))
            }
            _ => Ok(given.or(named)),
        };
        Ok(Self {
            bands: pick("bands", self.bands, bands)?,
            order: pick("order", self.order, order)?,
            restarts: pick("restarts", self.restarts, restarts)?,
            ..self
        })
    }

    /// Returns the workload for which the spec is designed. It is `workload`, except that prefix sums replace
    /// a workload that is not Toeplitz if the strategy is restarted, or if its class is Toeplitz and there
    /// are too many steps or the rule is a formula of the workload. The rule for BLTs is one of prefix sums.
    ///
    /// A strategy is valid for every workload; the one it was designed for only affects its loss.
    ///
    /// ```
    /// use antinoise_mechanism::{Workload, design::StrategySpec};
    /// let cooldown: Workload = "cooldown:5,0.1".parse()?;
    /// assert_eq!("blt".parse::<StrategySpec>()?.design_workload(&cooldown, 16_384), cooldown);
    /// assert_eq!("blt".parse::<StrategySpec>()?.design_workload(&cooldown, 1_000_000), Workload::Prefix);
    /// let last = Workload::last_iterate(0.9);
    /// assert_eq!("blt".parse::<StrategySpec>()?.design_workload(&last, 131_072), last);
    /// # Ok::<(), antinoise_mechanism::Error>(())
    /// ```
    pub fn design_workload(&self, workload: &Workload, steps: usize) -> Workload {
        if self.rule == CoefficientRule::RationalApproximation {
            return Workload::Prefix;
        }
        // The part of a learning-rate schedule between two restarts is not a schedule over fewer steps.
        let most = match workload {
            Workload::LastIterate { .. } => MAX_STEPS_OF_LAST_ITERATE,
            _ => MAX_STEPS_OF_SCHEDULES,
        };
        let too_long = steps > most && self.needs_toeplitz_workload();
        // The square root of a workload that is not Toeplitz has no Toeplitz form.
        let fixed = matches!(self.rule, CoefficientRule::SquareRoot | CoefficientRule::Damped { .. })
            && self.needs_toeplitz_workload();
        let given = workload.is_toeplitz() || !(too_long || fixed || self.restarts.is_some());
        if given { workload.clone() } else { Workload::Prefix }
    }

    /// Returns the objective that the design minimises: the RMS loss for batches of queries and the last
    /// iterate, whatever is requested, except by dense strategies.
    ///
    /// ```
    /// use antinoise_mechanism::design::{Objective, StrategySpec};
    /// let spec: StrategySpec = "blt:4".parse()?;
    /// assert_eq!(spec.design_objective(&"last-iterate".parse()?, Objective::Max), Objective::Rms);
    /// assert_eq!(spec.design_objective(&"momentum:0.9".parse()?, Objective::Max), Objective::Max);
    /// # Ok::<(), antinoise_mechanism::Error>(())
    /// ```
    pub fn design_objective(&self, workload: &Workload, objective: Objective) -> Objective {
        match workload {
            Workload::Queries { .. } | Workload::LastIterate { .. } if self.class != Class::Dense => {
                Objective::Rms
            }
            _ => objective,
        }
    }

    /// Returns whether C or C^-1 is Toeplitz in this class, so that designs are fast only for Toeplitz
    /// workloads.
    fn needs_toeplitz_workload(&self) -> bool {
        matches!(
            self.class,
            Class::Toeplitz | Class::BandedToeplitz | Class::Blt | Class::Rational | Class::BandedInverse
        )
    }

    pub(super) fn refuse_bands(&self) -> Result<()> {
        self.refuse("bands", self.bands)
    }

    pub(super) fn refuse_order(&self) -> Result<()> {
        self.refuse("order", self.order)
    }

    /// Refuses every rule except the default.
    pub(super) fn refuse_form(&self) -> Result<()> {
        let given = match self.rule {
            CoefficientRule::Optimized => None,
            CoefficientRule::SquareRoot => Some("square-root (or --fixed)".into()),
            form => Some(form.to_string()),
        };
        self.refuse("coefficient rule", given)
    }

    /// Refuses the rules for several separations, which need fewer bands than steps.
    pub(super) fn refuse_separations(&self) -> Result<()> {
        let separations =
            matches!(self.rule, CoefficientRule::Tapered { .. } | CoefficientRule::Averaged { .. });
        self.refuse("coefficient rule", separations.then_some(self.rule))
    }

    fn refuse<T: fmt::Display>(&self, option: &str, given: Option<T>) -> Result<()> {
        match given {
            None => Ok(()),
            Some(got) => {
                let must_be = format!("left out: strategy {} does not take it", self.class.name());
                Err(InvalidParameter::new(option, got, must_be).into())
            }
        }
    }
}

/// Suffixes of a spec's text: for columns of norm 1, and for restarts, followed by their number.
const NORMALIZED: &str = "column-normalized";
const RESTARTS: &str = "x";

/// Writes the class and its size, then suffixes for the rule, for columns of norm 1 and for restarts:
/// `banded-toeplitz:16`, `banded-toeplitz:400+tapered:200`, `blt:4+column-normalized`, `dense+x20`.
impl fmt::Display for StrategySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.class.name())?;
        if let Some(size) = self.bands.or(self.order) {
            write!(f, ":{size}")?;
        }
        if let Some(form) = self.rule.name() {
            write!(f, "+{form}")?;
        }
        if self.column_normalize {
            write!(f, "+{NORMALIZED}")?;
        }
        self.restarts.map_or(Ok(()), |restarts| write!(f, "+{RESTARTS}{restarts}"))
    }
}

impl FromStr for StrategySpec {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self> {
        parse(text).ok_or_else(|| {
            let names: Vec<&str> = Class::ALL.iter().map(|class| class.name()).collect();
            let must_be = format!(
                "one of {}, alone or with its size (banded-toeplitz:16, blt:4, rational:4), then +square-root, \
                 +harmonic, +damped:NU, +tapered:B or +averaged:B for Toeplitz coefficients, \
                 +rational-approximation for blt, +{NORMALIZED}, \
                 +{RESTARTS}S for S restarts",
                names.join(", ")
            );
            InvalidParameter::new("strategy", format!("{text:?}"), must_be).into()
        })
    }
}

fn parse(text: &str) -> Option<StrategySpec> {
    let mut parts = text.split('+');
    let head = parts.next()?;
    let (name, size) = head.split_once(':').map_or((head, None), |(name, size)| (name, Some(size)));
    let class = Class::ALL.iter().copied().find(|class| class.name() == name)?;
    let size = size.map(|size| size.parse().ok()).map_or(Some(None), |size: Option<usize>| size.map(Some))?;
    let mut spec = StrategySpec::new(class);
    match class {
        Class::Blt | Class::VaryingBlt | Class::Rational => spec.order = size,
        _ => spec.bands = size,
    }
    for part in parts {
        match (part, CoefficientRule::parse(part)) {
            (NORMALIZED, _) => spec.column_normalize = true,
            (_, Some(form)) if spec.rule == CoefficientRule::Optimized => spec.rule = form,
            _ if spec.restarts.is_none() => spec.restarts = Some(part.strip_prefix(RESTARTS)?.parse().ok()?),
            _ => return None,
        }
    }
    Some(spec)
}

#[cfg(test)]
mod tests {
    use antinoise_input::BadInput;

    use super::*;

    #[test]
    fn text_and_back() {
        for text in [
            "identity",
            "banded-toeplitz:16",
            "blt:4+column-normalized",
            "dense+x20",
            "blt+column-normalized+x3",
            "toeplitz+damped:0.01",
            "banded-toeplitz:16+harmonic+column-normalized",
            "banded-toeplitz:400+averaged:200",
            "banded:4+square-root",
            "blt:20+rational-approximation",
            "rational:4+column-normalized",
        ] {
            assert_eq!(text.parse::<StrategySpec>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "blt:",
            "blt:x",
            "blt:-1",
            "blt+",
            "blt+x",
            "blt+y3",
            "BLT",
            "blt 4",
            "blt+damped:",
            "blt+tapered:x",
            "blt+harmonic:1",
            "toeplitz+x2+x3",
            "toeplitz+harmonic+damped:0.1",
        ] {
            assert!(text.parse::<StrategySpec>().unwrap_err().is_bad_input(), "{text}");
        }
    }
}
