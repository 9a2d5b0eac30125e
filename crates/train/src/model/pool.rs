use serde::{Deserialize, Serialize};

use super::window::Window;
use crate::multiversion;

/// The reduction of a window to one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pooling {
    /// The maximum; its gradient goes to the first maximum of the window.
    Max,
    /// The mean.
    Average,
}

impl Pooling {
    /// Pools windows without padding; the result is examples x down x across x channels.
    pub(super) fn forward(self, window: Window, images: &[f32]) -> Vec<f32> {
        let outputs = window.positions() * window.image.channels;
        let mut pooled = vec![0.0; images.len() / window.image.len() * outputs];
        gather(self, window, images, &mut pooled);
        pooled
    }

    /// The gradient with respect to `images`, from that with respect to `pooled`.
    pub(super) fn backward(
        self,
        window: Window,
        images: &[f32],
        pooled: &[f32],
        gradient: &[f32],
    ) -> Vec<f32> {
        let mut spread = vec![0.0; images.len()];
        spread_back(self, window, images, pooled, gradient, &mut spread);
        spread
    }
}

/// Channels pooled together.
const LANES: usize = 8;

multiversion! {
    /// Pools each window of `images` into `pooled`.
    fn gather(kind: Pooling, window: Window, images: &[f32], pooled: &mut [f32]) {
        let channels = window.image.channels;
        let whole = channels / LANES * LANES;
        let each = images.chunks_exact(window.image.len());
        for (image, pooled) in each.zip(pooled.chunks_exact_mut(window.positions() * channels)) {
            for (position, y) in pooled.chunks_exact_mut(channels).enumerate() {
                for channel in (0..whole).step_by(LANES) {
                    y[channel..][..LANES].copy_from_slice(&one_of::<LANES>(kind, window, position, channel, image));
                }
                for channel in whole..channels {
                    y[channel..][..1].copy_from_slice(&one_of::<1>(kind, window, position, channel, image));
                }
            }
        }
    }
}

/// Pools `W` channels of one window. The results stay in registers: with results in memory, the compiler
/// would write a maximum only where it grows, one number at a time.
#[inline(always)]
fn one_of<const W: usize>(
    kind: Pooling,
    window: Window,
    position: usize,
    channel: usize,
    image: &[f32],
) -> [f32; W] {
    let mut y = [if kind == Pooling::Max { f32::NEG_INFINITY } else { 0.0 }; W];
    let share = share(window);
    for (row, columns) in window.pixels(position) {
        for column in columns {
            let x: &[f32; W] =
                image[window.image.at(row, column) + channel..].first_chunk().expect("a whole pixel");
            match kind {
                Pooling::Max => {
                    for k in 0..W {
                        y[k] = larger(y[k], x[k]);
                    }
                }
                Pooling::Average => {
                    for k in 0..W {
                        y[k] += x[k] * share;
                    }
                }
            }
        }
    }
    y
}

multiversion! {
    /// Adds each output's gradient to the inputs that it depends on.
    fn spread_back(kind: Pooling, window: Window, images: &[f32], pooled: &[f32], gradient: &[f32], spread: &mut [f32]) {
        let (channels, share) = (window.image.channels, share(window));
        let mut rest = vec![0.0; channels];
        let outputs = pooled.chunks_exact(channels).zip(gradient.chunks_exact(channels));
        for (output, (y, gradient)) in outputs.enumerate() {
            let (example, position) = (output / window.positions(), output % window.positions());
            let image = example * window.image.len();
            rest.copy_from_slice(gradient);
            for (row, columns) in window.pixels(position) {
                for column in columns {
                    let pixel = image + window.image.at(row, column);
                    let sums = &mut spread[pixel..][..channels];
                    match kind {
                        Pooling::Average => {
                            sums.iter_mut().zip(&rest).for_each(|(sum, gradient)| *sum += gradient * share);
                        }
                        Pooling::Max => {
                            let x = &images[pixel..][..channels];
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
}

fn share(window: Window) -> f32 {
    1.0 / (window.size * window.size) as f32
}

/// The larger of two numbers. A window of NaN gives NaN, not -infinity.
#[inline(always)]
fn larger(y: f32, x: f32) -> f32 {
    if x <= y { y } else { x }
}
