//! A run in its folder: ledger and checkpoints.

use std::path::Path;

use antinoise_input::InvalidParameter;
use antinoise_ledger::Ledger;
use antinoise_noise::{Key, RunId};
use antinoise_train::checkpoint::{Checkpoints, Committed, RunState};

use crate::Error;
use crate::cohort::by_name;
use crate::population::Population;
use crate::rounds::Federation;
use crate::setup::FederatedSetup;

/// The ledger's name in the folder.
const LEDGER: &str = "ledger.db";
/// The name under which the ledger stores the commitment to the key and to the run's identity, in addition to
/// plan and run.
const ORIGIN: &str = "origin";

impl<'a, P: Population> Federation<'a, P> {
    /// Starts a run called `run` from the parameters `start`, with noise and cohorts from `key`. Its ledger
    /// and its checkpoint of step 0 are in `folder` when this returns.
    ///
    /// # Errors
    /// If plan, users, model, rules and `start` do not fit each other; if `folder` holds a run, finished or
    /// not; if files cannot be written.
    pub fn begin(
        setup: FederatedSetup<'a, P>,
        folder: &Path,
        run: RunId,
        start: Vec<f32>,
        key: Key,
    ) -> Result<Self, Error> {
        setup.check(&start)?;
        let numbers = setup.numbers()?;
        let checkpoints = Checkpoints::open(folder, run.clone())?;
        let ledger = Ledger::open(&folder.join(LEDGER), setup.plan, run.as_str())?;
        let begun = ledger.users() > 0 || ledger.step() > 0 || ledger.bound(ORIGIN)?.is_some();
        if begun || checkpoints.committed()? != Committed::Empty {
            let (what, got) = (format!("folder {}", folder.display()), "that of a run that was begun");
            return Err(InvalidParameter::new(what, got, "empty, or resumed").into());
        }
        let run = RunState::begin(setup.identity(), setup.plan, setup.optimizer, run, start, key)?;
        let mut begun = Self { setup, run, ledger, checkpoints, numbers, by_name: by_name(setup.population) };
        // Saved before anyone is charged, so that the key survives a kill.
        begun.save()?;
        begun.ledger.bind(ORIGIN, begun.run.origin())?;
        Ok(begun)
    }

    /// Resumes the run in `folder` from its last checkpoint. Rounds that were charged or recorded since then
    /// are repeated with the cohorts in the ledger, with the same bits.
    ///
    /// # Errors
    /// If `folder` holds no unfinished run; if its files were not committed together, or belong to another
    /// plan, population, rule or version of this program; if the ledger is absent, of another run, or behind
    /// the checkpoint.
    pub fn resume(setup: FederatedSetup<'a, P>, folder: &Path, run: RunId) -> Result<Self, Error> {
        let numbers = setup.numbers()?;
        let checkpoints = Checkpoints::open(folder, run.clone())?;
        let state = RunState::resume(setup.identity(), setup.plan, setup.optimizer, &checkpoints)?;
        setup.check(&state.parameters)?;
        let path = folder.join(LEDGER);
        if !path.exists() {
            let must_be = "the ledger that belongs to the checkpoints next to it";
            return Err(InvalidParameter::new(format!("ledger {}", path.display()), "absent", must_be).into());
        }
        let mut ledger = Ledger::open(&path, setup.plan, run.as_str())?;
        ledger.bind(ORIGIN, state.origin())?;
        if ledger.step() < state.noise.step() {
            let must_be =
                format!("at least {}, the checkpoint's: put back the ledger of this run", state.noise.step());
            return Err(InvalidParameter::new("steps of the ledger", ledger.step(), must_be).into());
        }
        Ok(Self { setup, run: state, ledger, checkpoints, numbers, by_name: by_name(setup.population) })
    }

    /// Commits a checkpoint or, after the last round, the results without the key.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn save(&self) -> Result<(), Error> {
        Ok(self.run.save(&self.checkpoints)?)
    }
}
