//! The time per symbol of the character LSTM, forward and backward, on one thread.
//!
//! `cargo run --release -p antinoise-federated --example lstm_cost`

use std::time::Instant;

use antinoise_federated::Population;
use antinoise_federated::lstm::{Lstm, UserTexts};
use antinoise_federated::plays::{UserText, VOCAB_SIZE};

fn main() {
    const LENGTH: usize = 40;
    for (embedding, hidden) in [(8, 32), (16, 64), (32, 96)] {
        for sequences in [1, 8, 16] {
            let symbols: Vec<u8> = (0..sequences * LENGTH).map(|i| (i * i % VOCAB_SIZE) as u8).collect();
            let model = Lstm::new(VOCAB_SIZE, embedding, hidden).expect("sizes in range");
            let texts = vec![UserText { user: "a".into(), symbols }];
            let writers = UserTexts::new(model, texts, LENGTH).expect("symbols in range");
            let parameters: Vec<f32> = (0..model.parameters()).map(|i| (i as f32).sin() * 0.2).collect();
            let (mut memory, mut gradient) = (writers.workspace(), vec![0.0; parameters.len()]);
            let all: Vec<usize> = (0..sequences).collect();
            let once = || {
                let clock = Instant::now();
                writers.gradient(&mut memory, &parameters, 0, &all, &mut gradient).expect("a gradient");
                clock.elapsed().as_secs_f64() * 1e6 / (sequences * LENGTH) as f64
            };
            let mut times: Vec<f64> = std::iter::repeat_with(once).take(50).collect();
            times.sort_by(f64::total_cmp);
            let count = parameters.len();
            println!(
                "{count} parameters, {sequences} sequences of {LENGTH}: {:.2} us a symbol",
                times[times.len() / 4]
            );
        }
    }
}
