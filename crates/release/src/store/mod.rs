//! The folder of a release: the SQLite file, its seal and its secret.

pub(crate) mod copy_detection;
pub(crate) mod database;
pub(crate) mod folder;
pub(crate) mod participants;
pub(crate) mod published;
pub(crate) mod schema;
pub(crate) mod seal;
pub(crate) mod sealed;
pub(crate) mod sql;
