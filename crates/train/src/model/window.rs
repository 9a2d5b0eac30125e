//! Square windows that slide over images.

use std::ops::Range;

use antinoise_input::{InvalidParameter, at_least};

use crate::data::ImageShape;
use crate::multiversion;

/// Square windows over images stored pixel by pixel, with a pixel's channels adjacent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) image: ImageShape,
    pub(super) size: usize,
    pub(super) stride: usize,
    pub(super) padding: usize,
}

/// The part of one row of pixels of a window that lies within the image.
struct Run {
    /// The indices of the part's numbers in the image.
    image: Range<usize>,
    /// Index of the part's first number in the window.
    window: usize,
}

impl Window {
    /// The number of windows down an image, and the number across.
    pub(super) fn outputs(&self) -> (usize, usize) {
        let count = |side: usize| (side + 2 * self.padding - self.size) / self.stride + 1;
        (count(self.image.height), count(self.image.width))
    }

    /// Number of windows in an image.
    pub(super) fn positions(&self) -> usize {
        let (down, across) = self.outputs();
        down * across
    }

    /// Numbers in a window.
    pub(super) fn len(&self) -> usize {
        self.size * self.size * self.image.channels
    }

    /// The parts of window `position` that lie within the image.
    #[inline(always)]
    fn runs(&self, position: usize) -> impl Iterator<Item = Run> {
        let Self { image: ImageShape { height, width, channels }, size, stride, padding } = *self;
        let across = self.outputs().1;
        let (top, left) = (position / across * stride, position % across * stride);
        // In padded coordinates the image's columns are padding..padding + width. Every window contains some
        // of them, since padding is less than the window's size.
        let columns = left.max(padding)..(left + size).min(padding + width);
        let rows = top.max(padding)..(top + size).min(padding + height);
        rows.map(move |row| {
            let start = ((row - padding) * width + columns.start - padding) * channels;
            Run {
                image: start..start + columns.len() * channels,
                window: ((row - top) * size + columns.start - left) * channels,
            }
        })
    }

    /// The rows of window `position`, and the columns of each. Only for windows without padding.
    #[inline(always)]
    pub(super) fn pixels(&self, position: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
        let across = self.outputs().1;
        let (top, left) = (position / across * self.stride, position % across * self.stride);
        let columns = left..left + self.size;
        (top..top + self.size).map(move |row| (row, columns.clone()))
    }

    /// Every window of every image as a row: examples x positions x (row, column, channel of the window).
    pub(super) fn unfold(&self, images: &[f32]) -> Vec<f32> {
        let of_image = self.positions() * self.len();
        let mut rows = vec![0.0; images.len() / self.image.len() * of_image];
        for (rows, image) in rows.chunks_exact_mut(of_image).zip(images.chunks_exact(self.image.len())) {
            for (position, row) in rows.chunks_exact_mut(self.len()).enumerate() {
                for run in self.runs(position) {
                    copy(&image[run.image.clone()], &mut row[run.window..][..run.image.len()]);
                }
            }
        }
        rows
    }

    /// The transpose of [`Self::unfold`]: each pixel is the sum of its copies in the windows.
    pub(super) fn fold(&self, rows: &[f32]) -> Vec<f32> {
        let mut images = vec![0.0; rows.len() / (self.positions() * self.len()) * self.image.len()];
        add_windows(*self, rows, &mut images);
        images
    }
}

/// As `copy_from_slice`, but inlined for the length that is frequent in a first layer.
#[inline(always)]
fn copy(from: &[f32], to: &mut [f32]) {
    match (<&[f32; 8]>::try_from(from), <&mut [f32; 8]>::try_from(&mut *to)) {
        (Ok(from), Ok(to)) => *to = *from,
        _ => to.copy_from_slice(from),
    }
}

multiversion! {
    /// Adds each window's numbers to their pixels.
    fn add_windows(window: Window, rows: &[f32], images: &mut [f32]) {
        let each = rows.chunks_exact(window.positions() * window.len());
        for (rows, image) in each.zip(images.chunks_exact_mut(window.image.len())) {
            for (position, row) in rows.chunks_exact(window.len()).enumerate() {
                for run in window.runs(position) {
                    let row = &row[run.window..][..run.image.len()];
                    image[run.image].iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
                }
            }
        }
    }
}

impl Window {
    pub(super) fn new(
        image: ImageShape,
        size: usize,
        stride: usize,
        padding: usize,
    ) -> Result<Self, InvalidParameter> {
        at_least("size of a window", size, 1)?;
        at_least("stride", stride, 1)?;
        if padding >= size {
            return Err(InvalidParameter::new("padding", padding, format!("below the window's size {size}")));
        }
        let side = image.height.min(image.width) + 2 * padding;
        if size > side {
            let must_be = format!("at most {side}, the padded image's side");
            return Err(InvalidParameter::new("size of a window", size, must_be));
        }
        Ok(Self { image, size, stride, padding })
    }
}
