//! Users with nearly the same name, who may be one person that counts as two.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use unicode_normalization::UnicodeNormalization;

use crate::events::users::Users;
use crate::{Freezing, Result, Unit};

/// Number of pairs of names that are shown.
const SHOWN: usize = 3;

/// Users of a period whose names differ from another user's, of this period or an earlier one, only in case,
/// spaces or Unicode form. Each counts as a user of its own, so that a person with two names is counted twice
/// as often as the statement says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Similar {
    /// Number of such users.
    pub users: u64,
    /// Some of them, each with the similar name.
    pub examples: Vec<(String, String)>,
}

impl Similar {
    /// A warning sentence, if there are such users.
    ///
    /// ```
    /// use antinoise_release::{Release, Settings, Unit};
    /// let folder = tempfile::tempdir()?;
    /// let mut release = Release::create(folder.path(), &Settings::new(vec!["a".into()], 30, Unit::User))?;
    /// let mut day = release.freeze(&"1".parse()?)?;
    /// for user in ["ada", "Ada ", "grace"] {
    ///     day.add(user, "a", None)?;
    /// }
    /// let warning = day.similar_users()?.warning().unwrap();
    /// assert!(warning.starts_with("1 user has a name") && warning.contains("\"Ada \" and \"ada\""));
    /// day.add("ADA", "a", None)?;
    /// assert!(day.similar_users()?.warning().unwrap().starts_with("2 users have names"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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

impl Freezing<'_> {
    /// The users so far whose names are nearly another user's. Exact, and not private.
    ///
    /// # Errors
    /// If the users counted earlier cannot be read.
    pub fn similar_users(&self) -> Result<Similar> {
        if self.release.settings.unit == Unit::Event {
            return Ok(Similar::default());
        }
        let mut found = BTreeMap::new();
        let altered = altered(&self.users, &mut found);
        self.release.state.counted_names(self.step, |user| {
            let Ok(user) = std::str::from_utf8(user) else { return };
            let form = form(user);
            // A name that equals its own normal form can only be similar to one that does not.
            let is_user = || form != user && self.users.rows(form.as_bytes()) > 0;
            let other = altered.get(form.as_ref()).cloned().or_else(|| is_user().then(|| form.to_string()));
            if let Some(other) = other.filter(|other| other != user) {
                found.entry(other).or_insert_with(|| user.to_string());
            }
        })?;
        Ok(Similar { users: found.len() as u64, examples: found.into_iter().take(SHOWN).collect() })
    }
}

/// The users whose names differ from their normal form, by that form. Those who are similar to another user
/// of the period are added to `found`, with the other name.
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

/// The normal form of a name: without case and spaces, in Unicode's form NFKC. Borrowed if the name is in
/// that form.
fn form(name: &str) -> Cow<'_, str> {
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
            let forms: std::collections::HashSet<_> = names.iter().map(|name| form(name)).collect();
            assert_eq!(forms.len(), 1, "{forms:?}");
            let form = forms.into_iter().next().unwrap();
            assert_eq!(super::form(&form), form);
        }
        assert!(form("ada") != form("adam") && form("a1") != form("a11"));
    }
}
