//! Publication: adds a period's noise, once, and publishes its figures.
//!
//! Publications depend on the data only through r_t = g_t + (C^-1 Z)_t: whole points, where g_t are the
//! frozen increments and the noise is a function of key and period. Everything after that is a function of
//! r_1, ..., r_t. If anything fails before the transaction ends, a retry makes the same r_t.

use std::sync::Arc;

use rusqlite::{Transaction, params};

use crate::design::estimate::{Estimate, Estimator};
use crate::design::plan::Design;
use crate::store::database::{Waiting, bytes};
use crate::store::published::{Figure, Published};
use crate::store::sealed::Part;
use crate::{Error, Query, Release, Result};

/// The state of a query from period to period, with its name in the database.
struct Memory {
    name: String,
    cells: Vec<i64>,
}

/// A query and, for a release of a fixed number of periods, the standard deviation in points of a cell of its
/// linear map after each period.
struct PreparedQuery<'q> {
    reading: Estimator<'q>,
    noise: Option<Vec<f64>>,
}

/// A period's noisy increments, and their sum with those of all earlier periods.
struct Points<'p> {
    step: usize,
    noisy: &'p [i64],
    sum: &'p [i64],
}

impl Release {
    /// Publishes every frozen period that is not yet published, in order.
    ///
    /// A period's noise is drawn once: if the process is killed before the figures are on disk, a retry makes
    /// the same figures, bit for bit.
    ///
    /// # Errors
    /// If they cannot be written; earlier publications remain.
    pub fn publish(&mut self) -> Result<Vec<Published>> {
        self.publish_while(|| true)
    }

    /// As [`Release::publish`], while `go_on` returns true; it is called before each period.
    ///
    /// # Errors
    /// As [`Release::publish`].
    pub fn publish_while(&mut self, mut go_on: impl FnMut() -> bool) -> Result<Vec<Published>> {
        let (chain, queries) = (Arc::clone(&self.chain), self.settings.queries.clone());
        let Design { layout, spacing, .. } = chain.first();
        let (mut asked, mut published) = (Vec::new(), Vec::new());
        while go_on()
            && let Some(waiting) = self.state.waiting(layout.cells())?
        {
            if asked.is_empty() {
                for (query, _) in &queries {
                    let reading = Estimator::new(query, layout, *spacing);
                    asked.push(PreparedQuery { reading, noise: self.all_noise(query)? });
                }
            }
            published.extend(self.publish_one(waiting, &asked)?);
        }
        Ok(published)
    }

    /// Standard deviations of a cell of the query's linear map after each period; `None` for an open-ended
    /// release, which computes them one by one.
    fn all_noise(&self, query: &Query) -> Result<Option<Vec<f64>>> {
        match self.settings.segments {
            Some(_) => Ok(None),
            None => self.chain.first().noise_in_points(query).map(Some),
        }
    }

    fn publish_one(&mut self, waiting: Waiting, asked: &[PreparedQuery<'_>]) -> Result<Vec<Published>> {
        let noisy = self.noisy(&waiting)?;
        let (sum, mut memories) = self.running_sum(&noisy)?;
        let points = Points { step: waiting.step, noisy: &noisy, sum: &sum };
        let mut published = Vec::new();
        for PreparedQuery { reading, noise } in asked {
            let noise = match noise {
                Some(noise) => noise[waiting.step],
                None => self.chain.noise_in_points(reading.query, waiting.step)?,
            };
            let figures = self.figures(reading, &points, noise, &mut memories)?;
            self.tell(&waiting, reading, figures, &mut memories, &mut published)?;
        }
        // Increments that no later window needs are deleted; without windows, those of this period.
        let forgotten = waiting.step.checked_sub(self.longest_window());
        let mut changed = vec![Part::Period(waiting.step), Part::Running, Part::Published];
        changed.extend(forgotten.filter(|step| *step < waiting.step).map(Part::Period));
        self.state.change(&changed, |change| {
            let sql = "UPDATE periods SET frozen = NULL, noisy = ? WHERE step = ?";
            change.execute(sql, params![bytes(&noisy), waiting.step as i64])?;
            let sql = "UPDATE periods SET noisy = NULL WHERE step = ?";
            change.execute(sql, [forgotten.map_or(-1, |step| step as i64)])?;
            write(change, &memories, &published)
        })?;
        self.keep_noise(waiting.step + 1)?;
        Ok(published)
    }

    /// The noisy increments r_t.
    fn noisy(&mut self, waiting: &Waiting) -> Result<Vec<i64>> {
        let place = self.chain.place(waiting.step);
        if self.segment != place.segment {
            self.enter(place.segment)?;
        }
        let stream = self.noise()?;
        if stream.step() != place.step {
            // An earlier attempt made the noise and could not write: nobody saw its release, and the frozen
            // sum is the same.
            stream.seek_and_reuse_noise_unprotected(place.step)?;
        }
        let mut noise = vec![0i32; waiting.frozen.len()];
        stream.next_points_into(&mut noise)?;
        let added = |(frozen, noise): (&i64, i32)| frozen.checked_add(i64::from(noise));
        let noisy: Option<Vec<i64>> = waiting.frozen.iter().zip(noise).map(added).collect();
        noisy.ok_or_else(too_large)
    }

    /// The sum r_1 + ... + r_t.
    fn running_sum(&self, noisy: &[i64]) -> Result<(Vec<i64>, Vec<Memory>)> {
        let before = self.state.running("sum", noisy.len())?;
        let sum: Option<Vec<i64>> = before.iter().zip(noisy).map(|(sum, r)| sum.checked_add(*r)).collect();
        let cells = sum.ok_or_else(too_large)?;
        Ok((cells.clone(), vec![Memory { name: "sum".into(), cells }]))
    }

    /// The figures of a query before they are raised (`non_negative`, `monotone`): those of the first key,
    /// then of the second, and so on.
    fn figures(
        &self,
        reading: &Estimator<'_>,
        points: &Points<'_>,
        noise: f64,
        memories: &mut Vec<Memory>,
    ) -> Result<Vec<Estimate>> {
        let keys = reading.part.keys;
        let cells = reading.part.cell(0, 0)..reading.part.cell(keys, 0);
        let increments = &points.noisy[cells.clone()];
        match reading.query {
            Query::Window { width } => {
                let name = reading.query.to_string();
                let before = self.state.running(&name, cells.len())?;
                let left = match points.step.checked_sub(*width) {
                    Some(left) => self.state.noisy(left, points.noisy.len())?[cells].to_vec(),
                    None => vec![0; before.len()],
                };
                let moved =
                    |((window, r), left): ((&i64, &i64), i64)| window.checked_add(*r)?.checked_sub(left);
                let window: Option<Vec<i64>> = before.iter().zip(increments).zip(left).map(moved).collect();
                let window = window.ok_or_else(too_large)?;
                let told = window.iter().map(|points| reading.cell(*points as f64, noise)).collect();
                memories.push(Memory { name, cells: window });
                Ok(told)
            }
            Query::Decay { factor } => {
                let name = reading.query.to_string();
                let before = self.state.running(&name, cells.len())?;
                let weighted = |(before, r): (i64, &i64)| factor * f64::from_bits(before as u64) + *r as f64;
                let decayed: Vec<f64> = before.into_iter().zip(increments).map(weighted).collect();
                let cells = decayed.iter().map(|value| value.to_bits() as i64).collect();
                memories.push(Memory { name, cells });
                Ok(decayed.into_iter().map(|points| reading.cell(points, noise)).collect())
            }
            _ => Ok((0..keys).flat_map(|key| reading.figures(key, points.sum, noise)).collect()),
        }
    }

    /// Appends the rows of the published table: figures, raised if the settings say so, with their intervals.
    fn tell(
        &self,
        waiting: &Waiting,
        reading: &Estimator<'_>,
        figures: Vec<Estimate>,
        memories: &mut Vec<Memory>,
        published: &mut Vec<Published>,
    ) -> Result<()> {
        let (query, names) = (reading.query.published_name(), &reading.names);
        let remembered = format!("largest {query}");
        let mut largest = match self.settings.monotone && reading.query.is_monotone() {
            true => Some(self.state.running(&remembered, figures.len())?),
            false => None,
        };
        for (at, Estimate { mut interval, is_whole, is_non_negative, is_monotone }) in
            figures.into_iter().enumerate()
        {
            if self.settings.non_negative && is_non_negative {
                interval.raise(0.0);
            }
            if let Some(largest) = largest.as_mut().filter(|_| is_monotone) {
                interval.raise(f64::from_bits(largest[at] as u64));
                largest[at] = interval.value.to_bits() as i64;
            }
            let figure = |x: f64| if is_whole { Figure::Whole(x as i64) } else { Figure::Real(x) };
            published.push(Published {
                period: waiting.period.clone(),
                key: if reading.query.is_of_users() {
                    String::new()
                } else {
                    self.settings.keys[at / names.len()].clone()
                },
                value: figure(interval.value),
                lower: figure(interval.lower),
                upper: figure(interval.upper),
                query: query.clone(),
                bucket: names[at % names.len()].clone(),
            });
        }
        memories.extend(largest.map(|cells| Memory { name: remembered, cells }));
        Ok(())
    }

    /// Number of periods whose noisy increments are still needed.
    fn longest_window(&self) -> usize {
        let width = |query: &Query| match query {
            Query::Window { width } => *width,
            _ => 0,
        };
        self.settings.queries.iter().map(|(query, _)| width(query)).max().unwrap_or(0)
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
    Error::invalid("running sum", "beyond 64 bits", "a sum over fewer rows or periods")
}
