//! Staggering: at which step each tile makes its noise, several steps at a time.
//!
//! 1. Let L be `look_ahead`. If staggered, tile i is due at the steps s with (s + i) mod L = 0, and then
//!    makes all rows before its next due step, s to s + L - 1. Otherwise all tiles are due at the multiples
//!    of L.
//! 2. So about one tile in L is due at each step: every step takes the same time, and the past of the next
//!    due tile is fetched from memory while others compute.
//! 3. [`Stagger::align`] brings all tiles to one step, so that a state does not depend on the tiles of its
//!    shard. From then on, rows before that step are returned from memory, and tiles are due again as in 1.
//! 4. The contents of memory are a function of two steps: `next`, and `start`, the step of the last
//!    alignment. A checkpoint records only these two with the numbers.

/// The schedule by which tiles make their noise ahead; see the module for the method.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stagger {
    pub(crate) steps: usize,
    look_ahead: usize,
    /// If false, all tiles are due at the same steps, the multiples of `look_ahead`.
    staggered: bool,
    /// The step up to which all tiles had made their noise at the last alignment. Greater than `next` while
    /// rows made before the alignment are still to be returned.
    pub(crate) start: usize,
    /// The next step to be returned.
    pub(crate) next: usize,
}

impl Stagger {
    pub(crate) fn new(steps: usize, look_ahead: usize, staggered: bool) -> Self {
        Self { steps, look_ahead, staggered, start: 0, next: 0 }
    }

    /// Restores a state that was reached by the steps from `start` to `next`, or by [`Stagger::align`].
    pub(crate) fn restore(&mut self, start: usize, next: usize) {
        (self.start, self.next) = (start, next);
    }

    /// The step up to which this tile's noise is made when `next` is the next step.
    pub(crate) fn made(&self, tile: usize, next: usize) -> usize {
        if next <= self.start {
            return self.start;
        }
        let since = (next + if self.staggered { tile } else { 0 }) % self.look_ahead;
        self.steps.min(next + (self.look_ahead - since) % self.look_ahead)
    }

    /// Upper bound on the step up to which tiles have made their noise once `step` is returned.
    pub(crate) fn horizon(&self, step: usize) -> usize {
        if self.staggered { self.steps.min(step + self.look_ahead) } else { self.made(0, step + 1) }
    }

    /// The step from which on no tile has made noise.
    pub(crate) fn unmade(&self) -> usize {
        if self.staggered { self.alignment() } else { self.made(0, self.next) }
    }

    /// The step to which all tiles can be aligned: no tile is beyond it, and it is the same for every shard.
    pub(crate) fn alignment(&self) -> usize {
        if self.next <= self.start { self.start } else { self.steps.min(self.next + self.look_ahead - 1) }
    }

    /// Records that all tiles were brought to [`Stagger::alignment`].
    pub(crate) fn align(&mut self) {
        self.start = self.alignment();
    }

    /// Whether one of `tiles` tiles is due at `step`.
    pub(crate) fn is_due(&self, step: usize, tiles: usize) -> bool {
        (0..tiles.min(self.look_ahead)).any(|tile| self.made(tile, step) == step)
    }

    /// Number of idle tiles after each tile that computes at `step`.
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
