//! A fixed public vocabulary of characters, independent of the data.

/// Number of indices of [`char_index`].
pub const VOCAB_SIZE: usize = 64;

/// The characters of the vocabulary: the number of the first is 1, and 0 stands for all others.
pub const CHARACTERS: &str = "\n !&',-.:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

const PUNCTUATION: [u8; 11] = *b"\n !&',-.:;?";

/// The number of a character: 0 for characters outside the vocabulary, then newline, space, `!&',-.:;?`, A to
/// Z and a to z.
///
/// ```
/// use antinoise_federated::plays::{VOCAB_SIZE, char_index};
/// assert_eq!(["\n", "z", "é", "3"].map(|c| char_index(c.chars().next().unwrap())), [1, VOCAB_SIZE as u8 - 1, 0, 0]);
/// ```
pub fn char_index(character: char) -> u8 {
    let first = 1 + PUNCTUATION.len() as u8;
    match character {
        'A'..='Z' => first + (character as u8 - b'A'),
        'a'..='z' => first + 26 + (character as u8 - b'a'),
        _ => PUNCTUATION.iter().position(|&p| char::from(p) == character).map_or(0, |at| 1 + at as u8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_symbol_is_one_characters_alone() {
        let mut seen = [0; VOCAB_SIZE];
        (0..128u8).for_each(|c| seen[char_index(char::from(c)) as usize] += 1);
        let numbers: Vec<u8> = CHARACTERS.chars().map(char_index).collect();
        assert_eq!(numbers, (1..VOCAB_SIZE as u8).collect::<Vec<_>>());
        assert!(seen[1..].iter().all(|&count| count == 1) && seen[0] == 128 - 63, "{seen:?}");
    }
}
