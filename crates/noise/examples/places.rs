//! The cost of a row in several slices compared with a row in one slice: `places DIM`, on one thread.

use std::time::Instant;

use antinoise_mechanism::Recursion;
use antinoise_noise::{Error, Key, NoiseStream};

const STEPS: usize = 41;

fn main() -> Result<(), Error> {
    let dim = std::env::args()
        .nth(1)
        .map_or(10_000_000, |text| text.parse().expect("DIM: a whole number of at least 10000"));
    let blt = Recursion::Blt { scale: vec![0.1; 4], decay: vec![0.9; 4] };
    for (name, recursion) in [("independent", Recursion::Independent), ("BLT of 4 buffers", blt)] {
        let stream = || {
            NoiseStream::builder(recursion.clone(), STEPS, dim, 1.0)
                .threads(1)
                .build(Key::from_seed_insecure(0))
        };
        let mut row = vec![0.0; dim];
        let mut places = [1, 100, 10_000].map(|count| {
            (0..count).map(|i| vec![0f32; (i + 1) * dim / count - i * dim / count]).collect::<Vec<_>>()
        });
        let mut streams = [stream()?, stream()?, stream()?, stream()?];
        let mut least = [f64::INFINITY; 4];
        // In turn, so that a slow moment of the machine affects all.
        for step in 0..STEPS {
            for (i, stream) in streams.iter_mut().enumerate() {
                let mut list: Vec<&mut [f32]> = match i {
                    0 => Vec::new(),
                    _ => places[i - 1].iter_mut().map(Vec::as_mut_slice).collect(),
                };
                let start = Instant::now();
                if i == 0 {
                    stream.next_into(&mut row)?
                } else {
                    stream.next_into_slices(&mut list)?
                }
                if step > 0 {
                    least[i] = least[i].min(start.elapsed().as_secs_f64() / dim as f64 * 1e9);
                }
            }
        }
        let [one, rest @ ..] = least;
        println!("{name}: {one:.3} ns a coordinate in one place");
        for (places, time) in places.iter().zip(rest) {
            assert!(places.concat() == row, "other bits");
            println!("    in a list of {:5}: {time:.3} ns, {:.2} times that", places.len(), time / one);
        }
    }
    Ok(())
}
