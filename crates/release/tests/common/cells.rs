//! The cells and regions of k-means, by definition.

use antinoise_release::{Axis, Published, Query};

pub fn axes(text: &str) -> (usize, Vec<Axis>) {
    let Query::Kmeans { centres, axes } = text.parse().unwrap() else { panic!("{text}") };
    (centres, axes)
}

/// The middle of a cell, as a fraction of each range relative to its middle; the last axis varies fastest.
pub fn middle(axes: &[Axis], mut cell: usize) -> Vec<f64> {
    let mut shares = Vec::new();
    for axis in axes.iter().rev() {
        shares.push(((cell % axis.cells) as f64 + 0.5) / axis.cells as f64 - 0.5);
        cell /= axis.cells;
    }
    shares.reverse();
    shares
}

/// A number as a fraction of its range, relative to the middle of the range.
pub fn share(axis: &Axis, x: f64) -> f64 {
    (x - axis.low) / (axis.high - axis.low) - 0.5
}

pub fn nearest(axes: &[Axis], centres: &[Vec<f64>], cell: usize) -> usize {
    let of_cell = middle(axes, cell);
    let distance = |centre: &Vec<f64>| -> f64 {
        let parts = axes.iter().zip(centre).zip(&of_cell);
        parts.map(|((axis, x), y)| (share(axis, *x) - y).powi(2)).sum()
    };
    // Rounding of published numbers decides no tie.
    let least = centres.iter().map(&distance).fold(f64::INFINITY, f64::min);
    centres.iter().position(|centre| distance(centre) <= least + 1e-12).unwrap()
}

/// The rows of one key and query: centres, and the figure of each.
pub fn centres(rows: &[&Published], axes: usize) -> Vec<Vec<f64>> {
    let coordinates = |rows: &[&Published]| rows[..axes].iter().map(|row| row.value.value()).collect();
    rows.chunks(axes + 1).map(coordinates).collect()
}
