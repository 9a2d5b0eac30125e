//! What a shard of narrow ranges costs, beside one range of as many coordinates: `stripes OUTPUTS`, on one thread.
//!
//! Stripes are the columns of a tensor-parallel shard: of each row of about 8 times their width, wherever the row starts.

use antinoise_mechanism::Recursion;
use antinoise_noise::{Error, Shard, StreamBuilder, bench};

type Time = fn(Recursion, usize, &dyn Fn(StreamBuilder) -> StreamBuilder) -> Result<f64, Error>;

fn main() -> Result<(), Error> {
    let outputs =
        std::env::args().nth(1).map_or(1_000_000, |text| text.parse().expect("OUTPUTS: a whole number"));
    let plain: Time = |recursion, dim, how| Ok(bench::step(recursion, dim, how)?.ns_per_coordinate);
    let on_grid: Time = |recursion, dim, how| Ok(bench::release(recursion, dim, how)?.ns_per_coordinate);
    let taps = (0..16).map(|i| 1.0 / (1 + i) as f64).collect();
    let recursions = [
        ("independent", Recursion::Independent),
        ("BLT of 4 buffers", Recursion::Blt { scale: vec![0.1; 4], decay: vec![0.9; 4] }),
        ("16 bands", Recursion::AutoRegressive { taps }),
    ];
    for (release, time) in [("plain", plain), ("on a grid", on_grid)] {
        for (name, recursion) in &recursions {
            let whole = time(recursion.clone(), outputs, &|builder| builder.threads(1))?;
            println!("{name}, {release}: {whole:.4} ns a coordinate in one range");
            for width in [1, 8, 9, 12, 16, 32, 64, 256, 1024] {
                let rows = outputs as u64 / width;
                let times = [(8 * width, 0), (8 * width, 3), (8 * width, 29), (8 * width + 5, 0)].map(
                    |(stride, start)| {
                        let stripe = |row: u64| stride * row + start..stride * row + start + width;
                        let shard = (0..rows).map(stripe).fold(Shard::default(), Shard::and_range);
                        let dim = (stride * rows + start) as usize;
                        let time =
                            time(recursion.clone(), dim, &|builder| builder.threads(1).shard(shard.clone()))?;
                        Ok::<f64, Error>(time)
                    },
                );
                let [at_0, at_3, at_29, any] = times;
                println!("    stripes of {width:4}: {:.4} {:.4} {:.4} {:.4}", at_0?, at_3?, at_29?, any?);
            }
        }
    }
    Ok(())
}
