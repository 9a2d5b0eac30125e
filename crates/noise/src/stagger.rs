//! Staggering: the steps at which each tile makes its noise, for several steps ahead.
//!
//! 1. Let L be `look_ahead`. If staggered, tile i is due at the steps s with (s + i) mod L = 0, and then
//!    makes all rows before its next due step, s to s + L - 1. Otherwise all tiles are due at the multiples
//!    of L.
//! 2. So about one tile in L is due at each step: every step takes the same time, and the past of the next
//!    due tile is fetched from memory while others compute.
//! 3. After an alignment, all tiles have made their noise up to the same step, so that the state does not
//!    depend on the tiles of its shard. Rows before that step are then returned from memory, and from that
//!    step on tiles are due as in 1.
//! 4. The contents of memory are a function of two steps: `next`, and `start`, the step of the last
//!    alignment. A checkpoint records only these two with the numbers.

/// The schedule by which tiles make their noise ahead, as described at the head of this file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stagger {
    pub(crate) steps: usize,
    look_ahead: usize,
    /// Whether tiles are due at different steps; otherwise all are due at the multiples of `look_ahead`.
    staggered: bool,
    /// The step up to which all tiles had made their noise at the last alignment. It is greater than `next`
    /// while rows that were made before the alignment are still to be returned.
    pub(crate) start: usize,
    /// The next step to be returned.
    pub(crate) next: usize,
}

impl Stagger {
    pub(crate) fn new(steps: usize, look_ahead: usize, staggered: bool) -> Self {
        Self { steps, look_ahead, staggered, start: 0, next: 0 }
    }

    /// Restores the schedule of a stream that was aligned at `start` and whose next step is `next`.
    pub(crate) fn restore(&mut self, start: usize, next: usize) {
        (self.start, self.next) = (start, next);
    }

    /// Whether a stream whose next step is `next` can have been aligned at `start`.
    pub(crate) fn can_be(&self, start: usize, next: usize) -> bool {
        start < next + self.look_ahead
    }

    /// Returns the step up to which this tile has made its noise when `next` is the next step.
    pub(crate) fn made(&self, tile: usize, next: usize) -> usize {
        if next <= self.start {
            return self.start;
        }
        let since = (next + if self.staggered { tile } else { 0 }) % self.look_ahead;
        self.steps.min(next + (self.look_ahead - since) % self.look_ahead)
    }

    /// Returns an upper bound on the step up to which tiles have made their noise once `step` is returned.
    pub(crate) fn horizon(&self, step: usize) -> usize {
        if self.staggered { self.steps.min(step + self.look_ahead) } else { self.made(0, step + 1) }
    }

    /// Returns the first step from which on no tile has made noise.
    pub(crate) fn unmade(&self) -> usize {
        if self.staggered { self.alignment() } else { self.made(0, self.next) }
    }

    /// Returns the step at which all tiles can be aligned: no tile has made noise beyond it, and it is the
    /// same for every shard.
    pub(crate) fn alignment(&self) -> usize {
        if self.next <= self.start { self.start } else { self.steps.min(self.next + self.look_ahead - 1) }
    }

    /// Records that all tiles have made their noise up to [`Stagger::alignment`].
    pub(crate) fn align(&mut self) {
        self.start = self.alignment();
    }

    /// Whether one of `tiles` tiles is due at `step`.
    pub(crate) fn is_due(&self, step: usize, tiles: usize) -> bool {
        (0..tiles.min(self.look_ahead)).any(|tile| self.made(tile, step) == step)
    }

    /// Returns the number of tiles that are not due between two tiles that are due at `step`.
    pub(crate) fn idle(&self, step: usize) -> usize {
        if self.staggered && step != self.start { self.look_ahead - 1 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tile_makes_every_step_once_and_before_it_is_handed_out() {
        for (look_ahead, staggered) in [(1, true), (4, true), (4, false), (7, true), (40, true)] {
            for start in [0, 5] {
                let mut stagger = Stagger::new(23, look_ahead, staggered);
                stagger.restore(start, start);
                let mut made = [start; 9];
                for step in start..23 {
                    assert!(made.iter().all(|&made| made <= stagger.unmade()));
                    let due: Vec<_> = (0..9).filter(|&tile| stagger.made(tile, step) == step).collect();
                    assert_eq!(stagger.is_due(step, 9), !due.is_empty());
                    assert!(due.windows(2).all(|pair| pair[1] - pair[0] == 1 + stagger.idle(step)));
                    for (tile, made) in made.iter_mut().enumerate() {
                        assert_eq!(*made, stagger.made(tile, step));
                        *made = stagger.made(tile, step + 1);
                        assert!(step < *made && *made <= stagger.horizon(step));
                        assert!(*made <= step + look_ahead);
                    }
                    stagger.next = step + 1;
                }
            }
        }
    }
}
