//! Words of the command line and of settings.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use antinoise_input::{BadInput, short, short_down, short_up};
use antinoise_mechanism::design::{Objective, StrategySpec};
use antinoise_mechanism::{Adjacency, Participation, Workload};
use antinoise_noise::RunId;
use antinoise_release::{Keep, Period, Query, Settings, Unit};

#[allow(dead_code, missing_docs)]
#[path = "../../crates/cli/src/numbers.rs"]
mod numbers;

/// What is accepted is printed as what reads as itself.
fn back<T: FromStr<Err: Display> + Display + PartialEq + Debug>(text: &str) {
    match text.parse::<T>() {
        Ok(value) => {
            let printed = value.to_string();
            assert_eq!(printed.parse().ok().as_ref(), Some(&value), "{text:?} is printed as {printed:?}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn reads<T: FromStr<Err: Display>>(text: &str) {
    if let Err(error) = text.parse::<T>() {
        assert!(!error.to_string().is_empty());
    }
}

/// 2^53.
const MOST: usize = 1 << 53;

fn numbers(text: &str) {
    for read in [numbers::count, numbers::bytes] {
        assert!(read(text).is_ok_and(|number| number <= MOST) || read(text).is_err(), "{text:?}");
    }
    if let Ok(x) = numbers::real(text) {
        for digits in [1, 3, 17] {
            let [_, up, down] =
                [short, short_up, short_down].map(|print| print(x, digits).parse::<f64>().expect("a number"));
            assert!(x.is_nan() || down <= x && x <= up, "{x:e}: {down:e}, {up:e}");
        }
    }
}

/// The first byte says what the others are read as.
pub fn run(data: &[u8]) -> bool {
    let Some((&kind, rest)) = data.split_first() else { return false };
    let Ok(text) = std::str::from_utf8(rest) else { return false };
    match kind {
        b'w' => back::<Workload>(text),
        b'p' => back::<Participation>(text),
        b'a' => back::<Adjacency>(text),
        b'o' => back::<Objective>(text),
        b's' => back::<StrategySpec>(text),
        b'q' => back::<Query>(text),
        b't' => back::<Period>(text),
        b'u' => back::<Unit>(text),
        b'k' => reads::<Keep>(text),
        b'r' => back::<RunId>(text),
        b'n' => numbers(text),
        b'd' => back::<antinoise_train::optimizer::Decay>(text),
        b'l' => {
            // Where an event lies.
            let Some((period, time)) = text.split_once('\n') else { return false };
            if let Ok(period) = period.parse::<Period>() {
                let _ = period.place(time);
            }
        }
        _ => return false,
    }
    true
}

pub fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "wmomentum:0.9,0.1",
        "wwindow:7",
        "wcooldown:3,0.1",
        "pcyclic:100,20",
        "pmin-sep:3,2",
        "azero-out",
        "omax",
        "sbanded-toeplitz:400+tapered:200",
        "sblt:4+column-normalized+x3",
        "stoeplitz+damped:0.01",
        "qquantiles:0.5,0.9@0,5,10",
        "qmean:-5,10",
        "qrange:1,2@0,1,2,3",
        "qdecay:0.5",
        "t2026-03-01",
        "t-17",
        "uuser",
        "ksample",
        "rmy run",
        "n1.5kib",
        "n6_0e4",
        "n500/60000",
        "n99%",
        "n18446744073709551615",
        "dcooldown:0.25,0.1",
        "l2026-03\n2026-03-01T17:45",
        "l17\n17.5",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Settings of a release: what is accepted is written and read as itself.
pub fn settings(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let Ok(settings) = toml::from_str::<Settings>(text) else { return true };
    if let Err(error) = settings.check() {
        assert!(error.is_bad_input(), "{error:?}");
        return true;
    }
    let written = toml::to_string(&settings).expect("settings are numbers, words and lists");
    assert_eq!(toml::from_str::<Settings>(&written).as_ref(), Ok(&settings), "{written}");
    true
}

pub fn seeds_of_settings() -> Vec<Vec<u8>> {
    let mut settings = Settings::new(vec!["north".into(), "south".into()], 8, Unit::User);
    let queries = ["counts", "window:3", "quantiles:0.5,0.9@0,5,10", "sum:0,9"];
    settings.queries = queries.iter().map(|query| (query.parse().expect("a query"), 1.5)).collect();
    settings.keep = Keep::Sample;
    let events = Settings::new(vec!["a".into()], 3, Unit::Event);
    let linked = events
        .clone()
        .with_segments(antinoise_release::Segments { first: 4, growth: antinoise_release::Growth::Doubles });
    [settings, events, linked]
        .iter()
        .map(|settings| toml::to_string(settings).expect("text").into_bytes())
        .collect()
}
