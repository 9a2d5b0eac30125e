//! The plans of a study.

use antinoise_mechanism::design::{Objective, StrategySpec};
use antinoise_plan::{Accountant, Candidate, Choice, Plan, Request, choose};

use crate::error::Result;
use crate::named::{Baseline, NamedPlan};
use crate::settings::Settings;

/// The plans to run, and the index of the one whose model is given away, that of least loss.
///
/// The plans are: the plan of a file; or those of the named mechanisms; or that of the mechanism of least
/// loss and, in a comparison, also DP-SGD and independent noise in the requested setting. `units` is the
/// number of training examples, or of users if these are protected.
pub fn plans(settings: &Settings, units: usize, dim: usize) -> Result<(Vec<NamedPlan>, usize)> {
    if let Some(path) = &settings.plan {
        let plan = Plan::load(path)?;
        let mechanism = plan.strategy.class().name().into();
        return Ok((vec![NamedPlan { mechanism, baseline: None, plan }], 0));
    }
    let requests = settings.requests(units, dim)?;
    let choices = requests
        .iter()
        .map(|request| Ok(Tried { request, choice: choose(request)? }))
        .collect::<Result<Vec<_>>>()?;
    if let Some(specs) = &requests[0].specs {
        let at = |of: &Tried, spec: &StrategySpec| of.choice.candidates.iter().position(|c| c.spec == *spec);
        let best: Vec<_> = specs
            .iter()
            .map(|spec| {
                let tried = choices.iter().filter_map(|of| Some((of, at(of, spec)?)));
                least(tried, settings.objective)
            })
            .collect();
        let loss = |(of, i): (&Tried, usize)| of.choice.candidates[i].objective(settings.objective);
        let chosen = (0..best.len()).min_by(|&i, &j| loss(best[i]).total_cmp(&loss(best[j])));
        let plans = best.into_iter().map(|(of, i)| of.candidate(i)).collect::<Result<_>>()?;
        return Ok((plans, chosen.expect("a mechanism is named")));
    }
    let (of, chosen) = least(choices.iter().map(|of| (of, of.choice.chosen)), settings.objective);
    let chosen = of.candidate(chosen)?;
    let mut found: Vec<NamedPlan> = Vec::new();
    if settings.compares() {
        found.extend(choices.iter().find_map(Tried::dp_sgd).transpose()?);
        if found.is_empty() || settings.settings.len() == 1 {
            // Under Poisson batches it is DP-SGD itself.
            found.extend(choices[0].independent()?);
        }
    }
    let index = found.iter().position(|named| named.plan == chosen.plan);
    let index = index.unwrap_or_else(|| {
        found.push(chosen);
        found.len() - 1
    });
    Ok((found, index))
}

/// The candidate of smallest loss, with its setting.
fn least<'a, 'b>(
    tried: impl Iterator<Item = (&'a Tried<'b>, usize)>,
    objective: Objective,
) -> (&'a Tried<'b>, usize)
where
    'b: 'a,
{
    let loss = |&(of, i): &(&Tried, usize)| of.choice.candidates[i].objective(objective);
    tried.min_by(|x, y| loss(x).total_cmp(&loss(y))).expect("there is a setting")
}

/// One setting, with the request and the choice for it.
struct Tried<'a> {
    request: &'a Request,
    choice: Choice,
}

impl Tried<'_> {
    /// A candidate's plan, named by its spec and by sampling, if that amplifies.
    fn candidate(&self, i: usize) -> Result<NamedPlan> {
        let candidate = &self.choice.candidates[i];
        let mechanism = match (i, candidate.schedule.accountant()) {
            (0, _) if candidate.is_amplified() => DP_SGD.into(),
            (_, Accountant::Gdp) => candidate.spec.to_string(),
            (_, Accountant::SampledGaussian) => format!("{}+poisson", candidate.spec),
            (_, Accountant::BallsInBins) => format!("{}+bins", candidate.spec),
            (_, other) => format!("{}+{}", candidate.spec, other.name()),
        };
        let baseline = (i == 0).then_some(match candidate.is_amplified() {
            true => Baseline::IndependentAmplified,
            false => Baseline::Independent,
        });
        Ok(NamedPlan { mechanism, baseline, plan: self.choice.plan_of(self.request, i)? })
    }

    /// Independent noise in this setting, unless sampling amplifies it.
    fn independent(&self) -> Result<Option<NamedPlan>> {
        if self.choice.candidates[0].is_amplified() { Ok(None) } else { self.candidate(0).map(Some) }
    }

    /// Independent noise with amplification by sampling: of this setting, or as a reference to it.
    fn dp_sgd(&self) -> Option<Result<NamedPlan>> {
        if self.choice.candidates[0].is_amplified() {
            return Some(self.candidate(0));
        }
        let i = self.choice.baselines.iter().position(Candidate::is_amplified)?;
        let plan = self.choice.plan_of_baseline(self.request, i);
        let (mechanism, baseline) = (DP_SGD.into(), Some(Baseline::IndependentAmplified));
        Some(plan.map(|plan| NamedPlan { mechanism, baseline, plan }).map_err(Into::into))
    }
}

/// Name of independent noise with amplification by sampling.
const DP_SGD: &str = "dp-sgd";
