//! Workloads in text form.

use std::fmt;
use std::str::FromStr;

use antinoise_input::InvalidParameter;

use super::definition::{DEFAULT_SHARE, Workload};
use crate::Result;

const FORMS: &str = "prefix, momentum:BETA[,WEIGHT_DECAY], nesterov:BETA, decay:GAMMA, window:WIDTH, \
                     cooldown:START_STEP,FINAL or last-iterate[:BETA[,PREFIX_SHARE]]";

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix => f.write_str("prefix"),
            Self::Momentum { momentum, weight_decay: 0.0 } => write!(f, "momentum:{momentum}"),
            Self::Momentum { momentum, weight_decay } => write!(f, "momentum:{momentum},{weight_decay}"),
            Self::Nesterov { momentum } => write!(f, "nesterov:{momentum}"),
            Self::Decay { gamma } => write!(f, "decay:{gamma}"),
            Self::Window { width } => write!(f, "window:{width}"),
            Self::Cooldown { start, last } => write!(f, "cooldown:{start},{last}"),
            Self::LastIterate { momentum, weight_decay, prefix_share, rates, weights } => {
                match (*momentum, *prefix_share) {
                    (0.0, DEFAULT_SHARE) => f.write_str("last-iterate")?,
                    (momentum, DEFAULT_SHARE) => write!(f, "last-iterate:{momentum}")?,
                    (momentum, share) => write!(f, "last-iterate:{momentum},{share}")?,
                }
                let parts: Vec<String> = [
                    (!rates.is_empty()).then(|| format!("a schedule of {} rates", rates.len())),
                    (*weight_decay > 0.0).then(|| format!("weight decay {weight_decay}")),
                    (!weights.is_empty()).then(|| format!("{} weights", weights.len())),
                ]
                .into_iter()
                .flatten()
                .collect();
                if parts.is_empty() { Ok(()) } else { write!(f, " with {}", parts.join(" and ")) }
            }
            Self::Schedule { rates, momentum: 0.0 } => write!(f, "schedule of {} rates", rates.len()),
            Self::Schedule { rates, momentum } => {
                write!(f, "momentum {momentum} with a schedule of {} rates", rates.len())
            }
            Self::Toeplitz { coefficients } => write!(f, "Toeplitz of {} coefficients", coefficients.len()),
            Self::Matrix { rows } => write!(f, "matrix of {0} x {0}", rows.len()),
            Self::Queries { rows } => write!(f, "{} queries on {} steps", rows.len(), rows[0].len()),
        }
    }
}

impl FromStr for Workload {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self> {
        let refused = || InvalidParameter::new("workload", format!("{text:?}"), FORMS);
        let (kind, numbers) = match text.split_once(':') {
            None => (text, Vec::new()),
            Some((kind, list)) => {
                let numbers = list.split(',').map(|x| x.trim().parse().map_err(|_| refused()));
                (kind, numbers.collect::<std::result::Result<Vec<f64>, _>>()?)
            }
        };
        let whole = |x: f64| (x.fract() == 0.0 && (0.0..1e15).contains(&x)).then_some(x as usize);
        let workload = match (kind, numbers.as_slice()) {
            ("prefix", []) => Some(Self::Prefix),
            ("momentum", &[momentum]) => Some(Self::Momentum { momentum, weight_decay: 0.0 }),
            ("momentum", &[momentum, weight_decay]) => Some(Self::Momentum { momentum, weight_decay }),
            ("nesterov", &[momentum]) => Some(Self::Nesterov { momentum }),
            ("decay", &[gamma]) => Some(Self::Decay { gamma }),
            ("window", &[width]) => whole(width).map(|width| Self::Window { width }),
            ("cooldown", &[start, last]) => whole(start).map(|start| Self::Cooldown { start, last }),
            ("last-iterate", &[]) => Some(Self::last_iterate(0.0)),
            ("last-iterate", &[momentum]) => Some(Self::last_iterate(momentum)),
            ("last-iterate", &[momentum, prefix_share]) => {
                let (rates, weights) = (Vec::new(), Vec::new());
                Some(Self::LastIterate { momentum, weight_decay: 0.0, prefix_share, rates, weights })
            }
            _ => None,
        };
        let workload = workload.ok_or_else(refused)?;
        workload.check()?;
        Ok(workload)
    }
}

#[cfg(test)]
mod tests {
    use antinoise_input::BadInput;

    use super::*;

    #[test]
    fn text_and_back() {
        for text in [
            "prefix",
            "momentum:0.9",
            "momentum:0.9,0.1",
            "nesterov:0.9",
            "decay:0.5",
            "window:7",
            "cooldown:3,0.1",
            "last-iterate",
            "last-iterate:0.9",
            "last-iterate:0,0.5",
        ] {
            assert_eq!(text.parse::<Workload>().unwrap().to_string(), text);
        }
        let bad = [
            "",
            "prefixes",
            "momentum",
            "momentum:1",
            "momentum:-0.1",
            "momentum:nan",
            "prefix:1",
            "momentum:x",
            "window:0",
            "window:1.5",
            "window:-1",
            "cooldown:3",
            "cooldown:-1,0",
            "cooldown:1,-1",
            "decay:2",
            "last-iterate:1",
            "last-iterate:0.9,0",
            "last-iterate:0.9,1e5",
            "last-iterate:0.9,nan",
            "last-iterate:0.9,0.1,0",
        ];
        for text in bad {
            assert!(text.parse::<Workload>().unwrap_err().is_bad_input(), "{text}");
        }
    }
}
