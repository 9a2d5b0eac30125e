//! Splitting a table into training and test rows.

use std::path::Path;

use antinoise_input::in_open_unit;
use antinoise_noise::{Key, KeyedRng, Purpose, RunId};

use super::row::Rows;
use crate::Error;
use crate::data::draw::drawn;
use crate::data::examples::Examples;
use crate::data::file::bad;
use crate::data::users::Users;

/// The rows of a table that are used for testing.
///
/// A share is above 0 and below 1, and is rounded to whole rows, at least one. Of a table with users, whole
/// users are taken instead of rows, so that nobody has rows in both parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TestPart<'a> {
    /// The rows of another file of the same format, with the same columns; it has none of the users that are
    /// trained on.
    File(&'a Path),
    /// The last rows: this share of all. Of a file that is sorted by class or by time, these are not like the
    /// other rows. Users are in the order of their first rows.
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

/// The training rows, and the test rows, of the table at `path`.
pub(super) fn split(path: &Path, all: Rows, test: TestPart) -> Result<(Rows, Examples), Error> {
    let (TestPart::Last(share) | TestPart::Drawn { share, .. }) = test else {
        unreachable!("the rows of another file need no split")
    };
    let rows = all.examples.len();
    let (units, what) = all.users.as_ref().map_or((rows, "rows"), |users| (users.len(), "users"));
    let count = (in_open_unit("test_share", share)? * units as f64).round().max(1.0) as usize;
    if count >= units {
        let must_be = format!("{what} enough to train on and to test with");
        return Err(bad(path, format!("{units} {what}, of which {count} to test with"), must_be));
    }
    let tested = match test {
        TestPart::Drawn { seed, .. } => {
            let run = RunId::new("test rows")?;
            drawn(
                units,
                count,
                &mut KeyedRng::new(&Key::from_seed_insecure(seed), &run, Purpose::DataOrder, 0),
            )
        }
        _ => (0..units).map(|unit| unit >= units - count).collect(),
    };
    let unit_of = all.users.as_ref().map_or_else(|| (0..rows).collect(), Users::numbers);
    let part =
        |of_test: bool| -> Vec<usize> { (0..rows).filter(|&row| tested[unit_of[row]] == of_test).collect() };
    let (train, test) = (part(false), part(true));
    let users = all.users.map(|users| Users::new(train.iter().map(|&row| users.name(unit_of[row]))));
    let trained = Rows { examples: all.examples.selected(&train), users: users.transpose()? };
    Ok((trained, all.examples.selected(&test)))
}

/// Refuses test rows, of the file at `path`, of users who are trained on.
pub(super) fn refuse_shared(path: &Path, trained: &Rows, tested: &Rows) -> Result<(), Error> {
    let (Some(trained), Some(tested)) = (&trained.users, &tested.users) else { return Ok(()) };
    let known: std::collections::HashSet<&str> = (0..trained.len()).map(|user| trained.name(user)).collect();
    match (0..tested.len()).map(|user| tested.name(user)).find(|name| known.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let must_be =
                "one of other users than those that are trained on, whose test rows no statement would cover";
            Err(bad(path, format!("with rows of the user {name:?}"), must_be))
        }
    }
}
