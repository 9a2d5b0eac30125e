//! The options of a stream.

use std::ops::Range;

use antinoise_noise::{NoiseStream, RunId, Shard, StreamBuilder};

use crate::errors::Result;
use crate::key::run_named;
use crate::plan::Plan;

/// Options that change the speed and no bit of the output.
pub struct Speed {
    pub threads: Option<usize>,
    /// Memory limit in bytes.
    pub memory: Option<u64>,
    /// Look-ahead in steps.
    pub look_ahead: Option<usize>,
    pub state_in_memory: bool,
}

/// A stream to build, and its options.
pub struct Wanted {
    pub builder: StreamBuilder,
    pub coordinates: Vec<Range<u64>>,
    pub run: RunId,
    pub own_threads: bool,
}

impl Wanted {
    /// The noise of a plan for a vector of `dim` coordinates, or for the coordinates in `shard` alone.
    pub fn new(
        plan: &Plan,
        dim: usize,
        run: Option<&str>,
        shard: Option<Vec<(u64, u64)>>,
        speed: Speed,
    ) -> Result<Self> {
        let (verified, run) = (plan.verified(), run_named(run)?);
        verified.check_draws_no_users()?;
        verified.check_dim(dim)?;
        let ranges = shard.unwrap_or_else(|| vec![(0, dim as u64)]);
        let coordinates: Vec<Range<u64>> = ranges.into_iter().map(|(start, stop)| start..stop).collect();
        let shard = coordinates.iter().cloned().fold(Shard::default(), Shard::and_range);
        let recursion = verified.strategy.recursion()?;
        let mut builder = NoiseStream::builder(recursion, verified.steps, dim, verified.noise_std())
            .shard(shard)
            .run(run.clone())
            .context(plan.digest_bytes());
        if let Some(threads) = speed.threads {
            builder = builder.threads(threads);
        }
        if let Some(memory) = speed.memory {
            builder = builder.memory_budget(memory);
        }
        if let Some(look_ahead) = speed.look_ahead {
            builder = builder.look_ahead(look_ahead);
        }
        if speed.state_in_memory {
            builder = builder.state_in_memory();
        }
        Ok(Self { builder, coordinates, run, own_threads: speed.threads.is_some() })
    }
}
