//! Nodes over ranges of steps that are nested in each other, such as those of a tree. Equal subtrees are held
//! once, so that a complete tree over n steps takes O(log n) memory.

/// A range of consecutive steps, the squared weight of the node over it, and the ranges that it consists of.
#[derive(Debug, Clone)]
pub(crate) struct Range {
    pub(crate) steps: usize,
    pub(crate) square: f64,
    /// Indices of ranges, in the order of their steps; empty for a single step.
    pub(crate) parts: Vec<usize>,
}

/// Nested ranges. Parts have smaller indices than the ranges that consist of them, and the last range holds
/// all steps. (C^T C)\[t, tau\] is the sum of the squared weights of all ranges that hold both steps.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nested {
    pub(crate) ranges: Vec<Range>,
}

impl Nested {
    /// Creates the tree over 2^(weights - 1) steps with a weight for each height, from the leaves up.
    pub(crate) fn complete(weights: &[f64]) -> Self {
        let mut tree = Self::default();
        for (height, weight) in weights.iter().enumerate() {
            match height.checked_sub(1) {
                None => tree.step(weight * weight),
                Some(below) => tree.join(weight * weight, vec![below, below]),
            };
        }
        tree
    }

    /// Adds a single step and returns its index.
    pub(crate) fn step(&mut self, square: f64) -> usize {
        self.push(Range { steps: 1, square, parts: Vec::new() })
    }

    /// Adds the range that consists of `parts` and returns its index.
    pub(crate) fn join(&mut self, square: f64, parts: Vec<usize>) -> usize {
        let steps = parts.iter().map(|&part| self.ranges[part].steps).sum();
        self.push(Range { steps, square, parts })
    }

    fn push(&mut self, range: Range) -> usize {
        self.ranges.push(range);
        self.ranges.len() - 1
    }

    /// Restricts the ranges to the first `steps` steps.
    pub(crate) fn leading(mut self, steps: usize) -> Self {
        self.cut(self.ranges.len() - 1, steps);
        self
    }

    /// Adds the range `of`, restricted to its first `steps` >= 1 steps, and returns its index.
    fn cut(&mut self, of: usize, steps: usize) -> usize {
        let Range { steps: all, square, parts } = self.ranges[of].clone();
        if parts.is_empty() {
            return of;
        }
        let (mut kept, mut left) = (Vec::new(), steps.min(all));
        for part in parts {
            let length = self.ranges[part].steps;
            if left > 0 {
                kept.push(if left < length { self.cut(part, left) } else { part });
            }
            left = left.saturating_sub(length);
        }
        self.join(square, kept)
    }

    /// Repeats all steps `times` times and appends those of `rest`, with no weight on the whole.
    pub(crate) fn repeated(mut self, times: usize, rest: Option<Self>) -> Self {
        let mut parts = vec![self.ranges.len() - 1; times];
        if let Some(rest) = rest {
            let offset = self.ranges.len();
            self.ranges.extend(rest.ranges.into_iter().map(|mut range| {
                range.parts.iter_mut().for_each(|part| *part += offset);
                range
            }));
            parts.push(self.ranges.len() - 1);
        }
        self.join(0.0, parts);
        self
    }
}
