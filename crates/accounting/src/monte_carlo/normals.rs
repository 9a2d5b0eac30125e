//! Random numbers for simulation.

/// Normal variables from SplitMix64: seeded simulation, nothing that anybody's privacy hangs on.
pub(crate) struct Normals {
    state: u64,
    spare: Option<f64>,
}

impl Normals {
    pub fn new(seed: u64, direction: u64, chunk: u64) -> Self {
        let mut mixer = Self { state: seed, spare: None };
        let start = mixer.bits() ^ (direction << 63) ^ chunk.wrapping_mul(0xd1b5_4a32_d192_ed03);
        mixer.state = start;
        mixer.state = mixer.bits();
        mixer
    }

    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform on (0, 1].
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Uniform on 0..bins, to within bins / 2^53.
    pub fn below(&mut self, bins: usize) -> usize {
        ((self.bits() >> 11) as f64 / (1u64 << 53) as f64 * bins as f64) as usize
    }

    pub fn next(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        self.spare = Some(radius * sin);
        radius * cos
    }
}
