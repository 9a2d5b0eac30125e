//! Estimates of the width of text without a font, which tend to be too wide.

/// Estimated width of `text` in ems. A digit counts as 0.64 em, as in wide fonts.
pub(crate) fn ems(text: &str) -> f64 {
    text.chars().map(width).sum()
}

fn width(character: char) -> f64 {
    match character {
        'i' | 'l' | 'j' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.36,
        ' ' | 'f' | 't' | 'r' | '(' | ')' | '-' | '/' => 0.44,
        'm' | 'w' | 'M' | 'W' | '+' | '=' | '%' => 0.98,
        'A'..='Z' => 0.76,
        _ => 0.66,
    }
}

/// `text` in lines of at most `most` ems, broken between words, and within one that is longer than a line.
pub(crate) fn wrapped(text: &str, most: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if ems(line) + ems(" ") + ems(word) <= most => *line = format!("{line} {word}"),
            _ => lines.extend(pieces(word, most)),
        }
    }
    lines
}

fn pieces(word: &str, most: f64) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for character in word.chars() {
        let last = pieces.last_mut().expect("there is one");
        if !last.is_empty() && ems(last) + width(character) > most {
            pieces.push(character.to_string());
        } else {
            last.push(character);
        }
    }
    pieces
}

/// `text` in one line of at most `most` ems, truncated if it is longer. Control characters, which SVG
/// refuses, become spaces.
pub(crate) fn line(text: &str, most: f64) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if ems(&text) <= most {
        return text;
    }
    let mut room = most - width('\u{2026}');
    let kept = text.chars().take_while(|&c| {
        room -= width(c);
        room >= 0.0
    });
    format!("{}\u{2026}", kept.collect::<String>().trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_it_may_be() {
        let text = "RMS loss (standard deviations of noise at clip norm 1) of banded-toeplitz:1024+column-normalized";
        for most in [3.0, 8.0, 20.0, 100.0] {
            let lines = wrapped(text, most);
            assert!(lines.iter().all(|line| ems(line) <= most), "{lines:?}");
            assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
            assert!(ems(&line(text, most)) <= most);
        }
        assert_eq!(line("a\u{0}b\nc", 10.0), "a b c");
    }
}
