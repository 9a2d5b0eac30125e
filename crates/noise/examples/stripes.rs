//! What a shard of narrow ranges costs, beside one range of as many coordinates: `stripes OUTPUTS`, on one thread.
//!
//! Stripes are the columns of a tensor-parallel shard: of each row of 8 times their width.

use antinoise_mechanism::Recursion;
use antinoise_noise::{Error, Shard, StreamBuilder, bench};

type Time = fn(Recursion, usize, &dyn Fn(StreamBuilder) -> StreamBuilder) -> Result<f64, Error>;

fn main() -> Result<(), Error> {
    let outputs =
        std::env::args().nth(1).map_or(1_000_000, |text| text.parse().expect("OUTPUTS: a whole number"));
    let plain: Time = |recursion, dim, how| Ok(bench::step(recursion, dim, how)?.ns_per_coordinate);
    let on_grid: Time = |recursion, dim, how| Ok(bench::release(recursion, dim, how)?.ns_per_coordinate);
    let blt = Recursion::Blt { scale: vec![0.1; 4], decay: vec![0.9; 4] };
    for (name, time) in [("plain", plain), ("on a grid", on_grid)] {
        let whole = time(blt.clone(), outputs, &|builder| builder.threads(1))?;
        println!("BLT of 4 buffers, {name}: {whole:.2} ns a coordinate in one range");
        for width in [1, 8, 16, 64, 256, 1024] {
            let rows = outputs as u64 / width;
            // Off every boundary.
            let stripe = |row: u64| 8 * width * row + 3..8 * width * row + 3 + width;
            let shard = (0..rows).map(stripe).fold(Shard::default(), Shard::and_range);
            let dim = (8 * width * rows) as usize + 3;
            let time = time(blt.clone(), dim, &|builder| builder.threads(1).shard(shard.clone()))?;
            println!("    stripes of {width}: {time:.2} ns, {:.2} times that", time / whole);
        }
    }
    Ok(())
}
