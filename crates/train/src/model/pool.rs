use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};

use super::window::Window;
use crate::tensor::{contiguous, with_values};

/// How a window of numbers becomes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// The largest; the gradient goes to the first number that is the largest.
    Max,
    /// The mean.
    Average,
}

/// Pooling of windows without padding: examples x down x across x channels.
pub(super) struct Pool {
    pub(super) kind: Pooling,
    pub(super) window: Window,
}

impl CustomOp1 for Pool {
    fn name(&self) -> &'static str {
        "pool"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let images = contiguous(storage, layout)?;
        let Self { kind, window } = self;
        let channels = window.image.channels;
        let examples = images.len() / window.image.len();
        let (down, across) = window.outputs();
        let start = if *kind == Pooling::Max { f32::NEG_INFINITY } else { 0.0 };
        let mut pooled = vec![start; examples * down * across * channels];
        let each = images.chunks_exact(window.image.len());
        for (image, pooled) in each.zip(pooled.chunks_exact_mut(down * across * channels)) {
            for (position, y) in pooled.chunks_exact_mut(channels).enumerate() {
                for pixel in window.pixels(position) {
                    let x = &image[pixel..][..channels];
                    match kind {
                        Pooling::Max => y.iter_mut().zip(x).for_each(|(y, &x)| *y = larger(*y, x)),
                        Pooling::Average => y.iter_mut().zip(x).for_each(|(y, &x)| *y += x * self.share()),
                    }
                }
            }
        }
        Ok((CpuStorage::F32(pooled), (examples, down, across, channels).into()))
    }

    fn bwd(&self, images: &Tensor, pooled: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let mut spread = vec![0.0; images.elem_count()];
        with_values(images, |images| {
            with_values(pooled, |pooled| {
                with_values(gradient, |gradient| self.spread(images, pooled, gradient, &mut spread))
            })
        })???;
        Ok(Some(Tensor::from_vec(spread, images.shape(), images.device())?))
    }
}

impl Pool {
    fn share(&self) -> f32 {
        1.0 / (self.window.size * self.window.size) as f32
    }

    /// Adds each output's gradient to the inputs that made it.
    fn spread(&self, images: &[f32], pooled: &[f32], gradient: &[f32], spread: &mut [f32]) {
        let channels = self.window.image.channels;
        let mut rest = vec![0.0; channels];
        let outputs = pooled.chunks_exact(channels).zip(gradient.chunks_exact(channels));
        for (output, (y, gradient)) in outputs.enumerate() {
            let (example, position) = (output / self.window.positions(), output % self.window.positions());
            let image = example * self.window.image.len();
            rest.copy_from_slice(gradient);
            for pixel in self.window.pixels(position) {
                let sums = &mut spread[image + pixel..][..channels];
                match self.kind {
                    Pooling::Average => {
                        sums.iter_mut()
                            .zip(&rest)
                            .for_each(|(sum, gradient)| *sum += gradient * self.share());
                    }
                    Pooling::Max => {
                        let x = &images[image + pixel..][..channels];
                        let sums = sums.iter_mut().zip(&mut rest);
                        for ((sum, rest), (x, y)) in sums.zip(x.iter().zip(y)) {
                            let share = if x == y { *rest } else { 0.0 };
                            *sum += share;
                            *rest -= share;
                        }
                    }
                }
            }
        }
    }
}

/// The larger of two numbers, and NaN rather than -infinity of a window of NaN.
fn larger(y: f32, x: f32) -> f32 {
    if x <= y { y } else { x }
}
