//! Queries as text: on the command line, in settings and in the published table.

use std::fmt;
use std::str::FromStr;

use antinoise_input::InvalidParameter;

use crate::queries::attribute::Attribute;
use crate::queries::query::{Query, refused};

const FORMS: &str = "counts, sum:LO,HI, mean:LO,HI, window:W, decay:G, histogram:E1,E2,..., cdf:E1,E2,..., \
                     quantiles:Q1,Q2,...@E1,E2,..., range:LO,HI@E1,E2,..., marginals:COL=A|B|...;COL@E1,E2,...;ways=1,2, \
                     users-at-bound or users-over-rows";

/// Numbers separated by commas.
fn list(numbers: &[f64]) -> String {
    numbers.iter().map(f64::to_string).collect::<Vec<_>>().join(",")
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counts => write!(f, "counts"),
            Self::Sum { low, high } => write!(f, "sum:{low},{high}"),
            Self::Mean { low, high } => write!(f, "mean:{low},{high}"),
            Self::Window { width } => write!(f, "window:{width}"),
            Self::Decay { factor } => write!(f, "decay:{factor}"),
            Self::Histogram { edges } => write!(f, "histogram:{}", list(edges)),
            Self::Cdf { edges } => write!(f, "cdf:{}", list(edges)),
            Self::Quantiles { ranks, edges } => write!(f, "quantiles:{}@{}", list(ranks), list(edges)),
            Self::Range { low, high, edges } => write!(f, "range:{low},{high}@{}", list(edges)),
            Self::Marginals { attributes, ways } => {
                write!(f, "marginals:")?;
                attributes.iter().try_for_each(|attribute| write!(f, "{attribute};"))?;
                let ways: Vec<String> = ways.iter().map(usize::to_string).collect();
                write!(f, "ways={}", ways.join(","))
            }
            Self::UsersAtBound => write!(f, "users-at-bound"),
            Self::UsersOverRows => write!(f, "users-over-rows"),
        }
    }
}

impl FromStr for Query {
    type Err = InvalidParameter;

    fn from_str(text: &str) -> Result<Self, InvalidParameter> {
        let query = read(text).ok_or_else(|| refused(format!("{text:?}"), FORMS))?;
        query.check()?;
        Ok(query)
    }
}

fn read(text: &str) -> Option<Query> {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let numbers =
        |text: &str| -> Option<Vec<f64>> { text.split(',').map(|word| word.trim().parse().ok()).collect() };
    let two = |text: &str| match numbers(text).as_deref() {
        Some(&[low, high]) => Some((low, high)),
        _ => None,
    };
    let at_edges = || rest.split_once('@').and_then(|(asked, edges)| Some((asked, numbers(edges)?)));
    Some(match name {
        _ if text == "counts" => Query::Counts,
        _ if text == "users-at-bound" => Query::UsersAtBound,
        _ if text == "users-over-rows" => Query::UsersOverRows,
        "window" => Query::Window { width: rest.parse().ok()? },
        "decay" => Query::Decay { factor: rest.parse().ok()? },
        "sum" => two(rest).map(|(low, high)| Query::Sum { low, high })?,
        "mean" => two(rest).map(|(low, high)| Query::Mean { low, high })?,
        "histogram" => Query::Histogram { edges: numbers(rest)? },
        "cdf" => Query::Cdf { edges: numbers(rest)? },
        "quantiles" => {
            let (asked, edges) = at_edges()?;
            Query::Quantiles { ranks: numbers(asked)?, edges }
        }
        "range" => {
            let (asked, edges) = at_edges()?;
            let (low, high) = two(asked)?;
            Query::Range { low, high, edges }
        }
        "marginals" => {
            let (attributes, ways) = rest.rsplit_once(';')?;
            let ways = ways.trim().strip_prefix("ways=")?.split(',').map(|way| way.trim().parse().ok());
            let attributes = attributes.split(';').map(Attribute::read).collect::<Option<_>>()?;
            Query::Marginals { attributes, ways: ways.collect::<Option<_>>()? }
        }
        _ => return None,
    })
}

impl TryFrom<String> for Query {
    type Error = InvalidParameter;

    fn try_from(text: String) -> Result<Self, InvalidParameter> {
        text.parse()
    }
}

impl From<Query> for String {
    fn from(query: Query) -> Self {
        query.to_string()
    }
}
