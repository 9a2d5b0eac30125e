//! Plays as texts by user, in a fixed vocabulary of characters: the speaker is the user.

use std::collections::BTreeMap;

use antinoise_input::{InvalidParameter, at_least};
use antinoise_train::data::TextRows;
use sha2::{Digest, Sha256};

pub use crate::characters::{CHARACTERS, VOCAB_SIZE, char_index};

/// The text of one user, as indices of characters ([`char_index`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserText {
    /// The name of the user, unique among texts.
    pub user: String,
    /// The symbols of the text, as numbers below [`VOCAB_SIZE`].
    pub symbols: Vec<u8>,
}

/// The part of the data set that a user's text belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// For training: 80% of the speakers.
    Training,
    /// For choosing settings: 10% of the speakers.
    Validation,
    /// For the reported figures: 10% of the speakers.
    Test,
}

/// The speeches of each speaker of `plays`, concatenated in order; speakers are sorted by name.
///
/// A line `NAME:` at the start or after an empty line opens a speech, which ends at the next empty line.
/// Lines keep their newlines.
///
/// ```
/// use antinoise_federated::plays::{parse_plays, char_index};
/// let texts = parse_plays("A:\nOh!\n\nB:\nWhat?\nWho:\n\nA:\nI.\n")?;
/// assert_eq!(texts.iter().map(|text| text.user.as_str()).collect::<Vec<_>>(), ["A", "B"]);
/// assert_eq!(texts[0].symbols, "Oh!\nI.\n".chars().map(char_index).collect::<Vec<_>>());
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
///
/// # Errors
/// If text comes before the first speaker, or nobody speaks.
pub fn parse_plays(plays: &str) -> Result<Vec<UserText>, InvalidParameter> {
    let mut speakers: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    let (mut speaker, mut opens) = (None, true);
    for line in plays.lines() {
        match line.strip_suffix(':') {
            Some(name) if opens && !name.is_empty() => speaker = Some(speakers.entry(name).or_default()),
            _ if line.is_empty() => {}
            _ => match &mut speaker {
                Some(text) => text.extend(line.chars().chain(['\n']).map(char_index)),
                None => {
                    let must_be =
                        "the name of a speaker and a colon, alone in a line, before the speaker's lines";
                    return Err(InvalidParameter::new(
                        "first line of the plays",
                        format!("{line:?}"),
                        must_be,
                    ));
                }
            },
        }
        opens = line.is_empty();
    }
    speakers.retain(|_, text| !text.is_empty());
    at_least("speakers of the plays", speakers.len(), 1)?;
    Ok(speakers.into_iter().map(|(user, symbols)| UserText { user: user.into(), symbols }).collect())
}

/// The text of each user of a table: the rows in the file's order, each with a newline after it. Users are
/// sorted by name.
pub fn texts_of_rows(rows: &TextRows) -> Vec<UserText> {
    let users = rows.users();
    let text = |user| UserText {
        user: users.name(user).into(),
        symbols: rows.of(user).flat_map(|row| row.chars().chain(['\n'])).map(char_index).collect(),
    };
    let mut texts: Vec<UserText> = (0..users.len()).map(text).collect();
    texts.sort_by(|x, y| x.user.cmp(&y.user));
    texts
}

/// Truncates every text to at most `most` symbols, so that no user costs much more time than others.
///
/// # Errors
/// If `most` is 0.
pub fn truncated(mut texts: Vec<UserText>, most: usize) -> Result<Vec<UserText>, InvalidParameter> {
    at_least("max_characters", most, 1)?;
    texts.iter_mut().for_each(|text| text.symbols.truncate(most));
    Ok(texts)
}

/// Cuts texts into stretches of at most `most` symbols, called NAME/0, NAME/1, ..., each a user of its own. A
/// privacy statement then protects a stretch, not all text of a speaker.
///
/// # Errors
/// If `most` is 0.
pub fn chunked(texts: &[UserText], most: usize) -> Result<Vec<UserText>, InvalidParameter> {
    at_least("maximum number of symbols of a stretch", most, 1)?;
    let cut = |text: &'_ UserText| {
        let name = text.user.clone();
        let stretch =
            move |(i, part): (usize, &[u8])| UserText { user: format!("{name}/{i}"), symbols: part.into() };
        text.symbols.chunks(most).enumerate().map(stretch).collect::<Vec<_>>()
    };
    Ok(texts.iter().flat_map(cut).collect())
}

/// The part of a speaker, from the first bytes of the name's SHA-256: public, and independent of other
/// speakers.
///
/// ```
/// use antinoise_federated::plays::{Part, part_of};
/// assert_eq!(["ROMEO", "JULIET", "Nurse"].map(part_of), [Part::Training, Part::Validation, Part::Training]);
/// ```
pub fn part_of(speaker: &str) -> Part {
    let digest = Sha256::digest(speaker);
    match u16::from_le_bytes([digest[0], digest[1]]) % 10 {
        0 => Part::Test,
        1 => Part::Validation,
        _ => Part::Training,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(user: &str, length: usize) -> UserText {
        UserText { user: user.into(), symbols: (0..length).map(|i| i as u8 % 64).collect() }
    }

    #[test]
    fn bounds_and_stretches_keep_what_they_say() {
        let texts = [text("a", 7), text("b", 0), text("c", 3)];
        let kept = truncated(texts.to_vec(), 3).unwrap();
        assert_eq!(kept.iter().map(|text| text.symbols.len()).collect::<Vec<_>>(), [3, 0, 3]);
        let cut = chunked(&texts, 3).unwrap();
        let names: Vec<&str> = cut.iter().map(|text| text.user.as_str()).collect();
        assert_eq!(names, ["a/0", "a/1", "a/2", "c/0"]);
        let joined: Vec<u8> = cut[..3].iter().flat_map(|text| text.symbols.clone()).collect();
        assert_eq!(joined, texts[0].symbols);
        assert!(truncated(texts.to_vec(), 0).is_err() && chunked(&texts, 0).is_err());
    }

    #[test]
    fn a_verse_that_ends_with_a_colon_opens_no_speech() {
        let texts = parse_plays("A:\nHear:\nB:\n\n\nB:\nNo.").unwrap();
        assert_eq!((texts.len(), texts[0].symbols.len(), texts[1].symbols.len()), (2, 9, 4));
        for bad in ["", "\n\n", "A:\n\n", "Hear me.\n", ":\nHear me."] {
            assert!(parse_plays(bad).unwrap_err().to_string().contains("plays"), "{bad:?}");
        }
    }

    #[test]
    fn parts_have_their_shares() {
        let count = |part| (0..4000).filter(|i| part_of(&format!("speaker {i}")) == part).count();
        assert!((300..500).contains(&count(Part::Test)) && (300..500).contains(&count(Part::Validation)));
    }
}
