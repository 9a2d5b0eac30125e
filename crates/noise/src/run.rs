//! What a stream is a function of beside its key: its run, and every number of its description.

use std::fmt;

use antinoise_input::InvalidParameter;
use antinoise_mechanism::Recursion;

use crate::Key;
use crate::derive::{BYTES, Description};
use crate::stream::Plan;

/// The name of a run: under one key, two runs never share a bit, be it of noise or of samples.
///
/// ```
/// use antinoise_noise::RunId;
/// assert_eq!(RunId::default(), RunId::new("0")?);
/// assert_eq!(RunId::from(17).to_string(), "17");
/// assert!(RunId::new("").is_err());
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunId(String);

impl RunId {
    /// The run of this name, compared byte by byte.
    ///
    /// # Errors
    /// For a name that is empty, longer than 256 bytes, or has characters that cannot be seen.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidParameter> {
        let name = name.into();
        if (1..=256).contains(&name.len()) && !name.chars().any(char::is_control) {
            Ok(Self(name))
        } else {
            Err(InvalidParameter::new(
                "run",
                format!("{name:?}"),
                "a name of 1 to 256 bytes that can be seen",
            ))
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for RunId {
    fn default() -> Self {
        Self::from(0)
    }
}

impl From<u64> for RunId {
    fn from(number: u64) -> Self {
        Self(number.to_string())
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for RunId {
    type Err = InvalidParameter;

    fn from_str(name: &str) -> Result<Self, InvalidParameter> {
        Self::new(name)
    }
}

/// The key of one run: what its streams' keys and its samplers' are derived from, and what checkpoints hold.
pub(crate) struct RunKey(Key);

impl RunKey {
    pub(crate) fn new(key: &Key, run: &RunId) -> Self {
        Self(key.derive("run", &[run.0.as_bytes()]))
    }

    /// The run's key itself, as a checkpoint kept it.
    pub(crate) fn restored(key: Key) -> Self {
        Self(key)
    }

    pub(crate) fn bytes(&self) -> &[u8; BYTES] {
        self.0.bytes()
    }

    /// The key of the noise that `description` describes.
    pub(crate) fn of_noise(&self, description: &[u8; BYTES]) -> Key {
        self.0.derive("noise", &[description])
    }

    /// The key of the random numbers for one purpose.
    pub(crate) fn of_purpose(&self, name: &str) -> Key {
        self.0.derive("purpose", &[name.as_bytes()])
    }

    /// What ties a state to this key, a description, the caller's context and a step, and tells nothing of the key.
    pub(crate) fn commitment(
        &self,
        description: &[u8; BYTES],
        context: &[u8; BYTES],
        step: usize,
    ) -> [u8; BYTES] {
        *self.0.derive("commitment", &[description, context, &(step as u64).to_le_bytes()]).bytes()
    }
}

/// A digest of all that noise is a function of beside key and run: not of shard, threads or memory.
pub(crate) fn describe(plan: &Plan) -> [u8; BYTES] {
    let Plan { recursion, steps, dim, noise_std, shard: _, cipher, grid } = plan;
    let mut description = Description::new("antinoise stream 1");
    describe_recursion(recursion, &mut description);
    description.count(*steps);
    description.count(*dim);
    description.number(*noise_std);
    // No grid has spacing 0.
    description.number(grid.map_or(0.0, |grid| grid.spacing()));
    description.text(cipher.name());
    description.digest()
}

fn describe_recursion(recursion: &Recursion, description: &mut Description) {
    match recursion {
        Recursion::Independent => description.text("independent"),
        Recursion::MovingAverage { taps } => {
            description.text("moving-average");
            description.numbers(taps);
        }
        Recursion::AutoRegressive { taps } => {
            description.text("auto-regressive");
            description.numbers(taps);
        }
        Recursion::Blt { scale, decay } => {
            description.text("blt");
            description.numbers(scale);
            description.numbers(decay);
        }
        Recursion::Banded { bands, rows } => {
            description.text("banded");
            description.count(*bands);
            description.numbers(rows);
        }
        Recursion::Combination { rows } => {
            description.text("combination");
            description.count(rows.len());
            for row in rows {
                description.count(row.len());
                for &(seed, weight) in row {
                    description.count(seed);
                    description.number(weight);
                }
            }
        }
        Recursion::Scaled { inner, factors } => {
            description.text("scaled");
            description.numbers(factors);
            describe_recursion(inner, description);
        }
        Recursion::Restarted { inner, period } => {
            description.text("restarted");
            description.count(*period);
            describe_recursion(inner, description);
        }
    }
}
