//! The promises and the progress of a release, which can be read while another process writes.

use std::path::Path;

use antinoise_accounting::PrivacyStatement;
use antinoise_plan::VerifiedPlan;

use crate::design::chain::Chain;
use crate::identity::{SETTINGS, plans};
use crate::release::read;
use crate::segments::Segment;
use crate::store::database::State;
use crate::store::folder::Folder;
use crate::words::quantity;
use crate::{Keep, Query, Result, Settings, Unit};

/// The promises and the progress of a release.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// The settings.
    pub settings: Settings,
    /// The plan; of an open-ended release, the first segment's.
    pub plan: VerifiedPlan,
    chain: Chain,
    /// Whether counts of some period were bounded and computed elsewhere.
    pub given: bool,
    /// Number of frozen periods.
    pub frozen: usize,
    /// Number of published periods.
    pub published: usize,
}

impl Status {
    /// As [`Release::errors`](crate::Release::errors).
    ///
    /// # Errors
    /// As that method.
    pub fn errors(&self, query: &Query) -> Result<Vec<f64>> {
        self.chain.errors(query)
    }

    /// As [`Release::error`](crate::Release::error).
    ///
    /// # Errors
    /// As that method.
    pub fn error(&self, query: &Query, period: usize) -> Result<f64> {
        self.chain.error(query, period)
    }

    /// For marginals, the columns of each published table and the standard deviation of its cells, relative
    /// to the largest; empty for other queries.
    pub(crate) fn tables(&self, query: &Query) -> Vec<(String, f64)> {
        self.chain.tables(query)
    }

    /// The epsilon of all periods together: at most the requested one.
    pub fn epsilon(&self) -> f64 {
        // All segments share the requested epsilon; a single segment's may be slightly smaller.
        if self.settings.segments.is_some() { self.settings.epsilon } else { self.plan.privacy.epsilon }
    }

    /// For an open-ended release, the segment of the next period to be frozen.
    pub fn segment(&self) -> Option<Segment> {
        Some(self.settings.segments?.place(self.frozen))
    }

    /// The privacy claim in words, with the bounds that this crate enforces.
    pub fn statement(&self) -> PrivacyStatement {
        let Settings { unit, max_periods, max_rows, periods, segments, keep, .. } = &self.settings;
        let which = if *keep == Keep::Sample { "a random sample" } else { "the first" };
        let periods = match segments {
            None => format!("at most {periods}, all covered together"),
            Some(segments) => {
                let lengths: Vec<_> = (0..3).map(|segment| segments.length(segment).to_string()).collect();
                format!(
                    "without an end, in segments of {}, ... periods, each with its own noise, all covered together: the \
                     maximum number of periods in which a unit is counted holds over all segments",
                    lengths.join(", ")
                )
            }
        };
        let of_users = if self.settings.queries.iter().any(|(query, _)| query.is_of_users()) {
            "; also counted are users with more rows than that, once in each such period, and users who reach \
             their last period"
        } else {
            ""
        };
        let (rows, named) = match unit {
            Unit::User => (
                format!(
                    "at most {} of a user in a period ({which} if there are more), in at most {}{of_users}",
                    quantity(*max_rows as u64, "row"),
                    quantity(*max_periods as u64, "period")
                ),
                "every row names the user whose data it is; a person with two names counts as two users",
            ),
            Unit::Event => (
                "each row once".into(),
                "every row is an event of its own and is submitted in one period only; an event that is submitted twice is \
                 counted twice",
            ),
        };
        let neighbours =
            "data sets are neighbours when one contains all rows of the other except those of one unit";
        let public = "keys, queries and the ends of periods do not depend on the data";
        let key = "the file with the secret key stays secret, and no copy of it generates noise for other data; anyone who \
                   has it can subtract the noise";
        let mut assumptions: Vec<String> = [key, named, neighbours, public].map(String::from).into();
        if self.given {
            assumptions.push(
                "counts that were computed elsewhere respect the same bounds: their supplier vouches for this, and it \
                 cannot be checked here"
                    .into(),
            );
        }
        let stated = self.plan.statement();
        PrivacyStatement {
            unit: unit.to_string(),
            epsilon: self.epsilon(),
            sampler: "no sampling: events are counted as they arrive, and the release itself enforces the participation \
                      above"
                .into(),
            observer: "anyone who sees everything that is published, period by period, and who may know all the other data"
                .into(),
            assumptions,
            not_covered: vec![
                "the exact tallies and messages that freezing reports to its operator, and every other use of the same data"
                    .into(),
            ],
            // The number of units is unknown, and nothing depends on it.
            units: None,
            ..stated
        }
        .with_fact("counted", rows)
        .with_fact("periods", periods)
    }

    /// Reads the status of the release in `folder`, even while another process writes into it.
    ///
    /// # Errors
    /// If there is no release, or its plan is invalid.
    pub fn of(folder: &Path) -> Result<Self> {
        let state = State::look(&Folder::new(folder)?)?;
        let settings = read(&state.fact(SETTINGS)?)?;
        let chain = Chain::of(&settings, plans(&state, &settings)?)?;
        let (plan, (frozen, published)) = (chain.first().plan.clone(), state.progress()?);
        Ok(Self { settings, plan, chain, given: state.counts_were_given()?, frozen, published })
    }
}
