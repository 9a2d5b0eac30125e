//! The part of an example's gradient that is clipped as one.

use antinoise_input::short_up;
use antinoise_train::clip::Groups;
use antinoise_train::model::Model;
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// Part of a gradient that is clipped as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClipBy {
    /// An example's whole gradient, to the clip norm.
    #[default]
    Whole,
    /// The part of each of the model's k layers, to the clip norm / sqrt(k).
    Layer,
}

impl ClipBy {
    /// Every value with its name and its meaning.
    pub const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Whole, "whole", "An example's whole gradient, to the clip norm"),
        (Self::Layer, "layer", "The part of each of the model's k layers, to the clip norm / sqrt(k)"),
    ];

    /// Whether a gradient is clipped as a whole.
    pub fn is_whole(&self) -> bool {
        *self == Self::Whole
    }

    /// Groups of the model's layers that are clipped separately; `None` if the gradient is clipped as a
    /// whole.
    pub fn groups(self, model: &Model) -> Result<Option<Groups>> {
        Ok(match self {
            Self::Whole => None,
            Self::Layer => Some(Groups::by_layer(&model.layers())?),
        })
    }
}

/// The clip norm of each part that is clipped separately.
pub fn norms(groups: Option<&Groups>, clip_norm: f64) -> Vec<f64> {
    groups.map_or_else(|| vec![clip_norm], |groups| groups.norms(clip_norm))
}

/// Sentence of a privacy statement about clipping by layer.
pub fn clipped_apart(groups: &Groups, clip_norm: f64) -> String {
    let norms = groups.norms(clip_norm);
    let largest = norms.iter().copied().fold(0.0, f64::max);
    format!(
        "by layer: the gradient of each of {} layers to at most {}; squares of these norms add up to at most that of the \
         clip norm",
        norms.len(),
        short_up(largest, 5)
    )
}
