//! Users whose names are nearly the same: one person, perhaps, who would count as two.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use unicode_normalization::UnicodeNormalization;

use crate::users::Users;
use crate::{Freezing, Result, Unit};

/// Pairs of names that are shown.
const SHOWN: usize = 3;

/// Users of a period whose names differ from another user's, of this period or of one before, only in case,
/// spaces or Unicode form: each counts as a user of its own,
/// so that a person of two names is counted twice as often as the statement says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Similar {
    /// Such users.
    pub users: u64,
    /// Some of them, and the names that theirs are like.
    pub examples: Vec<(String, String)>,
}

impl Similar {
    /// A sentence where there are such users.
    ///
    /// ```
    /// use antinoise_release::{Release, Settings, Unit};
    /// let folder = tempfile::tempdir()?;
    /// let mut release = Release::create(folder.path(), &Settings::new(vec!["a".into()], 30, Unit::User))?;
    /// let mut day = release.freeze(&"1".parse()?)?;
    /// for user in ["ada", "Ada ", "grace"] {
    ///     day.add(user, "a", None)?;
    /// }
    /// assert!(day.similar_users()?.warning().unwrap().contains("\"Ada \" and \"ada\""));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn warning(&self) -> Option<String> {
        if self.users == 0 {
            return None;
        }
        let pairs: Vec<String> =
            self.examples.iter().map(|(user, other)| format!("{user:?} and {other:?}")).collect();
        Some(format!(
            "{} users have names that differ from another user's only in case, spaces or Unicode form, such as {}: each is a user of its own, and a person \
             of two names may be counted twice as often as the statement says",
            self.users,
            pairs.join(", ")
        ))
    }
}

impl Freezing<'_> {
    /// The users so far whose names are nearly another user's. Exact, and not private.
    ///
    /// # Errors
    /// When who was counted before cannot be read.
    pub fn similar_users(&self) -> Result<Similar> {
        if self.release.settings.unit == Unit::Event {
            return Ok(Similar::default());
        }
        let mut found = BTreeMap::new();
        let altered = altered(&self.users, &mut found);
        self.release.state.counted_names(self.step, |user| {
            let Ok(user) = std::str::from_utf8(user) else { return };
            let form = form(user);
            // A name that is its own form can only be like one that is not.
            let is_user = || form != user && self.users.rows(form.as_bytes()) > 0;
            let other = altered.get(form.as_ref()).cloned().or_else(|| is_user().then(|| form.to_string()));
            if let Some(other) = other.filter(|other| other != user) {
                found.entry(other).or_insert_with(|| user.to_string());
            }
        })?;
        Ok(Similar { users: found.len() as u64, examples: found.into_iter().take(SHOWN).collect() })
    }
}

/// The users whose names are not their own form, by it; those that are like another one are added to `found`,
/// with that one.
fn altered(users: &Users, found: &mut BTreeMap<String, String>) -> HashMap<String, String> {
    let texts = users.names().filter_map(|name| std::str::from_utf8(name.bytes()).ok());
    let mut others: Vec<(&str, Cow<'_, str>)> =
        texts.map(|user| (user, form(user))).filter(|(user, form)| form != user).collect();
    others.sort_unstable();
    let mut altered: HashMap<String, String> = HashMap::new();
    for (user, form) in others {
        let is_user = users.rows(form.as_bytes()) > 0;
        let other = if is_user { Some(form.to_string()) } else { altered.get(form.as_ref()).cloned() };
        if let Some(other) = other {
            found.insert(user.to_string(), other);
        }
        altered.insert(form.into_owned(), user.to_string());
    }
    altered
}

/// A name without case and spaces, in Unicode's form NFKC; itself where it is that already.
fn form(name: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase();
    if name.bytes().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let is_shown = |c: &char| {
        !c.is_whitespace() && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}')
    };
    let lower = name.nfkc().flat_map(char::to_lowercase).nfkc().filter(is_shown);
    // Greek's final sigma, and the German sharp s in capitals.
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
            let forms: std::collections::HashSet<_> = names.iter().map(|name| form(name)).collect();
            assert_eq!(forms.len(), 1, "{forms:?}");
            let form = forms.into_iter().next().unwrap();
            assert_eq!(super::form(&form), form);
        }
        assert!(form("ada") != form("adam") && form("a1") != form("a11"));
    }
}
