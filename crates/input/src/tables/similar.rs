//! Names of users that are nearly the same.

use std::borrow::Cow;
use std::collections::BTreeMap;

use unicode_normalization::UnicodeNormalization;

/// Number of pairs of names that are shown.
const SHOWN: usize = 3;

/// Users whose names differ from another user's only in case, spaces or Unicode form. Each counts as a user
/// of its own, so that a person with two names is protected half as well as the statement says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SimilarNames {
    /// Number of such users.
    pub users: u64,
    /// Examples of such users, each with the similar name.
    pub examples: Vec<(String, String)>,
}

impl SimilarNames {
    /// Each such user with the similar name.
    pub fn new(found: BTreeMap<String, String>) -> Self {
        Self { users: found.len() as u64, examples: found.into_iter().take(SHOWN).collect() }
    }

    /// The similar names among those of different users.
    ///
    /// ```
    /// use antinoise_input::tables::SimilarNames;
    /// let found = SimilarNames::among(["ada", "Ada", "grace"]);
    /// assert_eq!(found.examples, [("Ada".into(), "ada".into())]);
    /// assert!(found.warning().unwrap().starts_with("1 user has a name that differs"));
    /// ```
    pub fn among<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut names: Vec<(Cow<'_, str>, &str)> =
            names.into_iter().map(|name| (normal_form(name), name)).collect();
        names.sort_unstable();
        let pairs = names.windows(2).filter(|pair| pair[0].0 == pair[1].0);
        Self::new(pairs.map(|pair| (pair[0].1.to_string(), pair[1].1.to_string())).collect())
    }

    /// A warning sentence, if there are such users.
    pub fn warning(&self) -> Option<String> {
        if self.users == 0 {
            return None;
        }
        let pairs: Vec<String> =
            self.examples.iter().map(|(user, other)| format!("{user:?} and {other:?}")).collect();
        let who = match self.users {
            1 => "1 user has a name that differs".into(),
            users => format!("{users} users have names that differ"),
        };
        Some(format!(
            "{who} from another user's only in case, spaces or Unicode form, such as {}: each is a user of its own, and a person \
             of two names may be counted twice as often as the statement says",
            pairs.join(", ")
        ))
    }
}

/// The normal form of a name: without case and spaces, in Unicode's form NFKC. Borrowed if the name is in
/// that form.
pub fn normal_form(name: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase();
    if name.bytes().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let is_shown = |c: &char| {
        !c.is_whitespace() && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}')
    };
    let lower = name.nfkc().flat_map(char::to_lowercase).nfkc().filter(is_shown);
    // The Greek final sigma, and the German sharp s.
    let folded: String = lower.collect::<String>().replace('\u{3c2}', "\u{3c3}").replace('\u{df}', "ss");
    Cow::Owned(folded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_form_whatever_their_case_spaces_and_unicode_form() {
        for names in [
            vec!["ada", "Ada", " ADA", "a da", "ada\t", "\u{ff21}da", "ada\u{a0}", "a\u{200b}da"],
            vec!["\u{e9}mile", "e\u{301}mile", "\u{c9}mile", "E\u{301}MILE"],
            vec!["7", "\u{ff17}", " 7"],
            vec!["stra\u{df}e", "STRASSE", "strasse"],
        ] {
            let forms: std::collections::HashSet<_> = names.iter().map(|name| normal_form(name)).collect();
            assert_eq!(forms.len(), 1, "{forms:?}");
            let form = forms.into_iter().next().unwrap();
            assert_eq!(normal_form(&form), form);
        }
        assert!(normal_form("ada") != normal_form("adam") && normal_form("a1") != normal_form("a11"));
    }
}
