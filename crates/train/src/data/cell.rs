//! Cells of tables.

/// Whether a cell holds one of the usual marks of a missing value.
pub(super) fn is_missing(cell: &str) -> bool {
    ["", "NA", "N/A", "NaN", "nan", "null", "NULL"].contains(&cell)
}
