//! Tables of counts by several attributes, and the maps between them.
//!
//! A table is a set A of attributes, in their order, with a cell for each combination of their classes, the
//! last attribute varying fastest. The empty set has one cell, the total. Of k attributes asked for at once,
//! all smaller sets have tables too.

use std::collections::HashMap;

/// The tables of a query for marginals.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tables {
    /// Number of classes of each attribute.
    sizes: Vec<usize>,
    /// The tables, smaller sets first.
    pub(crate) tables: Vec<Table>,
    /// For each table of k attributes, the indices of the tables of its 2^k subsets: bit b of the place is
    /// set if the subset has the b-th attribute.
    pub(crate) subsets: Vec<Vec<usize>>,
    /// For each table, the larger tables that contain it, with its place among their subsets.
    pub(crate) supersets: Vec<Vec<(usize, usize)>>,
}

/// The table of a set of attributes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    /// The attributes, in increasing order.
    pub(crate) attributes: Vec<usize>,
    /// N_A, the number of cells.
    pub(crate) cells: usize,
    /// Its first cell among those of all tables.
    pub(crate) first: usize,
    /// Whether the table is published.
    pub(crate) is_asked: bool,
}

/// Number of tables for `attributes` attributes with tables of up to `most` of them.
pub(crate) fn count(attributes: usize, most: usize) -> usize {
    let mut of_size = 1usize;
    (0..=most.min(attributes)).fold(0usize, |sum, size| {
        let sum = sum.saturating_add(of_size);
        of_size = of_size.saturating_mul(attributes - size) / (size + 1);
        sum
    })
}

/// Number of cells of all tables of up to `most` attributes, or `usize::MAX` if it is larger.
pub(crate) fn cells(sizes: &[usize], most: usize) -> usize {
    // Elementary symmetric polynomials of the sizes.
    let mut of_count = vec![0usize; most + 1];
    of_count[0] = 1;
    for size in sizes {
        for count in (1..=most).rev() {
            of_count[count] = of_count[count].saturating_add(of_count[count - 1].saturating_mul(*size));
        }
    }
    of_count.into_iter().fold(0, usize::saturating_add)
}

impl Tables {
    /// The tables of attributes with `sizes` classes, of which those of `ways` attributes are published.
    pub(crate) fn new(sizes: Vec<usize>, ways: &[usize]) -> Self {
        let most = ways.iter().copied().max().unwrap_or(0);
        let mut sets: Vec<u32> =
            (0..1u32 << sizes.len()).filter(|set| set.count_ones() as usize <= most).collect();
        // Of one size, sets with earlier attributes first.
        sets.sort_by_key(|set| (set.count_ones(), std::cmp::Reverse(set.reverse_bits())));
        let places: HashMap<u32, usize> = sets.iter().copied().zip(0..).collect();
        let mut first = 0;
        let table = |set: &u32| {
            let attributes: Vec<usize> = (0..sizes.len()).filter(|at| set >> at & 1 == 1).collect();
            let cells = attributes.iter().map(|at| sizes[*at]).product();
            let is_asked = ways.contains(&attributes.len());
            first += cells;
            Table { attributes, cells, first: first - cells, is_asked }
        };
        let tables = sets.iter().map(table).collect();
        let of_set = |set: &u32| {
            let mut parts: Vec<usize> = submasks(*set).map(|part| places[&part]).collect();
            parts.reverse();
            parts
        };
        let subsets: Vec<Vec<usize>> = sets.iter().map(of_set).collect();
        let mut supersets = vec![Vec::new(); sets.len()];
        for (table, parts) in subsets.iter().enumerate() {
            let smaller = parts.iter().enumerate().filter(|(_, part)| **part != table);
            smaller.for_each(|(place, part)| supersets[*part].push((table, place)));
        }
        Self { sizes, tables, subsets, supersets }
    }

    /// N_B / N_A, for a subset B of table A.
    pub(crate) fn share(&self, part: usize, table: usize) -> f64 {
        self.tables[part].cells as f64 / self.tables[table].cells as f64
    }

    /// The numbers of classes of a table's attributes.
    pub(crate) fn sizes_of(&self, table: usize) -> Vec<usize> {
        self.tables[table].attributes.iter().map(|at| self.sizes[*at]).collect()
    }

    /// The product over `table`'s attributes of 1 - 1/n: the squared norm of a row's residual.
    pub(crate) fn residual(&self, table: usize) -> f64 {
        self.tables[table].attributes.iter().map(|at| 1.0 - 1.0 / self.sizes[*at] as f64).product()
    }

    /// The cell of a row of these classes in each table, among those of all tables.
    pub(crate) fn cells_of<'t>(&'t self, classes: &'t [usize]) -> impl Iterator<Item = usize> + 't {
        self.tables.iter().map(|table| {
            let cell = table.attributes.iter().fold(0, |cell, at| cell * self.sizes[*at] + classes[*at]);
            table.first + cell
        })
    }

    /// For each cell of the table `from`, the cell of the table `to` into which it falls, where the
    /// attributes of `to` are among those of `from`.
    pub(crate) fn projection(&self, from: usize, to: usize) -> Vec<usize> {
        let (mut places, kept) = (vec![0usize], &self.tables[to].attributes);
        for attribute in &self.tables[from].attributes {
            let (size, is_kept) = (self.sizes[*attribute], kept.contains(attribute));
            let of_class = |place: usize, class: usize| if is_kept { place * size + class } else { place };
            places = places
                .into_iter()
                .flat_map(|place| (0..size).map(move |class| of_class(place, class)))
                .collect();
        }
        places
    }

    /// Subtracts, along each attribute of `table`, the mean over its classes.
    pub(crate) fn center(&self, table: usize, values: &mut [f64]) {
        let mut stride = values.len();
        for attribute in &self.tables[table].attributes {
            let size = self.sizes[*attribute];
            stride /= size;
            for block in values.chunks_mut(size * stride) {
                for at in 0..stride {
                    let sum: f64 = block[at..].iter().step_by(stride).sum();
                    block[at..].iter_mut().step_by(stride).for_each(|value| *value -= sum / size as f64);
                }
            }
        }
    }

    /// The classes of a cell of `table`, one for each of its attributes.
    pub(crate) fn classes(&self, table: usize, mut cell: usize) -> Vec<(usize, usize)> {
        let mut classes = Vec::new();
        for attribute in self.tables[table].attributes.iter().rev() {
            classes.push((*attribute, cell % self.sizes[*attribute]));
            cell /= self.sizes[*attribute];
        }
        classes.reverse();
        classes
    }
}

/// The subsets of a set of bits, itself first and the empty set last.
fn submasks(set: u32) -> impl Iterator<Item = u32> {
    let next = move |part: &u32| part.checked_sub(1).map(|part| part & set);
    std::iter::successors(Some(set), next)
}
