//! The losses by number of bands, at each target.

use std::fmt;

use antinoise_accounting::three_digits_up;
use antinoise_mechanism::design::Objective;
use antinoise_plan::{Bands, Candidate, Request};
use serde::Serialize;

use crate::output;

/// Output of `antinoise bands`.
#[derive(Debug, Serialize)]
pub struct BandSweep {
    pub examples: usize,
    pub steps: usize,
    pub delta: f64,
    pub objective: Objective,
    pub targets: Vec<Target>,
}

/// Losses at one batch size and epsilon.
#[derive(Debug, Serialize)]
pub struct Target {
    pub batch_size: usize,
    pub epsilon: f64,
    pub rows: Vec<Row>,
    /// Index of the smallest amplified loss.
    pub best: usize,
    /// Figures of other mechanisms, without amplification.
    pub against: Vec<Figures>,
    #[serde(skip)]
    pub objective: Objective,
}

#[derive(Debug, Serialize)]
pub struct Row {
    pub bands: usize,
    pub amplified: Figures,
    pub unamplified: Figures,
}

#[derive(Debug, Serialize)]
pub struct Figures {
    pub strategy: String,
    pub noise_multiplier: f64,
    pub sensitivity: f64,
    pub max_loss: f64,
    pub rms_loss: f64,
    #[serde(skip)]
    pub loss: f64,
}

impl Figures {
    fn new(candidate: &Candidate, objective: Objective) -> Self {
        Self {
            strategy: candidate.spec.to_string(),
            noise_multiplier: candidate.noise_multiplier,
            sensitivity: candidate.unit_loss.sensitivity.value,
            max_loss: candidate.max_loss,
            rms_loss: candidate.rms_loss,
            loss: candidate.objective(objective),
        }
    }
}

impl Target {
    pub fn new(request: &Request, rows: &[Bands], against: &[Candidate]) -> Self {
        let figures = |candidate: &Candidate| Figures::new(candidate, request.objective);
        let rows: Vec<Row> = rows
            .iter()
            .map(|row| Row {
                bands: row.bands,
                amplified: figures(&row.amplified),
                unamplified: figures(&row.unamplified),
            })
            .collect();
        let best = (0..rows.len()).min_by(|&i, &j| rows[i].amplified.loss.total_cmp(&rows[j].amplified.loss));
        Self {
            batch_size: request.batch_size,
            epsilon: request.epsilon,
            best: best.unwrap_or(0),
            rows,
            against: against.iter().map(figures).collect(),
            objective: request.objective,
        }
    }

    pub fn best(&self) -> Option<&Row> {
        self.rows.get(self.best)
    }

    /// The losses of independent noise.
    pub fn independent(&self) -> Option<&Row> {
        self.rows.iter().find(|row| row.bands == 1)
    }

    /// The smallest loss without amplification, over bands and other mechanisms.
    pub fn least_unamplified(&self) -> f64 {
        let bands = self.rows.iter().map(|row| row.unamplified.loss);
        bands.chain(self.against.iter().map(|other| other.loss)).fold(f64::INFINITY, f64::min)
    }
}

impl fmt::Display for BandSweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} steps, {} examples, delta {}. Losses are standard deviations of the averaged queries.",
            self.steps,
            self.examples,
            three_digits_up(self.delta)
        )?;
        self.targets.iter().try_for_each(|target| write!(f, "\n{target}"))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "epsilon {}, batch size {}\n", self.epsilon, self.batch_size)?;
        let loss = format!("{} loss", self.objective);
        let header = ["bands", "amplified: noise", &loss, "unamplified: noise", &loss, ""];
        let cells =
            |figures: &Figures| [format!("{:.4}", figures.noise_multiplier), format!("{:.6e}", figures.loss)];
        let mut rows: Vec<Vec<String>> = Vec::new();
        for (i, row) in self.rows.iter().enumerate() {
            let [sigma, loss] = cells(&row.amplified);
            let [without, its_loss] = cells(&row.unamplified);
            let mark = if i == self.best { "<- least amplified" } else { "" };
            rows.push(vec![row.bands.to_string(), sigma, loss, without, its_loss, mark.into()]);
        }
        for other in &self.against {
            let [sigma, loss] = cells(other);
            rows.push(vec![other.strategy.clone(), String::new(), String::new(), sigma, loss, String::new()]);
        }
        write!(f, "{}", output::table(&header, &rows))
    }
}
