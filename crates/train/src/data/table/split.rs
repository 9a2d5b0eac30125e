//! Splitting a table into training and test rows.

use std::path::Path;

use antinoise_input::in_open_unit;
use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use rand_core::Rng;

use crate::Error;
use crate::data::examples::Examples;
use crate::data::file::bad;

/// The rows of a table that are used for testing.
///
/// A share is above 0 and below 1, and is rounded to whole rows, at least one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TestPart<'a> {
    /// The rows of another file of the same format, with the same columns.
    File(&'a Path),
    /// The last rows: this share of all. Of a file that is sorted by class or by time, these are not like the
    /// other rows.
    Last(f64),
    /// This share of all rows, drawn without replacement from the public `seed`. The other rows keep their
    /// order, so that one pass over them can follow a stream.
    Drawn {
        /// The share of all rows.
        share: f64,
        /// What the draw is a function of, in addition to the number of rows.
        seed: u64,
    },
}

/// The training and the test rows of the table at `path`.
pub(super) fn split(path: &Path, all: Examples, test: TestPart) -> Result<(Examples, Examples), Error> {
    let (TestPart::Last(share) | TestPart::Drawn { share, .. }) = test else {
        unreachable!("the rows of another file need no split")
    };
    let count = (in_open_unit("test_share", share)? * all.len() as f64).round().max(1.0) as usize;
    if count >= all.len() {
        let must_be = "rows enough to train on and to test with";
        return Err(bad(path, format!("{} rows, of which {count} to test with", all.len()), must_be));
    }
    let tested = match test {
        TestPart::Drawn { seed, .. } => drawn(all.len(), count, seed)?,
        _ => (0..all.len()).map(|row| row >= all.len() - count).collect(),
    };
    let part = |of_test: bool| {
        let rows: Vec<usize> = (0..all.len()).filter(|&row| tested[row] == of_test).collect();
        all.selected(&rows)
    };
    Ok((part(false), part(true)))
}

/// Which of `rows` rows are among the `count` that are drawn, every set of `count` rows with the same
/// probability.
fn drawn(rows: usize, count: usize, seed: u64) -> Result<Vec<bool>, Error> {
    let run = RunId::new("test rows")?;
    let mut random = KeyedRng::new(&Key::from_seed_insecure(seed), &run, Purpose::DataOrder, 0);
    let mut left = count;
    Ok((0..rows)
        .map(|row| {
            let open = (rows - row) as u128;
            let is_drawn = ((u128::from(random.next_u64()) * open) >> 64) < left as u128;
            left -= usize::from(is_drawn);
            is_drawn
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_drawn_equally_often_and_a_seed_draws_the_same_rows() {
        let mut times = [0u32; 20];
        for seed in 0..4000 {
            let tested = drawn(20, 5, seed).unwrap();
            assert_eq!(tested.iter().filter(|&&tested| tested).count(), 5);
            assert_eq!(tested, drawn(20, 5, seed).unwrap());
            times.iter_mut().zip(tested).for_each(|(times, tested)| *times += u32::from(tested));
        }
        // 1000 are expected, with a standard deviation of 27.
        assert!(times.iter().all(|times| (870..1130).contains(times)), "{times:?}");
    }
}
