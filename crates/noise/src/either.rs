//! The engine of a stream, whatever its mode.

use antinoise_mechanism::Grid;

use crate::checkpoint::Reader;
use crate::engine::Engine;
use crate::kernel::{OnGrid, Plain, Target};
use crate::key::Key;
use crate::placement::Limits;
use crate::simd::Isa;
use crate::slices::OutputSlices;
use crate::spec::Spec;
use crate::{Result, kernel::Seen};

/// The engine of a plain stream, or of one on a grid.
pub(crate) enum EitherEngine {
    Plain(Engine<Plain>),
    OnGrid(Engine<OnGrid>),
}

/// Evaluates an expression on the engine inside an [`EitherEngine`].
macro_rules! either {
    ($any:expr, $engine:ident => $what:expr) => {
        match $any {
            crate::either::EitherEngine::Plain($engine) => $what,
            crate::either::EitherEngine::OnGrid($engine) => $what,
        }
    };
}
pub(crate) use either;

impl EitherEngine {
    pub(crate) fn new(spec: &Spec, key: &Key, limits: Limits, threads: usize) -> Result<Self> {
        let isa = Isa::detect();
        Ok(match spec.grid {
            None => Self::Plain(Engine::new(isa, Plain, spec, key, limits, threads)?),
            Some(grid) => {
                let mode = OnGrid::new(grid, spec.noise_std);
                Self::OnGrid(Engine::new(isa, mode, spec, key, limits, threads)?)
            }
        })
    }

    /// Returns the next row: writes it over the outputs, adds it to them (plain streams only), or adds it to
    /// a sum.
    pub(crate) fn emit(&mut self, out: OutputSlices<'_, '_, f32>, target: Target<'_>) -> Seen {
        match self {
            Self::Plain(engine) => engine.emit(out, target),
            Self::OnGrid(engine) => engine.emit(out, target.sum()),
        }
    }

    /// The sum of the outputs and the next row, in the place of the outputs.
    pub(crate) fn emit_in_place(&mut self, out: OutputSlices<'_, '_, f64>) -> Seen {
        either!(self, engine => engine.emit(out, ()))
    }

    /// Opens a checkpoint of a stream on `grid`, or of a plain one.
    pub(crate) fn open(grid: Option<Grid>, path: &std::path::Path) -> Result<Reader<'_>> {
        match grid {
            None => Reader::open::<f32, f32>(path),
            Some(_) => Reader::open::<f64, i32>(path),
        }
    }

    /// Reads the numbers of a checkpoint into the memory of past and rows made ahead.
    pub(crate) fn read(&mut self, reader: Reader<'_>) -> Result<()> {
        let (start, next) = (reader.label.start, reader.label.step);
        if !either!(self, engine => engine.stagger.can_be(start, next)) {
            return Err(reader.refuse(format!("no stream at step {next} has start {start}: it was altered")));
        }
        either!(self, engine => {
            let (past, rows) = engine.restore(start, next);
            reader.read(past, rows)
        })
    }

    /// Verifies the numbers of a checkpoint without storing them.
    pub(crate) fn skip(&self, reader: Reader<'_>) -> Result<()> {
        match self {
            Self::Plain(_) => reader.skip::<f32, f32>(),
            Self::OnGrid(_) => reader.skip::<f64, i32>(),
        }
    }
}
