//! The cells of the tables of marginals to which a row adds, by the text of its categories.

use std::collections::HashMap;

use crate::Settings;
use crate::design::layout::{Layout, Part};
use crate::queries::attribute::{Attribute, Classes};

/// Reads the categories of rows, for all queries for marginals.
#[derive(Debug, Default)]
pub(crate) struct Categories {
    /// The columns that are read.
    pub(crate) columns: Vec<String>,
    queries: Vec<OfQuery>,
}

/// Reads the categories of one query.
#[derive(Debug)]
struct OfQuery {
    part: Part,
    finders: Vec<Finder>,
    /// The classes of the current row.
    classes: Vec<usize>,
}

/// Finds the class of a cell.
#[derive(Debug)]
struct Finder {
    /// The column, among those that are read.
    column: usize,
    classes: Found,
}

#[derive(Debug)]
enum Found {
    Name(HashMap<String, usize>),
    Bucket(Vec<f64>),
}

impl Categories {
    pub(crate) fn new(settings: &Settings, layout: &Layout) -> Self {
        let columns: Vec<String> = settings.categories().into_iter().map(String::from).collect();
        let of_query = settings.queries.iter().filter(|(query, _)| !query.attributes().is_empty());
        let queries = of_query.map(|(query, _)| {
            let finders = query.attributes().iter().map(|attribute| Finder::new(attribute, &columns));
            let finders: Vec<Finder> = finders.collect();
            OfQuery { part: layout.part_of(query).clone(), classes: vec![0; finders.len()], finders }
        });
        let queries = queries.collect();
        Self { columns, queries }
    }

    /// Appends the cells of a row of `key` to `added`, with its number of rows, 1, which
    /// [`Layout::encode`] converts to points; the index of the column whose cell is in
    /// no class as the error. `cells`: the text of each column.
    pub(crate) fn row(
        &mut self,
        key: usize,
        cells: &[&str],
        added: &mut Vec<(usize, i64)>,
    ) -> Result<(), usize> {
        for OfQuery { part, finders, classes } in &mut self.queries {
            for (class, finder) in classes.iter_mut().zip(finders) {
                *class = finder.class(cells[finder.column]).ok_or(finder.column)?;
            }
            let marginals = part.marginals().expect("the part of marginals has tables");
            added.extend(marginals.tables.cells_of(classes).map(|cell| (part.cell(key, cell), 1)));
        }
        Ok(())
    }
}

impl Finder {
    fn new(attribute: &Attribute, columns: &[String]) -> Self {
        let column = columns.iter().position(|column| *column == attribute.column);
        let column = column.expect("the settings list the columns of all attributes");
        let classes = match &attribute.classes {
            Classes::Names(names) => Found::Name(names.iter().cloned().zip(0..).collect()),
            Classes::Edges(edges) => Found::Bucket(edges.clone()),
        };
        Self { column, classes }
    }

    /// The class of a cell, if it has one.
    fn class(&self, cell: &str) -> Option<usize> {
        match &self.classes {
            Found::Name(names) => names.get(cell).copied(),
            Found::Bucket(edges) => {
                let number = cell.trim().parse().ok().filter(|number: &f64| !number.is_nan())?;
                Some(edges.partition_point(|edge| *edge <= number))
            }
        }
    }
}
