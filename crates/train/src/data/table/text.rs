//! Texts as features by hashing, without a vocabulary: a vocabulary from private texts would reveal something
//! about them.

use sha2::{Digest, Sha256};

/// Adds a text's words to features that are zeros, and scales them to length 1 (a text without words stays
/// 0).
///
/// Words are runs of letters and digits, in lower case. The first eight bytes of a word's SHA-256,
/// little-endian, are a number: its last bit is the sign of the word's contribution, the rest modulo the
/// number of features is its index. Words that collide cancel in expectation rather than add up (Weinberger
/// et al. 2009, "Feature hashing").
pub(super) fn fill(text: &str, features: &mut [f32]) {
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let digest = Sha256::digest(word.to_lowercase());
        let number = u64::from_le_bytes(digest[..8].try_into().expect("a digest has 32 bytes"));
        let at = (number >> 1) % features.len() as u64;
        features[at as usize] += if number & 1 == 0 { 1.0 } else { -1.0 };
    }
    let length = features.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    if length > 0.0 {
        features.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, features: usize) -> Vec<f32> {
        let mut filled = vec![0.0; features];
        fill(text, &mut filled);
        filled
    }

    #[test]
    fn a_text_is_its_words_and_how_often_they_are_there() {
        let [pain, chest, both] = ["pain", "chest", "Chest PAIN, pain."].map(|text| filled(text, 1024));
        for (x, (a, b)) in both.iter().zip(pain.iter().zip(&chest)) {
            assert!((x - (2.0 * a + b) / 5f32.sqrt()).abs() < 1e-6);
        }
        assert_eq!(filled("pain; chest! (PAIN)", 1024), both);
        assert!(filled(" .,-!\n", 16).iter().all(|&x| x == 0.0));
    }

    /// A saved model is useless if the index of a word changes: it must never change.
    #[test]
    fn words_are_where_their_digest_says() {
        // The first bytes of `printf pain | sha256sum`, reversed; and of "été".
        for (word, digest) in [("pain", 0xba760e16e7c8785c_u64), ("Été", 0xcaf52b13640c01bd)] {
            let mut expected = vec![0.0; 1000];
            expected[(digest >> 1) as usize % 1000] = if digest & 1 == 0 { 1.0 } else { -1.0 };
            assert_eq!(filled(word, 1000), expected, "{word}");
        }
    }

    #[test]
    fn different_words_fall_together_no_more_often_than_by_chance_and_signs_are_even() {
        let places: Vec<(usize, f32)> = (0..4000)
            .map(|i| {
                let filled = filled(&format!("word{i}"), 4096);
                let at = filled.iter().position(|&x| x != 0.0).unwrap();
                (at, filled[at])
            })
            .collect();
        let different: std::collections::HashSet<usize> = places.iter().map(|place| place.0).collect();
        // 4096 (1 - (1 - 1/4096)^4000) = 2554 are expected, give or take 25.
        assert!((2430..2680).contains(&different.len()), "{}", different.len());
        let positive = places.iter().filter(|place| place.1 > 0.0).count();
        assert!((1850..2150).contains(&positive), "{positive}");
    }
}
