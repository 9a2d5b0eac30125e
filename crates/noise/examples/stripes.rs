//! The cost of a shard of narrow ranges compared with one range of the same length: `stripes OUTPUTS`, on one
//! thread.
//!
//! Stripes are the columns of a tensor-parallel shard: a part of each row, of about 1/8 of its length,
//! wherever the row starts.

use antinoise_mechanism::Recursion;
use antinoise_noise::{Error, Shard, StreamBuilder, bench};

type Time = fn(Recursion, usize, &dyn Fn(StreamBuilder) -> StreamBuilder) -> Result<f64, Error>;

fn main() -> Result<(), Error> {
    let outputs =
        std::env::args().nth(1).map_or(1_000_000, |text| text.parse().expect("OUTPUTS: a whole number"));
    let plain: Time = |recursion, dim, how| Ok(bench::step(recursion, dim, how)?.ns_per_coordinate);
    let on_grid: Time = |recursion, dim, how| Ok(bench::add_to_sum(recursion, dim, how)?.ns_per_coordinate);
    let taps = (0..16).map(|i| 1.0 / (1 + i) as f64).collect();
    let recursions = [
        ("independent", Recursion::Independent),
        ("BLT of 4 buffers", Recursion::Blt { scale: vec![0.1; 4], decay: vec![0.9; 4] }),
        ("16 bands", Recursion::AutoRegressive { taps }),
    ];
    for (arithmetic, time) in [("plain", plain), ("on a grid", on_grid)] {
        for (name, recursion) in &recursions {
            let whole = time(recursion.clone(), outputs, &|builder| builder.threads(1))?;
            println!("{name}, {arithmetic}: {whole:.2} ns a coordinate in one range; stripes, times that");
            println!("    width   aligned   odd start   across groups   any start");
            for width in [1, 8, 16, 64, 256, 1024] {
                print!("    {width:5}");
                for (stride, start) in [(8 * width, 0), (8 * width, 3), (8 * width, 29), (8 * width + 5, 0)] {
                    let stripe = |row: u64| stride * row + start..stride * row + start + width;
                    let rows = outputs as u64 / width;
                    let shard = (0..rows).map(stripe).fold(Shard::default(), Shard::and_range);
                    let how = |builder: StreamBuilder| builder.threads(1).shard(shard.clone());
                    print!(
                        "{:11.2}",
                        time(recursion.clone(), (stride * rows + start) as usize, &how)? / whole
                    );
                }
                println!();
            }
        }
    }
    Ok(())
}
