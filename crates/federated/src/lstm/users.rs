//! Users' texts as a population for the LSTM.

use antinoise_input::{InvalidParameter, at_least, hex};
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::pass::{Sequence, Totals, Workspace};
use super::shape::Lstm;
use crate::Error;
use crate::plays::UserText;
use crate::population::Population;

/// Users who write text, and a model that predicts the next symbol; an example is a sequence of a user's
/// text.
///
/// ```
/// use antinoise_federated::plays::{VOCAB_SIZE, parse_plays};
/// use antinoise_federated::Population;
/// use antinoise_federated::lstm::{Lstm, UserTexts};
/// let texts = parse_plays("A:\nWho is there?\n\nB:\nI.\n")?;
/// let writers = UserTexts::new(Lstm::new(VOCAB_SIZE, 4, 8)?, texts, 5)?;
/// assert_eq!((writers.users(), writers.examples(0), writers.examples(1)), (2, 3, 1));
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
pub struct UserTexts {
    model: Lstm,
    texts: Vec<UserText>,
    length: usize,
    identity: String,
}

/// Loss and accuracy of predictions.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct TextEvaluation {
    /// Mean of -ln p over the symbols, in nats.
    pub loss: f64,
    /// Share of symbols to which the model gave the largest probability.
    pub accuracy: f64,
    /// Number of symbols.
    pub symbols: usize,
}

impl UserTexts {
    /// `model` on `texts`, cut into sequences of at most `length` symbols. A text's first symbol is predicted
    /// from symbol 1, a newline in [`char_index`](crate::plays::char_index); h and c are 0 at the start of
    /// every sequence.
    ///
    /// # Errors
    /// If `length` is 0, a symbol is not one of the model's, or two texts belong to one user.
    pub fn new(model: Lstm, texts: Vec<UserText>, length: usize) -> Result<Self, InvalidParameter> {
        at_least("sequence_length", length, 1)?;
        let mut digest = Sha256::new();
        digest.update(format!("{model:?} {length}"));
        let mut names: Vec<&str> = Vec::with_capacity(texts.len());
        for UserText { user, symbols } in &texts {
            if let Some(symbol) = symbols.iter().find(|&&symbol| usize::from(symbol) >= model.symbols) {
                let must_be = format!("below {}, the model's number of symbols", model.symbols);
                return Err(InvalidParameter::new(format!("symbol of {user:?}"), symbol, must_be));
            }
            for part in [user.as_bytes(), symbols] {
                digest.update((part.len() as u64).to_le_bytes());
                digest.update(part);
            }
            names.push(user);
        }
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(InvalidParameter::new(
                "user of a text",
                format!("{:?} twice", pair[0]),
                "there once",
            ));
        }
        Ok(Self { model, texts, length, identity: hex(&digest.finalize()) })
    }

    /// The model.
    pub fn model(&self) -> Lstm {
        self.model
    }

    /// Number of symbols of all users.
    pub fn symbols(&self) -> usize {
        self.texts.iter().map(|text| text.symbols.len()).sum()
    }

    /// Share of the symbols that are the most frequent one; NaN if there are none.
    pub fn largest_share(&self) -> f64 {
        let mut counts = vec![0usize; self.model.symbols];
        self.texts.iter().flat_map(|text| &text.symbols).for_each(|&symbol| counts[usize::from(symbol)] += 1);
        counts.into_iter().max().unwrap_or(0) as f64 / self.symbols() as f64
    }

    /// Loss and accuracy of `parameters` over all symbols of all users, each symbol with the same weight.
    ///
    /// # Panics
    /// Unless the number of parameters is the model's.
    pub fn evaluate(&self, parameters: &[f32]) -> TextEvaluation {
        assert_eq!(parameters.len(), self.model.parameters(), "the model's parameters");
        let each = |user: usize| {
            let mut memory = Workspace::default();
            let all: Vec<usize> = (0..self.examples(user)).collect();
            let parts = all.chunks(SIDE_BY_SIDE);
            let totals =
                parts.map(|part| self.model.evaluate(&mut memory, parameters, self.sequences(user, part)));
            totals.fold(Totals::default(), Totals::and)
        };
        let totals: Vec<Totals> = (0..self.texts.len()).into_par_iter().map(each).collect();
        let Totals { loss, right, symbols } = totals.into_iter().fold(Totals::default(), Totals::and);
        TextEvaluation { loss: loss / symbols as f64, accuracy: right as f64 / symbols as f64, symbols }
    }

    fn sequences<'a>(
        &'a self,
        user: usize,
        examples: &'a [usize],
    ) -> impl Iterator<Item = Sequence<'a>> + Clone {
        let symbols = &self.texts[user].symbols[..];
        examples.iter().map(move |&i| {
            let start = i * self.length;
            let before = if start == 0 { NEWLINE } else { symbols[start - 1] };
            Sequence { before, symbols: &symbols[start..symbols.len().min(start + self.length)] }
        })
    }
}

const NEWLINE: u8 = 1;
/// Sequences per pass in evaluations.
const SIDE_BY_SIDE: usize = 16;

impl Population for UserTexts {
    type Workspace = Workspace;

    fn workspace(&self) -> Workspace {
        Workspace::default()
    }

    fn parameters(&self) -> usize {
        self.model.parameters()
    }

    fn users(&self) -> usize {
        self.texts.len()
    }

    fn name(&self, user: usize) -> &str {
        &self.texts[user].user
    }

    fn examples(&self, user: usize) -> usize {
        self.texts[user].symbols.len().div_ceil(self.length)
    }

    fn gradient(
        &self,
        memory: &mut Workspace,
        parameters: &[f32],
        user: usize,
        examples: &[usize],
        gradient: &mut [f32],
    ) -> Result<f64, Error> {
        let totals =
            self.model.loss_and_gradient(memory, parameters, self.sequences(user, examples), gradient);
        Ok(totals.loss / totals.symbols as f64)
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }
}
