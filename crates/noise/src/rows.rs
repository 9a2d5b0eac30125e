//! How a stream returns its rows: in one slice or in several, written, added, or with a sum.

use antinoise_mechanism::Grid;

use crate::kernel::{HandsOut, Target};
use crate::places::{Given, Places};
use crate::{Error, Mode, OnGrid, Plain, Result, Stream, range};

impl<M: Mode> Stream<M> {
    /// Writes the next row into `out`, which has one number for each output of the shard: on a grid, the release of a sum
    /// of zeros.
    ///
    /// # Errors
    /// [`Error::Invalid`] for another length, [`Error::Exhausted`] after the last step; the stream and
    /// `out` are then unchanged.
    pub fn next_into(&mut self, out: &mut [f32]) -> Result<()> {
        self.next_into_places(&mut [out])
    }

    /// Writes the next row into these slices, one after the other: the same bits, without a copy.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// use antinoise_noise::{Key, NoiseStream};
    /// let stream = || NoiseStream::new(Recursion::Independent, 10, 5, 1.0, Key::from_seed_insecure(7));
    /// let (mut row, mut weights, mut bias) = ([0.0; 5], [0.0; 4], [0.0; 1]);
    /// stream()?.next_into(&mut row)?;
    /// stream()?.next_into_places(&mut [&mut weights, &mut bias])?;
    /// assert_eq!([&weights[..], &bias].concat(), row);
    /// # Ok::<(), antinoise_noise::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::next_into`], for slices whose lengths do not add up to the shard's.
    pub fn next_into_places(&mut self, out: &mut [&mut [f32]]) -> Result<()> {
        self.hand_out(out, <M as HandsOut<f32>>::Target::default(), |_| Ok(()))
    }

    fn check_length(&self, name: &'static str, places: impl Iterator<Item = usize>) -> Result<()> {
        match places.sum::<usize>() {
            len if len == self.len() => Ok(()),
            other => Err(Error::input(name, other, format!("the shard's {}", self.len()))),
        }
    }

    /// Where the output is not finite, or `accept` refuses its digest, it is wiped and the step is still to come.
    fn hand_out<O: Copy + Default + Send + Sync, E: From<Error>>(
        &mut self,
        out: &mut [&mut [O]],
        target: <M as HandsOut<O>>::Target<'_>,
        accept: impl FnOnce(u64) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E>
    where
        M: HandsOut<O>,
    {
        self.check_length("output length", out.iter().map(|place| place.len()))?;
        let step = self.step();
        if step == self.spec.steps {
            return Err(Error::Exhausted { steps: self.spec.steps }.into());
        }
        let engine = &mut self.engine;
        let seen = match &self.pool {
            Some(pool) => pool.install(|| engine.hand_out(Places::all(out), target)),
            None => engine.hand_out(Places::all(out), target),
        };
        let accepted = if seen.finite { accept(seen.digest) } else { Err(wild().into()) };
        if accepted.is_err() {
            out.iter_mut().for_each(|place| place.fill(O::default()));
            self.seek(step)?;
        }
        accepted
    }
}

impl Stream<Plain> {
    /// Adds `scale` times the next row to `gradient`, in the same pass over memory that makes it.
    ///
    /// # Errors
    /// As [`Self::next_into`], and [`Error::Invalid`] for a `scale` that is not finite, or that
    /// leaves the range of single precision: |scale| noise_std must be 0 or from 2^-100 to 2^100. Also for a `gradient` that is not finite,
    /// which is then zeros: the step is still to come, and its noise is made again, which may take as long as a [seek](Self::seek).
    pub fn add_next_into(&mut self, gradient: &mut [f32], scale: f32) -> Result<()> {
        self.add_next_into_places(&mut [gradient], scale)
    }

    /// The same to a gradient that is split over these slices, in this order; see [`Self::next_into_places`].
    ///
    /// # Errors
    /// As [`Self::add_next_into`].
    pub fn add_next_into_places(&mut self, gradient: &mut [&mut [f32]], scale: f32) -> Result<()> {
        self.add_next_into_places_if(gradient, scale, |_| Ok(()))
    }

    /// The same if `accept` accepts a digest of what would be released; see [`AnyStream::release_places_if`](crate::AnyStream::release_places_if).
    ///
    /// # Errors
    /// As [`Self::add_next_into`], and what `accept` refuses: `gradient` is then zeros, and the step still to come.
    pub fn add_next_into_places_if<E: From<Error>>(
        &mut self,
        gradient: &mut [&mut [f32]],
        scale: f32,
        accept: impl FnOnce(u64) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        range::scale(scale, self.spec.noise_std).map_err(Error::from)?;
        self.hand_out(gradient, Target::Add(scale), accept)
    }

    /// Writes `sum` and the next row, added in double precision.
    pub(crate) fn release_places_if<E: From<Error>>(
        &mut self,
        sum: &[&[f64]],
        out: &mut [&mut [f32]],
        accept: impl FnOnce(u64) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.check_length("sum's length", sum.iter().map(|place| place.len()))?;
        self.hand_out(out, Target::Release(Given::all(sum)), accept)
    }
}

impl Stream<OnGrid> {
    /// Writes the step's release of `sum` into `out`: sum and noise, both on the grid, added in whole numbers, then
    /// rounded to single precision (a function of the whole number alone).
    ///
    /// The sum is rounded to the grid here, from double precision: if it had been rounded to single precision before, two sums that
    /// differ by a clip norm could move further apart.
    ///
    /// # Errors
    /// As [`Self::next_into`], and for a `sum` of another length, or of which a coordinate is not finite or is beyond +-2^51 grid steps: `out` is
    /// then zeros. The step is still to come, and its noise is made again, which may take as long as a [seek](Self::seek).
    pub fn release(&mut self, sum: &[f64], out: &mut [f32]) -> Result<()> {
        self.release_places(&[sum], &mut [out])
    }

    /// The same for a sum and a release that are split over these slices, in this order; see [`Self::next_into_places`].
    ///
    /// # Errors
    /// As [`Self::release`].
    pub fn release_places(&mut self, sum: &[&[f64]], out: &mut [&mut [f32]]) -> Result<()> {
        self.release_places_if(sum, out, |_| Ok(()))
    }

    pub(crate) fn release_places_if<E: From<Error>>(
        &mut self,
        sum: &[&[f64]],
        out: &mut [&mut [f32]],
        accept: impl FnOnce(u64) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.check_length("sum's length", sum.iter().map(|place| place.len()))?;
        self.hand_out(out, Some(Given::all(sum)), accept)
    }

    /// Writes the next row in whole points of the grid into `out`: for a caller that rounds a sum to the grid, adds the points and multiplies by the
    /// spacing itself, on another device say. The rounded sum and the noise must be added in integers of 8 bytes.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// use antinoise_noise::{Grid, Key, NoiseStream};
    /// let grid = Grid::for_clip_norm(1.0, 3, 1e-3)?;
    /// let stream = || {
    ///     NoiseStream::builder(Recursion::Independent, 10, 3, 1.0).build_on_grid(grid, Key::from_seed_insecure(7))
    /// };
    /// let (sum, mut release, mut points) = ([0.25, -1.0, 0.1], [0f32; 3], [0; 3]);
    /// stream()?.release(&sum, &mut release)?;
    /// stream()?.next_points_into(&mut points)?;
    /// for i in 0..3 {
    ///     let sum = (sum[i] / grid.spacing()).round_ties_even() as i64;
    ///     assert_eq!(release[i], ((sum + i64::from(points[i])) as f64 * grid.spacing()) as f32);
    /// }
    /// # Ok::<(), antinoise_noise::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::next_into`], and for a grid on which noise may take more than 4 bytes: where a row's deviation is more than about 2^31 / 14 points.
    pub fn next_points_into(&mut self, out: &mut [i32]) -> Result<()> {
        if !self.engine.points_fit(&self.spec) {
            let must_be = "so coarse that any row of noise fits in 4 bytes of whole points";
            let spacing = self.engine.grid().map_or(0.0, Grid::spacing);
            return Err(Error::input("grid spacing", format!("{spacing:e}"), must_be));
        }
        self.hand_out(&mut [out], (), |_| Ok(()))
    }
}

fn wild() -> Error {
    let must_be = "a sum of clipped gradients: nothing was released, and the step is still to come";
    Error::input("sum", "not finite, or beyond what a release can hold,", must_be)
}
