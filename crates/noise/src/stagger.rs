//! When each tile's noise is made: several steps at a time, and not all tiles at once.
//!
//! What is in memory is a function of two numbers, the step that comes next and the step that all tiles were last brought
//! to: all that a checkpoint says beside the numbers.

/// Staggered, tile i computes at the steps s with (s + i) mod look_ahead = 0, each time all rows before the next such step. So
/// every step takes the same time, and the memory of most tiles is fetched while other tiles compute.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stagger {
    pub(crate) steps: usize,
    look_ahead: usize,
    /// False where all tiles compute at the same steps, every look_ahead-th.
    staggered: bool,
    /// The step that every tile was brought to; the next one, or one after it where the rows until then are made ahead.
    pub(crate) start: usize,
    /// The step that comes next.
    pub(crate) next: usize,
}

impl Stagger {
    pub(crate) fn new(steps: usize, look_ahead: usize, staggered: bool) -> Self {
        Self { steps, look_ahead, staggered, start: 0, next: 0 }
    }

    /// As after the steps from `start` to `next`, or as after [`Stagger::align`].
    pub(crate) fn restore(&mut self, start: usize, next: usize) {
        (self.start, self.next) = (start, next);
    }

    /// The step up to which this tile's noise is made when `next` is the step that comes next.
    pub(crate) fn made(&self, tile: usize, next: usize) -> usize {
        if next <= self.start {
            return self.start;
        }
        let since = (next + if self.staggered { tile } else { 0 }) % self.look_ahead;
        self.steps.min(next + (self.look_ahead - since) % self.look_ahead)
    }

    /// The step up to which tiles make their noise at the latest, when `step` is handed out.
    pub(crate) fn horizon(&self, step: usize) -> usize {
        if self.staggered { self.steps.min(step + self.look_ahead) } else { self.made(0, step + 1) }
    }

    /// The step from which on no tile's noise is made.
    pub(crate) fn unmade(&self) -> usize {
        if self.staggered { self.alignment() } else { self.made(0, self.next) }
    }

    /// The step that all tiles can be brought to, no tile being beyond it: the same for every shard.
    pub(crate) fn alignment(&self) -> usize {
        if self.next <= self.start { self.start } else { self.steps.min(self.next + self.look_ahead - 1) }
    }

    /// Records that all tiles were brought to that step.
    pub(crate) fn align(&mut self) {
        self.start = self.alignment();
    }

    /// True when one of so many tiles computes at `step`.
    pub(crate) fn is_due(&self, step: usize, tiles: usize) -> bool {
        (0..tiles.min(self.look_ahead)).any(|tile| self.made(tile, step) == step)
    }

    /// How many tiles after one that computes at `step` do not.
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
