//! Names of data, columns and classes in a card.

use std::path::Path;

use antinoise_input::printable;

/// Maximum number of classes or columns that a card names; if there are more, it gives their number.
const NAMED: usize = 20;

/// KIND:PATH without the folders of the path, which may name a person or a customer.
pub(super) fn without_folders(data: &str) -> String {
    match data.split_once(':') {
        Some((kind, path)) => {
            let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
            format!("{kind}:{name}")
        }
        None => data.into(),
    }
}

/// The words, or the first of them and their number if there are many.
pub(super) fn listed<'a>(words: impl ExactSizeIterator<Item = &'a str>) -> String {
    let count = words.len();
    let named: Vec<String> = words.take(NAMED).map(one_line).collect();
    let more = if count > NAMED { format!(" and {} more", count - NAMED) } else { String::new() };
    named.join(", ") + &more
}

/// `text` in one line of Markdown, in which none of its characters marks up: neither code, emphasis, tags and
/// cells nor, at a bracket, links.
pub(super) fn one_line(text: &str) -> String {
    let text = printable(text).replace('\n', " ");
    let mut line = String::new();
    for (at, c) in text.char_indices() {
        let (before, after) = (text[..at].chars().next_back(), text[at + c.len_utf8()..].chars().next());
        let is_in_word = [before, after].iter().all(|c| c.is_some_and(char::is_alphanumeric));
        let marks_up = match c {
            '\\' | '`' | '*' | '<' | '>' | '|' | '&' | '#' => true,
            '_' => !is_in_word,
            ']' => matches!(after, Some('(' | '[' | ':')),
            _ => false,
        };
        if marks_up {
            line.push('\\');
        }
        line.push(c);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mark_nothing_up_and_common_ones_stay_as_they_are() {
        let same = ["dep_delay", "both[1]", "0:24", "naïve", "a-b (c)"];
        assert_eq!(same.map(one_line), same);
        let escaped = ["[x](y)", "_x_", "a|b", "<b>", "*a*", "`a`", "a\nb", "\\"].map(one_line);
        let wanted = ["[x\\](y)", "\\_x\\_", "a\\|b", "\\<b\\>", "\\*a\\*", "\\`a\\`", "a b", "\\\\"];
        assert_eq!(escaped, wanted);
    }
}
