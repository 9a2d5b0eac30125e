//! The methods of a stream that return rows: written to one or several slices, added to a gradient, or added
//! to a sum.

use antinoise_mechanism::Grid;

use crate::either::EitherEngine;
use crate::kernel::{Seen, Target};
use crate::slices::{InputSlices, OutputSlices};
use crate::stream::in_pool;
use crate::{Error, NoiseStream, Result, range};

impl NoiseStream {
    /// Writes the next row into `out`, which has one number per output of the shard. On a grid this is the
    /// noisy sum of zeros.
    ///
    /// # Errors
    /// [`Error::Invalid`] for another length, [`Error::Exhausted`] after the last step; the stream and `out`
    /// are then unchanged.
    pub fn next_into(&mut self, out: &mut [f32]) -> Result<()> {
        self.next_into_slices(&mut [out])
    }

    /// Writes the next row into these slices, one after the other: the same bits as [`Self::next_into`],
    /// without a copy.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// use antinoise_noise::{Key, NoiseStream};
    /// let stream = || NoiseStream::new(Recursion::Independent, 10, 5, 1.0, Key::from_seed_insecure(7));
    /// let (mut row, mut weights, mut bias) = ([0.0; 5], [0.0; 4], [0.0; 1]);
    /// stream()?.next_into(&mut row)?;
    /// stream()?.next_into_slices(&mut [&mut weights, &mut bias])?;
    /// assert_eq!([&weights[..], &bias].concat(), row);
    /// # Ok::<(), antinoise_noise::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::next_into`], for slices whose lengths do not add up to the shard's.
    pub fn next_into_slices(&mut self, out: &mut [&mut [f32]]) -> Result<()> {
        self.write_row(out, Target::Overwrite, |_| Ok(()))
    }

    /// Adds `scale` times the next row to `gradient`, without a further pass over memory.
    ///
    /// # Errors
    /// As [`Self::next_into`]; also [`Error::Invalid`] on a grid, if |scale| noise_std is neither 0 nor from
    /// 2^-100 to 2^100, and if a result is not finite. In the last case `gradient` is then zeros, and the
    /// step can be requested again. Its noise is recomputed, which may take as long as a [seek](Self::seek).
    pub fn add_next_into(&mut self, gradient: &mut [f32], scale: f32) -> Result<()> {
        self.add_next_into_slices(&mut [gradient], scale)
    }

    /// As [`Self::add_next_into`], for a gradient that is split over these slices, in this order.
    ///
    /// # Errors
    /// As [`Self::add_next_into`].
    pub fn add_next_into_slices(&mut self, gradient: &mut [&mut [f32]], scale: f32) -> Result<()> {
        self.add_next_into_slices_if(gradient, scale, |_| Ok(()))
    }

    /// As [`Self::add_next_into_slices`], but only if `accept` accepts the digest of the noisy sum; see
    /// [`add_to_sum_slices_if`](Self::add_to_sum_slices_if).
    ///
    /// # Errors
    /// As [`Self::add_next_into`], and the error of `accept`: `gradient` is then zeros, and the step can be
    /// requested again.
    pub fn add_next_into_slices_if<E: From<Error>>(
        &mut self,
        gradient: &mut [&mut [f32]],
        scale: f32,
        accept: impl FnOnce(u64) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        if self.spec.grid.is_some() {
            let must_be = "plain: on a grid a sum needs `add_to_sum`";
            return Err(Error::input("stream", "on a grid", must_be).into());
        }
        range::scale(scale, self.spec.noise_std).map_err(Error::from)?;
        self.write_row(gradient, Target::Add(scale), accept)
    }

    /// Writes `sum` plus the step's noise into `out`. On a grid, sum and noise are rounded to the grid and
    /// added as integers; the result is rounded to single precision. A plain sum and its noise are added in
    /// double precision, then rounded to single precision.
    ///
    /// `sum` must be in double precision: if it were rounded to single precision, two sums that differ by a
    /// clip norm could differ by more.
    ///
    /// # Errors
    /// As [`Self::next_into`]; also for a `sum` of another length, and for a coordinate that is not finite
    /// or, on a grid, beyond +-2^51 grid steps: `out` is then zeros, and the step can be requested again. Its
    /// noise is recomputed, which may take as long as a [seek](Self::seek).
    pub fn add_to_sum(&mut self, sum: &[f64], out: &mut [f32]) -> Result<()> {
        self.add_to_sum_slices(&[sum], &mut [out])
    }

    /// As [`Self::add_to_sum`], for a sum and a noisy sum that are split over these slices, in this order.
    ///
    /// # Errors
    /// As [`Self::add_to_sum`].
    pub fn add_to_sum_slices(&mut self, sum: &[&[f64]], out: &mut [&mut [f32]]) -> Result<()> {
        self.add_to_sum_slices_if(sum, out, |_| Ok(()))
    }

    /// As [`Self::add_to_sum_slices`], but only if `accept` accepts the digest of the noisy sum; otherwise
    /// nobody sees the noisy sum. A caller that allows only one noisy sum per step compares the digest with
    /// the one that it recorded for the step. Two different noisy sums that were not built to collide have
    /// the same digest with probability 2^-32.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// use antinoise_noise::{Error, Key, NoiseStream};
    /// let mut stream = NoiseStream::new(Recursion::Independent, 10, 3, 1.0, Key::from_os()?)?;
    /// let (mut known, mut out) = (0, [0.0; 3]);
    /// stream.add_to_sum_slices_if(&[&[0.5, -0.25, 1.0]], &mut [&mut out], |digest| {
    ///     known = digest;
    ///     Ok::<(), Error>(())
    /// })?;
    /// stream.seek_and_reuse_noise_unprotected(0)?;
    /// let once = |digest| if digest == known { Ok(()) } else { Err(Error::Exhausted { steps: 1 }) };
    /// assert!(stream.add_to_sum_slices_if(&[&[0.5, -0.25, 2.0]], &mut [&mut out], once).is_err());
    /// assert_eq!((stream.step(), out), (0, [0.0; 3]));
    /// stream.add_to_sum_slices_if(&[&[0.5, -0.25, 1.0]], &mut [&mut out], once)?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::add_to_sum`], and when `accept` fails: `out` is then zeros, and the step can be
    /// repeated.
    pub fn add_to_sum_slices_if<E: From<Error>>(
        &mut self,
        sum: &[&[f64]],
        out: &mut [&mut [f32]],
        accept: impl FnOnce(u64) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.check_length("sum's length", sum.iter().map(|place| place.len()))?;
        self.write_row(out, Target::AddToSum(InputSlices::all(sum)), accept)
    }

    /// As [`Self::add_to_sum_slices_if`], with each noisy sum in the place of its sum: the same numbers, in
    /// double precision, without further memory.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// use antinoise_noise::{Error, Key, NoiseStream};
    /// let stream = || NoiseStream::new(Recursion::Independent, 10, 3, 1.0, Key::from_seed_insecure(7));
    /// let (mut sum, mut noisy_sum) = ([0.5, -0.25, 1.0], [0f32; 3]);
    /// stream()?.add_to_sum(&sum, &mut noisy_sum)?;
    /// stream()?.add_to_sum_in_place_if(&mut [&mut sum], |_| Ok::<(), Error>(()))?;
    /// assert_eq!(sum, noisy_sum.map(f64::from));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::add_to_sum_slices_if`]: `sum` is then zeros, and the step can be repeated.
    pub fn add_to_sum_in_place_if<E: From<Error>>(
        &mut self,
        sum: &mut [&mut [f64]],
        accept: impl FnOnce(u64) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.emit(sum, EitherEngine::emit_in_place, accept)
    }

    /// Writes the next row, as whole numbers of grid points, into `out`. The caller rounds its sum to the
    /// grid, adds the points and multiplies by the spacing itself, for example on another device; it must add
    /// rounded sum and noise as integers of 8 bytes.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// use antinoise_noise::{Grid, Key, NoiseStream};
    /// let grid = Grid::for_clip_norm(1.0, 3, 1e-3)?;
    /// let stream = || {
    ///     NoiseStream::builder(Recursion::Independent, 10, 3, 1.0).grid(grid).build(Key::from_seed_insecure(7))
    /// };
    /// let (sum, mut noisy_sum, mut points) = ([0.25, -1.0, 0.1], [0f32; 3], [0; 3]);
    /// stream()?.add_to_sum(&sum, &mut noisy_sum)?;
    /// stream()?.next_points_into(&mut points)?;
    /// for i in 0..3 {
    ///     let sum = (sum[i] / grid.spacing()).round_ties_even() as i64;
    ///     assert_eq!(noisy_sum[i], ((sum + i64::from(points[i])) as f64 * grid.spacing()) as f32);
    /// }
    /// # Ok::<(), antinoise_noise::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::next_into`]; also for a plain stream, and for a grid so fine that noise may not fit in 4
    /// bytes: a row's standard deviation exceeds about 2^31 / 14 grid points.
    pub fn next_points_into(&mut self, out: &mut [i32]) -> Result<()> {
        let spec = &self.spec;
        let fit = match &mut self.engine {
            EitherEngine::Plain(_) => {
                return Err(Error::input("stream", "plain", "on a grid: plain noise has no points"));
            }
            EitherEngine::OnGrid(engine) => engine.points_fit(spec),
        };
        if !fit {
            let must_be = "so coarse that all noise, in multiples of the spacing, fits in 32-bit integers";
            let spacing = spec.grid.map_or(0.0, Grid::spacing);
            return Err(Error::input("grid spacing", format!("{spacing:e}"), must_be));
        }
        let make = |engine: &mut EitherEngine, out: OutputSlices<'_, '_, i32>| match engine {
            EitherEngine::OnGrid(engine) => engine.emit(out, ()),
            EitherEngine::Plain(_) => unreachable!("plain streams were refused"),
        };
        self.emit(&mut [out], make, |_| Ok(()))
    }

    fn write_row<E: From<Error>>(
        &mut self,
        out: &mut [&mut [f32]],
        target: Target<'_>,
        accept: impl FnOnce(u64) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.emit(out, |engine, out| engine.emit(out, target), accept)
    }

    fn check_length(&self, name: &'static str, places: impl Iterator<Item = usize>) -> Result<()> {
        match places.sum::<usize>() {
            len if len == self.len() => Ok(()),
            other => Err(Error::input(name, other, format!("the shard's {}", self.len()))),
        }
    }

    /// Makes the next row. If the output is not finite, or `accept` refuses its digest, overwrites the output
    /// with zeros and moves back to the step.
    fn emit<O: Copy + Default + Send + Sync, E: From<Error>>(
        &mut self,
        out: &mut [&mut [O]],
        make: impl FnOnce(&mut EitherEngine, OutputSlices<'_, '_, O>) -> Seen + Send,
        accept: impl FnOnce(u64) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.check_length("output length", out.iter().map(|place| place.len()))?;
        let step = self.step();
        if step == self.spec.steps {
            return Err(Error::Exhausted { steps: self.spec.steps }.into());
        }
        let engine = &mut self.engine;
        let seen = in_pool(self.pool.as_ref(), || make(engine, OutputSlices::all(out)));
        let accepted = if seen.finite { accept(seen.digest) } else { Err(wild().into()) };
        if accepted.is_err() {
            out.iter_mut().for_each(|place| place.fill(O::default()));
            self.go_to(step);
        }
        accepted
    }
}

fn wild() -> Error {
    let must_be = "a sum of clipped gradients. No noisy sum was made, and the stream is still at this step";
    Error::input("sum", "not finite, or beyond what a noisy sum can hold,", must_be)
}
