//! Random patterns and signs for attacks. They need not be secret, so that a small generator suffices.

/// The pseudo-random generator SplitMix64.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A random number below `bound`, which is far below 2^64, so that the bias is negligible.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// A random step other than the first, if there is another.
    pub(crate) fn midway(&mut self, steps: usize) -> usize {
        if steps > 1 { 1 + self.below(steps - 1) } else { 0 }
    }

    pub(crate) fn sign(&mut self) -> f64 {
        if self.next() >> 63 == 0 { 1.0 } else { -1.0 }
    }
}
