//! Reading the rows of the table of participations.

use std::path::Path;

use rusqlite::Connection;

use crate::{Error, Result};

/// Calls `each` for every participation (user, step), user by user, in the order of steps.
pub(crate) fn read_rows(
    database: &Connection,
    path: &Path,
    mut each: impl FnMut(&str, usize) -> Result<()>,
) -> Result<()> {
    let failed = Error::database(path);
    let all = "SELECT user, step FROM participations ORDER BY user, step";
    let mut statement = database.prepare(all).map_err(&failed)?;
    let mut rows = statement.query([]).map_err(&failed)?;
    while let Some(row) = rows.next().map_err(&failed)? {
        let user = row.get_ref(0).map_err(&failed)?;
        let user = user.as_str().map_err(|error| Error::damaged(path, error))?;
        each(user, row.get::<_, u32>(1).map_err(&failed)? as usize)?;
    }
    Ok(())
}
