//! Users with nearly the same name, who may be one person that counts as two.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use antinoise_input::tables::{SimilarNames, normal_form};

use crate::events::users::Users;
use crate::{Freezing, Result, Unit};

impl Freezing<'_> {
    /// Users so far whose names are nearly the same as another user's, in this period or an earlier one.
    /// Exact, and not private.
    ///
    /// ```
    /// use antinoise_release::{Release, Settings, Unit};
    /// let folder = tempfile::tempdir()?;
    /// let mut release = Release::create(folder.path(), &Settings::new(vec!["a".into()], 30, Unit::User))?;
    /// let mut day = release.freeze(&"1".parse()?)?;
    /// for user in ["ada", "Ada", "grace"] {
    ///     day.add(user, "a", None)?;
    /// }
    /// let warning = day.similar_users()?.warning().unwrap();
    /// assert!(warning.starts_with("1 user has a name") && warning.contains("\"Ada\" and \"ada\""));
    /// day.add("ADA", "a", None)?;
    /// assert!(day.similar_users()?.warning().unwrap().starts_with("2 users have names"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the users counted earlier cannot be read.
    pub fn similar_users(&self) -> Result<SimilarNames> {
        if self.release.settings.unit == Unit::Event {
            return Ok(SimilarNames::default());
        }
        let mut found = BTreeMap::new();
        let altered = altered(&self.users, &mut found);
        self.release.state.counted_names(self.step, |user| {
            let Ok(user) = std::str::from_utf8(user) else { return };
            let form = normal_form(user);
            // A name that equals its own normal form can only be similar to one that does not.
            let is_user = || form != user && self.users.rows(form.as_bytes()) > 0;
            let other = altered.get(form.as_ref()).cloned().or_else(|| is_user().then(|| form.to_string()));
            if let Some(other) = other.filter(|other| other != user) {
                found.entry(other).or_insert_with(|| user.to_string());
            }
        })?;
        Ok(SimilarNames::new(found))
    }
}

/// The users whose names differ from their normal form, by that form. Those who are similar to another user
/// of the period are added to `found`, with the other name.
fn altered(users: &Users, found: &mut BTreeMap<String, String>) -> HashMap<String, String> {
    let texts = users.names().filter_map(|name| std::str::from_utf8(name.bytes()).ok());
    let mut others: Vec<(&str, Cow<'_, str>)> =
        texts.map(|user| (user, normal_form(user))).filter(|(user, form)| form != user).collect();
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
