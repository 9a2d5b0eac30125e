//! Reports: HTML files that need no network.

pub mod frame;
