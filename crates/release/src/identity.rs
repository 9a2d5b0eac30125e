//! The identity of a release, to which its noise is bound: its settings, its plans and its number.

use antinoise_input::hex;
use antinoise_mechanism::Grid;
use antinoise_noise::{NoiseStream, StreamBuilder};
use sha2::{Digest, Sha256};

use crate::design::chain::Chain;
use crate::store::database::State;
use crate::store::folder::Folder;
use crate::{Result, Settings};

pub(crate) const SETTINGS: &str = "settings";
pub(crate) const NUMBER: &str = "number";
const PLAN: &str = "plan";

/// The name under which a segment's plan is stored.
pub(crate) fn plan_of(segment: usize) -> String {
    if segment == 0 { PLAN.into() } else { format!("{PLAN} {segment}") }
}

pub(crate) fn plans(state: &State, settings: &Settings) -> Result<Vec<String>> {
    let count = settings.segments.map_or(1, |segments| segments.distinct());
    (0..count).map(|segment| state.fact(&plan_of(segment))).collect()
}

/// The noise of the next publication's segment or, if that was not started, of the previous segment; and the
/// index of the segment.
pub(crate) fn resumed(
    folder: &Folder,
    state: &State,
    chain: &Chain,
    published: usize,
) -> Result<(NoiseStream, usize)> {
    let (place, identity) = (chain.place(published), Identity::of(state)?);
    let resume = |segment: usize| {
        let (builder, grid) = described(chain, segment, &identity)?;
        folder.resume_noise(builder, grid)
    };
    match resume(place.segment) {
        Ok(noise) => Ok((noise, place.segment)),
        Err(error) if place.step > 0 || place.segment == 0 => Err(error),
        Err(error) => Ok((resume(place.segment - 1).map_err(|_| error)?, place.segment - 1)),
    }
}

/// The identity of a release.
pub(crate) struct Identity {
    pub(crate) settings: String,
    /// A random number, in hexadecimal digits.
    pub(crate) number: String,
}

impl Identity {
    pub(crate) fn of(state: &State) -> Result<Self> {
        Ok(Self { settings: state.fact(SETTINGS)?, number: state.fact(NUMBER)? })
    }
}

/// The noise of a segment, bound to its whole context: the secret of another release, of other settings or of
/// another segment is refused.
pub(crate) fn described(chain: &Chain, segment: usize, identity: &Identity) -> Result<(StreamBuilder, Grid)> {
    let design = chain.design(segment)?;
    let digest = |text: &str| hex(&Sha256::digest(text.as_bytes()));
    // For correlated buckets, their matrices too: points frozen with one matrix must not be read with
    // another.
    let codes = Some(design.layout.codes(design.spacing)).filter(|codes| !codes.is_empty());
    let codes = codes.map_or(String::new(), |codes| format!("{}\n", digest(&codes)));
    let number = format!("number {}\n", identity.number);
    let (settings, plan) = (digest(&identity.settings), digest(chain.plan(segment)));
    let both = format!("antinoise release 1\n{settings}\n{plan}\n{codes}{number}");
    let all = if segment == 0 { both } else { format!("{both}segment {segment}\n") };
    let context: [u8; 32] = Sha256::digest(all.as_bytes()).into();
    Ok((design.noise()?.context(context), Grid::new(design.spacing)?))
}
