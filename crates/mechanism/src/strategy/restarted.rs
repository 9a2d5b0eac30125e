//! One strategy run again and again (stamped): C = I_s (x) C_run, the last run cut short where the steps end.
//! Noise: as the run's, its past forgotten at the start of each run.

use antinoise_input::at_least;
use serde::{Deserialize, Serialize};

use super::{AnyStrategy, Strategy, can_write_out};
use crate::{Encoder, Participation, Recursion, Result};

/// `run`, started anew every `run.steps()` steps until `steps` are made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restarted {
    steps: usize,
    run: Box<AnyStrategy>,
}

impl Restarted {
    /// Runs `run` again and again for `steps` steps in all.
    ///
    /// # Errors
    /// When `run` is not valid, longer than `steps`, or `steps` are too many to write out.
    pub fn new(steps: usize, run: AnyStrategy) -> Result<Self> {
        let strategy = Self { steps, run: Box::new(run) };
        strategy.check()?;
        Ok(strategy)
    }

    /// The strategy of one run.
    pub fn run(&self) -> &AnyStrategy {
        &self.run
    }
}

/// The schema that one run of `period` steps sees of a schema over the whole: as many participations as fit.
pub(super) fn participation_of_run(whole: &Participation, period: usize) -> Participation {
    let fitting = |b: usize, k: usize| k.min((period - 1) / b + 1);
    match whole {
        Participation::Single => Participation::Single,
        Participation::FullBatch => Participation::FullBatch,
        Participation::Patterns { patterns } => {
            let of_runs = |pattern: &Vec<usize>| -> Vec<Vec<usize>> {
                let runs = pattern.chunk_by(|t, tau| t / period == tau / period);
                runs.map(|run| run.iter().map(|t| t % period).collect()).collect()
            };
            let mut patterns: Vec<Vec<usize>> = patterns.iter().flat_map(of_runs).collect();
            patterns.sort_unstable();
            patterns.dedup();
            Participation::Patterns { patterns }
        }
        Participation::Cyclic { min_sep, .. } | Participation::MinSep { min_sep, .. }
            if *min_sep >= period =>
        {
            Participation::Single
        }
        Participation::Cyclic { min_sep, max_participations } => {
            let max_participations = fitting(*min_sep, *max_participations);
            Participation::Cyclic { min_sep: *min_sep, max_participations }
        }
        Participation::MinSep { min_sep, max_participations } => {
            let max_participations = fitting(*min_sep, *max_participations);
            Participation::MinSep { min_sep: *min_sep, max_participations }
        }
    }
}

impl Strategy for Restarted {
    fn steps(&self) -> usize {
        self.steps
    }

    fn check(&self) -> Result<()> {
        can_write_out(self.steps)?;
        self.run.check()?;
        at_least("steps", self.steps, self.run.steps())?;
        Ok(())
    }

    fn encoder(&self) -> Result<Encoder> {
        Ok(Encoder::Stamped {
            block: Box::new(self.run.encoder()?),
            period: self.run.steps(),
            steps: self.steps,
        })
    }

    fn recursion(&self) -> Result<Recursion> {
        let inner = Box::new(self.run.recursion()?);
        Ok(Recursion::Restarted { inner, period: self.run.steps() })
    }
}
