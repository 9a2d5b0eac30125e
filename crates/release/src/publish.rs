//! A period's noise, once, and what is published of it.
//!
//! The data reach what is published through r_t = g_t + (C^-1 Z)_t alone: whole points, g_t the frozen increments and the noise a function of key
//! and period. Everything after that is a function of r_1, ..., r_t. Whatever happens before the transaction ends, the same r_t is made again.

use rusqlite::{Transaction, params};

use crate::state::{Figure, Published, Waiting, bytes};
use crate::{Error, Query, Release, Result};

/// The quantile of the standard normal above which 2.5% are.
const QUANTILE: f64 = 1.959_963_984_540_054;

/// What a query remembers from period to period, by its name in the database.
struct Memory {
    name: String,
    cells: Vec<i64>,
}

/// A query's figures of a period, in the order of its cells: unrounded values.
struct Answers<'q> {
    query: &'q Query,
    /// In the query's unit.
    values: Vec<f64>,
    deviation: f64,
}

impl Release {
    /// Publishes every period that was frozen and not yet published, in their order.
    ///
    /// A period's figures are made once. If the process is killed before they are on the disk, the same ones are made again, bit for bit.
    ///
    /// # Errors
    /// When they cannot be written; what was published before remains.
    pub fn publish(&mut self) -> Result<Vec<Published>> {
        self.publish_while(|| true)
    }

    /// The same as long as `go_on` says, which is asked before each period.
    ///
    /// # Errors
    /// As [`Release::publish`].
    pub fn publish_while(&mut self, mut go_on: impl FnMut() -> bool) -> Result<Vec<Published>> {
        let (mut errors, mut published) = (Vec::new(), Vec::new());
        while go_on()
            && let Some(waiting) = self.state.waiting(self.design.layout.cells())?
        {
            if errors.is_empty() {
                let queries = self.settings.queries.iter();
                errors = queries.map(|(query, _)| self.design.errors(query)).collect::<Result<Vec<_>>>()?;
            }
            let deviations: Vec<f64> = errors.iter().map(|errors| errors[waiting.step]).collect();
            published.extend(self.publish_one(waiting, &deviations)?);
        }
        Ok(published)
    }

    fn publish_one(&mut self, waiting: Waiting, deviations: &[f64]) -> Result<Vec<Published>> {
        let noisy = self.noisy(&waiting)?;
        let (sum, mut memories) = self.running_sum(&noisy)?;
        let mut published = Vec::new();
        for (index, &deviation) in deviations.iter().enumerate() {
            let query = &self.settings.queries[index].0;
            let values = self.values(query, waiting.step, &noisy, &sum, &mut memories)?;
            let answers = Answers { query, values, deviation };
            self.told(&waiting, answers, &mut memories, &mut published)?;
        }
        let forgotten = waiting.step as i64 - self.longest_window() as i64;
        self.state.change(|change| {
            let sql = "UPDATE periods SET frozen = NULL, noisy = ? WHERE step = ?";
            change.execute(sql, params![bytes(&noisy), waiting.step as i64])?;
            change.execute("UPDATE periods SET noisy = NULL WHERE step = ?", [forgotten])?;
            write(change, &memories, &published)
        })?;
        self.folder.save_noise(&self.noise)?;
        Ok(published)
    }

    /// r_t.
    fn noisy(&mut self, waiting: &Waiting) -> Result<Vec<i64>> {
        if self.noise.step() != waiting.step {
            // An earlier attempt made the noise and could not write.
            self.noise.seek(waiting.step)?;
        }
        let mut noise = vec![0i32; waiting.frozen.len()];
        self.noise.next_points_into(&mut noise)?;
        let added = |(frozen, noise): (&i64, i32)| frozen.checked_add(i64::from(noise));
        let noisy: Option<Vec<i64>> = waiting.frozen.iter().zip(noise).map(added).collect();
        noisy.ok_or_else(too_large)
    }

    /// r_1 + ... + r_t.
    fn running_sum(&self, noisy: &[i64]) -> Result<(Vec<i64>, Vec<Memory>)> {
        let before = self.state.running("sum", noisy.len())?;
        let sum: Option<Vec<i64>> = before.iter().zip(noisy).map(|(sum, r)| sum.checked_add(*r)).collect();
        let cells = sum.ok_or_else(too_large)?;
        Ok((cells.clone(), vec![Memory { name: "sum".into(), cells }]))
    }

    /// What is published of a query before it is rounded.
    fn values(
        &self,
        query: &Query,
        step: usize,
        noisy: &[i64],
        sum: &[i64],
        memories: &mut Vec<Memory>,
    ) -> Result<Vec<f64>> {
        let layout = &self.design.layout;
        let part = layout.part(&query.measure());
        let unit = part.unit(self.design.spacing);
        let cells = part.cell(0, 0)..part.cell(layout.keys, 0);
        let in_unit = |points: &[i64]| points.iter().map(|&points| points as f64 * unit).collect();
        match query {
            Query::Counts | Query::Sum { .. } | Query::Histogram { .. } => Ok(in_unit(&sum[cells])),
            Query::Window { width } => {
                let name = query.to_string();
                let mut window = self.state.running(&name, cells.len())?;
                window.iter_mut().zip(&noisy[cells.clone()]).for_each(|(window, r)| *window += r);
                if let Some(left) = step.checked_sub(*width) {
                    let left = self.state.noisy(left, noisy.len())?;
                    window.iter_mut().zip(&left[cells]).for_each(|(window, r)| *window -= r);
                }
                let values = in_unit(&window);
                memories.push(Memory { name, cells: window });
                Ok(values)
            }
            Query::Decay { factor } => {
                let name = query.to_string();
                let before = self.state.running(&name, cells.len())?;
                let weighted = |(before, r): (i64, &i64)| factor * f64::from_bits(before as u64) + *r as f64;
                let decayed: Vec<f64> = before.into_iter().zip(&noisy[cells]).map(weighted).collect();
                let cells = decayed.iter().map(|value| value.to_bits() as i64).collect();
                memories.push(Memory { name, cells });
                Ok(decayed.into_iter().map(|value| value * unit).collect())
            }
        }
    }

    /// The rows of the table: rounded, raised where that was asked for, with their intervals.
    fn told(
        &self,
        waiting: &Waiting,
        answers: Answers<'_>,
        memories: &mut Vec<Memory>,
        published: &mut Vec<Published>,
    ) -> Result<()> {
        let Answers { query, values, deviation } = answers;
        let measure = query.measure();
        let buckets = measure.buckets();
        let mut largest = match self.settings.monotone && query.is_monotone() {
            true => Some(self.state.running(&format!("largest {query}"), values.len())?),
            false => None,
        };
        for (cell, value) in values.into_iter().enumerate() {
            let mut interval = Interval::new(value, deviation, query.is_whole());
            if self.settings.non_negative && query.is_non_negative() {
                interval.raise(0.0);
            }
            if let Some(largest) = &mut largest {
                interval.raise(f64::from_bits(largest[cell] as u64));
                largest[cell] = interval.value.to_bits() as i64;
            }
            let figure = |x: f64| if query.is_whole() { Figure::Whole(x as i64) } else { Figure::Real(x) };
            published.push(Published {
                period: waiting.period.clone(),
                key: self.settings.keys[cell / buckets].clone(),
                value: figure(interval.value),
                lower: figure(interval.lower),
                upper: figure(interval.upper),
                query: query.to_string(),
                bucket: measure.bucket_name(cell % buckets),
            });
        }
        memories.extend(largest.map(|cells| Memory { name: format!("largest {query}"), cells }));
        Ok(())
    }

    /// How many periods' noisy increments are still needed.
    fn longest_window(&self) -> usize {
        let width = |query: &Query| match query {
            Query::Window { width } => *width,
            _ => 0,
        };
        self.settings.queries.iter().map(|(query, _)| width(query)).max().unwrap_or(0)
    }
}

/// A figure and its 95% interval.
struct Interval {
    value: f64,
    lower: f64,
    upper: f64,
}

impl Interval {
    /// Of a truth that is whole, the interval's ends are: the whole numbers in it are the same.
    fn new(value: f64, deviation: f64, is_whole: bool) -> Self {
        let (lower, upper) = (value - QUANTILE * deviation, value + QUANTILE * deviation);
        if is_whole {
            // Noise so small that no whole number is in it is still noise about one.
            let value = value.round_ties_even();
            Self { value, lower: lower.ceil().min(value), upper: upper.floor().max(value) }
        } else {
            Self { value, lower, upper }
        }
    }

    /// The truth is not below `least`, or that is what is published.
    fn raise(&mut self, least: f64) {
        self.value = self.value.max(least);
        self.upper = self.upper.max(self.value);
        self.lower = self.lower.max(0.0).min(self.value);
    }
}

fn write(change: &Transaction<'_>, memories: &[Memory], published: &[Published]) -> rusqlite::Result<()> {
    for Memory { name, cells } in memories {
        change.execute("INSERT OR REPLACE INTO running VALUES (?, ?)", params![name, bytes(cells)])?;
    }
    let mut insert = change.prepare("INSERT INTO published VALUES (?, ?, ?, ?, ?, ?, ?)")?;
    published.iter().try_for_each(|row| {
        let Published { period, key, value, lower, upper, query, bucket } = row;
        insert.execute(params![period, key, value, lower, upper, query, bucket]).map(|_| ())
    })
}

fn too_large() -> Error {
    Error::invalid("running sum", "more than 64 bits count", "of fewer rows or periods")
}
