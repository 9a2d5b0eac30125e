//! The plan itself.

use std::path::Path;

use antinoise_accounting::{BlockCyclicPoisson, Bracket, Composition, Gdp, banded_to_sampled};
use antinoise_input::{InvalidParameter, at_least, between, non_negative, positive};
use antinoise_mechanism::optimize::Objective;
use antinoise_mechanism::sensitivity::Sensitivity;
use antinoise_mechanism::{Adjacency, Participation, PrivacyUnit, Strategy, Workload};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::release::SUM_ALLOWANCE;
use crate::{Error, Release, ReleaseKind, Request, Result, Sampler, Schedule, write_atomically};

/// The version of the file format.
const VERSION: u32 = 2;
/// Relative difference that rounding may cause between a stated figure and the same figure recomputed on
/// another machine.
const ROUNDING: f64 = 1e-9;

/// How epsilon was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accountant {
    /// 1/sigma-GDP, exact: no amplification is claimed.
    Gdp,
    /// Privacy loss distributions of the DP-SGD run that banded noise under block-cyclic Poisson sampling is at
    /// least as private as: amplified.
    SampledGaussian,
}

/// The privacy claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Privacy {
    /// Never below the truth.
    pub epsilon: f64,
    /// No epsilon below it follows by this accountant at this noise multiplier.
    pub epsilon_lower: f64,
    /// Failure probability.
    pub delta: f64,
    /// Whose data are protected.
    pub unit: PrivacyUnit,
    /// Which datasets are compared.
    pub adjacency: Adjacency,
    /// How epsilon was computed.
    pub accountant: Accountant,
}

/// Everything that a reader needs to believe the claim and a trainer needs to run it.
///
/// ```
/// use antinoise_plan::{Length, Plan, Request, Setting, choose};
/// let plan = choose(&Request::new(1000, 50, Length::Epochs(2), Setting::Cyclic))?.plan;
/// assert_eq!(Plan::from_toml(&plan.to_toml())?, plan);
/// assert!(plan.noise_std() >= plan.noise_multiplier * plan.sensitivity.value * plan.clip_norm);
/// # Ok::<(), antinoise_plan::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    version: u32,
    /// N.
    pub examples: usize,
    /// B, as it was asked for.
    pub batch_size: usize,
    /// n.
    pub steps: usize,
    /// Most l2 norm of one example's gradient.
    pub clip_norm: f64,
    /// sigma: noise standard deviation over `sensitivity`, for clip norm 1.
    pub noise_multiplier: f64,
    /// The loss that the strategy was chosen for.
    pub objective: Objective,
    /// The claim.
    pub privacy: Privacy,
    /// How noisy sums are released.
    pub release: Release,
    /// How batches are formed.
    pub sampler: Sampler,
    /// Pi: what the sampler keeps and the sensitivity is for. Where sampling amplifies it is single: the accountant
    /// composes a unit's participations, of which each is released by itself.
    pub participation: Participation,
    /// A: what the strategy was chosen for.
    pub workload: Workload,
    /// sens(C, Pi) under the adjacency, with its proof; the largest column norm where sampling amplifies.
    pub sensitivity: Sensitivity,
    /// C.
    pub strategy: Strategy,
}

impl Plan {
    /// The plan that runs `strategy` on `schedule` with noise multiplier `noise_multiplier`.
    pub(crate) fn new(
        request: &Request,
        schedule: &Schedule,
        strategy: Strategy,
        noise_multiplier: f64,
    ) -> Result<Self> {
        let mechanism = strategy.mechanism();
        let sensitivity = mechanism.sensitivity(&schedule.participation)?.under(request.adjacency);
        let release = match request.release {
            ReleaseKind::Grid => {
                let std_per_clip_norm = noise_multiplier * sensitivity.value;
                let recursion = mechanism.recursion()?;
                Release::on_grid(
                    request.clip_norm,
                    request.dim,
                    std_per_clip_norm,
                    &recursion,
                    schedule.steps,
                )?
            }
            ReleaseKind::PlainFloatingPoint => Release::PlainFloatingPoint,
        };
        let mut plan = Self {
            version: VERSION,
            examples: request.examples,
            batch_size: request.batch_size,
            steps: schedule.steps,
            clip_norm: request.clip_norm,
            noise_multiplier,
            objective: request.objective,
            privacy: Privacy {
                epsilon: f64::MAX,
                epsilon_lower: 0.0,
                delta: request.delta,
                unit: request.unit,
                adjacency: request.adjacency,
                accountant: schedule.accountant(),
            },
            release,
            sampler: schedule.sampler,
            participation: schedule.participation.clone(),
            workload: request.workload.clone(),
            sensitivity,
            strategy,
        };
        let Bracket { lower, upper } = plan.account()?;
        (plan.privacy.epsilon, plan.privacy.epsilon_lower) = (upper, lower);
        plan.verify()?;
        Ok(plan)
    }

    /// epsilon at the plan's delta, by its accountant.
    fn account(&self) -> Result<Bracket> {
        let delta = self.privacy.delta;
        match self.privacy.accountant {
            Accountant::Gdp => {
                let gdp = Gdp::from_noise_multiplier(self.noise_multiplier)?;
                Ok(Bracket { lower: gdp.epsilon_lower(delta)?, upper: gdp.epsilon_upper(delta)? })
            }
            Accountant::SampledGaussian => {
                let run = banded_to_sampled(&self.sampling()?, self.noise_multiplier)?;
                Ok(Composition::new([run])?.epsilon(delta)?)
            }
        }
    }

    /// The sampling that amplifies, its hypotheses checked on the numbers.
    pub(crate) fn sampling(&self) -> Result<BlockCyclicPoisson> {
        let Sampler::Poisson { groups } = self.sampler else {
            return Err(unsound("accountant", "sampled-gaussian", format!("sampler {:?}", self.sampler)));
        };
        if self.privacy.adjacency != Adjacency::ZeroOut {
            return Err(unsound(
                "adjacency",
                self.privacy.adjacency,
                "zero-out, under which sampling amplifies",
            ));
        }
        between("groups", groups, 1, self.steps, "steps")?;
        let bands = self.strategy.mechanism().encoder()?.bandwidth();
        if bands > groups {
            return Err(unsound("sampler's groups", groups, format!("{bands} bands, which need as many")));
        }
        Ok(BlockCyclicPoisson {
            bands: groups,
            steps: self.steps,
            batch_size: self.batch_size as f64,
            examples: self.examples,
        })
    }

    /// nu = sigma sens(C, Pi) w, rounded up, where w is [`Plan::widened_clip_norm`] and the sensitivity is enlarged by
    /// what rounding the coefficients of C may add: the standard deviation of seed noise. It goes on the *sum* of
    /// clipped gradients.
    pub fn noise_std(&self) -> f64 {
        let sensitivity = (self.sensitivity.value * self.release.coefficients_margin()).next_up();
        ((self.noise_multiplier * sensitivity).next_up() * self.widened_clip_norm()).next_up()
    }

    /// w: the most that one unit can move a step's released sum by, in l2 norm: clip_norm (1 + [`SUM_ALLOWANCE`]), and
    /// spacing sqrt(dim) more on a grid; rounded up.
    ///
    /// NaN where the release's numbers are out of range, which no verified plan's are.
    ///
    /// [`SUM_ALLOWANCE`]: crate::SUM_ALLOWANCE
    pub fn widened_clip_norm(&self) -> f64 {
        self.release.widened(self.clip_norm).unwrap_or(f64::NAN)
    }

    /// The most that floating point may add to a unit's effect on a clipped sum, in l2 norm: whoever computes sums
    /// must stay below it.
    pub fn sum_allowance(&self) -> f64 {
        self.clip_norm * SUM_ALLOWANCE
    }

    /// What the noisy sum is divided by.
    pub fn expected_batch_size(&self) -> f64 {
        self.sampler.expected_batch_size(self.examples, self.batch_size)
    }

    /// Recomputes the claim from the numbers.
    ///
    /// # Errors
    /// When a number is out of range, the sampler does not keep the schema, the sensitivity is understated or
    /// epsilon is below what the noise gives.
    pub fn verify(&self) -> Result<()> {
        self.check_numbers()?;
        self.check_sampler()?;
        let mechanism = self.strategy.mechanism();
        mechanism.check()?;
        if mechanism.steps() != self.steps {
            return Err(unsound("strategy's steps", mechanism.steps(), self.steps));
        }
        self.release.check(self.noise_std(), &mechanism.recursion()?, self.steps)?;
        let found = mechanism.sensitivity(&self.participation)?.under(self.privacy.adjacency);
        let stated = &self.sensitivity;
        let same_proof = stated.kind == found.kind && stated.source == found.source;
        if stated.value < found.value * (1.0 - ROUNDING) || !same_proof {
            let text = |s: &Sensitivity| format!("{} ({:?}: {})", s.value, s.kind, s.source);
            return Err(unsound("sensitivity", text(stated), text(&found)));
        }
        let Bracket { lower, upper } = self.account()?;
        if self.privacy.epsilon < upper * (1.0 - ROUNDING) {
            return Err(unsound("epsilon", self.privacy.epsilon, upper));
        }
        if self.privacy.epsilon_lower > lower * (1.0 + ROUNDING) {
            return Err(unsound("epsilon_lower", self.privacy.epsilon_lower, lower));
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<()> {
        check_version(self.version)?;
        at_least("examples", self.examples, 1)?;
        between("batch_size", self.batch_size, 1, self.examples, "examples")?;
        positive("clip_norm", self.clip_norm)?;
        positive("noise_multiplier", self.noise_multiplier)?;
        // No comparison refuses what is no number.
        positive("sensitivity", self.sensitivity.value)?;
        positive("epsilon", self.privacy.epsilon)?;
        non_negative("epsilon_lower", self.privacy.epsilon_lower)?;
        self.workload.check()?;
        self.participation.check(self.steps)?;
        Ok(())
    }

    /// The sampler must keep the schema that the sensitivity is for.
    fn check_sampler(&self) -> Result<()> {
        let keeps = match self.sampler {
            Sampler::Cyclic { groups } => {
                between("groups", groups, 1, self.examples, "examples")?;
                self.participation_holds_cyclic(groups)
            }
            Sampler::Poisson { groups } => match self.privacy.accountant {
                Accountant::Gdp => groups == 1 && self.participation == Participation::FullBatch,
                Accountant::SampledGaussian => self.participation == Participation::Single,
            },
            Sampler::External => true,
        };
        if keeps {
            return Ok(());
        }
        Err(unsound("participation", &self.participation, format!("sampler {:?}", self.sampler)))
    }

    /// True when the schema has every pattern of a unit whose turn comes every `groups` steps.
    fn participation_holds_cyclic(&self, groups: usize) -> bool {
        let turns = self.steps.div_ceil(groups);
        match self.participation {
            Participation::Single => turns <= 1,
            Participation::FullBatch => true,
            Participation::Cyclic { min_sep, max_participations } => {
                groups == min_sep && turns <= max_participations
            }
            Participation::MinSep { min_sep, max_participations } => {
                groups >= min_sep && turns <= max_participations
            }
            // Listed patterns may leave out some phase.
            Participation::Patterns { .. } => false,
        }
    }

    /// The plan as TOML, every number to its last digit.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a plan has only strings, numbers, lists and tables")
    }

    /// The plan in `text`, verified.
    ///
    /// # Errors
    /// When it is not a plan, or its claim does not follow from its numbers.
    pub fn from_toml(text: &str) -> Result<Self> {
        /// What is read first: another version has other fields.
        #[derive(Deserialize)]
        struct Header {
            version: u32,
        }
        if let Ok(Header { version }) = toml::from_str(text) {
            check_version(version)?;
        }
        let plan: Self = toml::from_str(text).map_err(|error| {
            InvalidParameter::new("plan", "text that cannot be read", format!("a plan in TOML: {error}"))
        })?;
        plan.verify()?;
        Ok(plan)
    }

    /// Writes the plan to `path`, whole or not at all.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        write_atomically(path, self.to_toml().as_bytes())
    }

    /// Reads and verifies the plan at `path`.
    ///
    /// # Errors
    /// As [`Plan::from_toml`], and when the file cannot be read.
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
        Self::from_toml(&text).map_err(|error| match error {
            Error::Invalid(error) => Error::Format { path: path.to_path_buf(), reason: error.to_string() },
            other => other,
        })
    }

    /// SHA-256 of the TOML: what a checkpoint holds to know its plan again.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.to_toml().as_bytes()).into()
    }
}

fn check_version(version: u32) -> Result<()> {
    let must_be = match version {
        VERSION => return Ok(()),
        1 => format!(
            "{VERSION}: a plan of version 1 does not say how noisy sums are released, and its noise covers no \
             rounding; make it anew by `antinoise plan` with the same options and --out"
        ),
        _ => format!("{VERSION}, the version that this program reads"),
    };
    Err(InvalidParameter::new("version", version, must_be).into())
}

fn unsound(what: &'static str, stated: impl ToString, found: impl ToString) -> Error {
    Error::Unsound { what, stated: stated.to_string(), found: found.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Length, Setting, choose};

    fn plan() -> Plan {
        let mut request = Request::new(600, 50, Length::Epochs(3), Setting::Cyclic);
        (request.epsilon, request.delta) = (4.0, 1e-5);
        choose(&request).unwrap().plan
    }

    #[test]
    fn the_claim_meets_the_request_and_is_tight() {
        let plan = plan();
        assert!(plan.privacy.epsilon <= 4.0 && plan.privacy.epsilon > 4.0 * (1.0 - 1e-6));
        assert!(plan.privacy.epsilon_lower <= plan.privacy.epsilon);
    }

    /// Each alteration makes the claim untrue; none may be read.
    #[test]
    fn a_plan_that_claims_too_much_is_refused() {
        type Alteration = fn(&mut Plan);
        let alterations: [(&str, Alteration); 14] = [
            ("less noise", |p| p.noise_multiplier *= 0.9),
            ("smaller sensitivity", |p| p.sensitivity.value *= 0.99),
            ("smaller epsilon", |p| p.privacy.epsilon *= 0.99),
            ("sampler that repeats sooner", |p| p.sampler = Sampler::Cyclic { groups: 6 }),
            ("sampler without a separation", |p| p.sampler = Sampler::Poisson { groups: 1 }),
            ("amplification without sampling", |p| p.privacy.accountant = Accountant::SampledGaussian),
            ("larger lower end", |p| p.privacy.epsilon_lower *= 1.01),
            ("no number for epsilon", |p| p.privacy.epsilon = f64::NAN),
            ("no number for its lower end", |p| p.privacy.epsilon_lower = f64::NAN),
            ("no number for the sensitivity", |p| p.sensitivity.value = f64::NAN),
            ("another proof", |p| p.sensitivity.source = "because".into()),
            ("patterns that leave out the first phases", |p| {
                p.participation = Participation::Patterns { patterns: vec![vec![11, 23, 35]] };
                let mechanism = p.strategy.mechanism();
                p.sensitivity = mechanism.sensitivity(&p.participation).unwrap();
            }),
            ("fewer participations", |p| {
                p.participation = Participation::Cyclic { min_sep: 12, max_participations: 2 }
            }),
            ("more steps", |p| p.steps += 1),
        ];
        for (name, alter) in alterations {
            let mut altered = plan();
            alter(&mut altered);
            let error = Plan::from_toml(&altered.to_toml()).expect_err(name);
            assert!(error.is_bad_input(), "{name}: {error}");
        }
    }

    fn amplified() -> Plan {
        let mut request = Request::new(600, 50, Length::Epochs(3), Setting::Poisson);
        (request.epsilon, request.delta) = (2.0, 1e-5);
        request.recipes = Some(vec!["banded-toeplitz:4".parse().unwrap()]);
        choose(&request).unwrap().plan
    }

    #[test]
    fn an_amplified_claim_meets_the_request_and_is_tight() {
        let plan = amplified();
        assert_eq!(
            (plan.sampler, plan.privacy.accountant),
            (Sampler::Poisson { groups: 4 }, Accountant::SampledGaussian)
        );
        assert!(plan.privacy.epsilon <= 2.0 && plan.privacy.epsilon_lower > 2.0 * (1.0 - 2e-3));
        assert_eq!(Plan::from_toml(&plan.to_toml()).unwrap(), plan);
    }

    /// Each alteration breaks a hypothesis of the amplification or the figure itself.
    #[test]
    fn an_amplified_plan_that_claims_too_much_is_refused() {
        type Alteration = fn(&mut Plan);
        let alterations: [(&str, Alteration); 8] = [
            ("less noise", |p| p.noise_multiplier *= 0.99),
            ("fewer groups than bands", |p| p.sampler = Sampler::Poisson { groups: 3 }),
            ("groups smaller than a batch", |p| p.sampler = Sampler::Poisson { groups: 13 }),
            ("more steps", |p| p.steps += 1),
            ("larger batches", |p| p.batch_size += 5),
            ("fewer examples", |p| p.examples -= 50),
            ("smaller sensitivity", |p| p.sensitivity.value *= 0.99),
            ("another adjacency", |p| p.privacy.adjacency = Adjacency::ReplaceOne),
        ];
        for (name, alter) in alterations {
            let mut altered = amplified();
            alter(&mut altered);
            let error = Plan::from_toml(&altered.to_toml()).expect_err(name);
            assert!(error.is_bad_input(), "{name}: {error}");
        }
    }

    #[test]
    fn a_file_that_is_no_plan_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.toml");
        assert!(Plan::load(&path).unwrap_err().to_string().contains("plan.toml"));
        let whole = plan().to_toml();
        for text in [
            "",
            "version = 1",
            &whole[..whole.len() / 2],
            &format!("extra = 1\n{whole}"),
            &format!("{whole}\nextra = 1\n"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Plan::load(&path).unwrap_err();
            assert!(error.is_bad_input() && error.to_string().contains("plan.toml"), "{error}");
        }
        plan().save(&path).unwrap();
        assert_eq!(Plan::load(&path).unwrap(), plan());
    }
}
