//! Splitting a table into training and test rows.

use std::path::Path;

use antinoise_input::{InvalidParameter, in_open_unit};
use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use sha2::{Digest, Sha256};

use super::row::Rows;
use crate::Error;
use crate::data::draw::drawn;
use crate::data::examples::Examples;
use crate::data::file::bad;
use crate::data::users::Users;

/// The rows of a table that are used for testing.
///
/// A share is above 0 and below 1, and is rounded to whole rows, at least one. In a table with users, whole
/// users are taken instead of rows, so that no user has rows in both parts. Whether a user is taken depends
/// only on the seed and the user's name, so that one user's rows do not decide which other users are trained
/// on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TestPart<'a> {
    /// The rows of another file of the same format, with the same columns; it has no rows of users who are
    /// trained on.
    File(&'a Path),
    /// The last rows: this share of all. If the file is sorted by class or by time, they are not like the
    /// other rows. Not for tables with users: the rows of one user decide who comes last.
    Last(f64),
    /// This share of all rows, drawn without replacement from the public `seed`. The other rows keep their
    /// order, so that one pass over them can follow a stream. Each user is drawn with this probability.
    Drawn {
        /// The share of all rows.
        share: f64,
        /// The seed; with the number of rows it determines the draw.
        seed: u64,
    },
}

/// The training rows, and the test rows, of the table at `path`.
pub(super) fn split(path: &Path, all: Rows, test: TestPart) -> Result<(Rows, Examples), Error> {
    let rows = all.examples.len();
    let is_tested = tested(path, rows, all.users.as_ref(), test)?;
    let (test, train): (Vec<usize>, Vec<usize>) = (0..rows).partition(|&row| is_tested[row]);
    let users = all.users.map(|users| {
        let of = users.numbers();
        Users::new(train.iter().map(|&row| users.name(of[row])))
    });
    let trained = Rows { examples: all.examples.selected(&train), users: users.transpose()? };
    Ok((trained, all.examples.selected(&test)))
}

/// Whether each of the rows of the table at `path` is for testing.
pub(super) fn tested(
    path: &Path,
    rows: usize,
    users: Option<&Users>,
    test: TestPart,
) -> Result<Vec<bool>, Error> {
    let (TestPart::Last(share) | TestPart::Drawn { share, .. }) = test else {
        unreachable!("`TestPart::File` is read from another file and is never split")
    };
    in_open_unit("test_share", share)?;
    let (what, tested) = match (users, test) {
        (Some(users), TestPart::Drawn { seed, .. }) => ("users", drawn_users(users, share, seed)),
        (Some(_), _) => {
            let must_be =
                "drawn for a table with users: which rows come last would depend on the rows of single users";
            return Err(InvalidParameter::new("test_rows", "last", must_be).into());
        }
        (None, test) => ("rows", tested_rows(rows, share, test)?),
    };
    let (units, count) = (tested.len(), tested.iter().filter(|&&is_tested| is_tested).count());
    if count == 0 || count == units {
        let must_be = format!("enough {what} for both training and testing");
        return Err(bad(path, format!("{units} {what}, of which {count} to test with"), must_be));
    }
    Ok(match users {
        Some(users) => users.numbers().into_iter().map(|user| tested[user]).collect(),
        None => tested,
    })
}

/// Whether each of `rows` rows is for testing.
fn tested_rows(rows: usize, share: f64, test: TestPart) -> Result<Vec<bool>, Error> {
    let count = ((share * rows as f64).round().max(1.0) as usize).min(rows);
    let TestPart::Drawn { seed, .. } = test else {
        return Ok((0..rows).map(|row| row >= rows - count).collect());
    };
    let (key, run) = (Key::from_seed_insecure(seed), RunId::new("test rows")?);
    Ok(drawn(rows, count, &mut KeyedRng::new(&key, &run, Purpose::DataOrder, 0)))
}

/// Whether each user is for testing: with probability `share`, as a function of seed and name.
fn drawn_users(users: &Users, share: f64, seed: u64) -> Vec<bool> {
    let is_drawn = |user: usize| {
        let digest =
            Sha256::new().chain_update("antinoise: users to test with").chain_update(seed.to_le_bytes());
        let digest = digest.chain_update(users.name(user)).finalize();
        let number = u64::from_le_bytes(digest[..8].try_into().expect("a digest has 32 bytes"));
        // 53 bits, as a number in [0, 1).
        ((number >> 11) as f64) * 2f64.powi(-53) < share
    };
    (0..users.len()).map(is_drawn).collect()
}
