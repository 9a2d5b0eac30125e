//! Examples with several owners: batches in which every owner takes part as a plan of users assumes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use antinoise_input::InvalidParameter;
use antinoise_input::tables::{SimilarNames, user_name};
use rand_core::Rng;

use crate::statement_text::OWNERSHIP;
use crate::{Batches, Result, VerifiedPlan};

/// Examples that belong to one or several users each, such as a message to its sender and its receivers.
///
/// [`OwnedExamples::batches`] forms batches for a federated plan, whose units are the users. No two examples
/// of a batch share an owner, an owner's batches are at least b steps apart, and at most k. So a change of
/// all examples of one owner moves the sums as the plan's schema min-sep:b,k assumes: in each of those steps
/// one clipped gradient, and no other step. Examples whose owners take part rarely come first; ties are in
/// random order.
///
/// Which example comes when depends on who owns it. So the claim holds for neighbouring data sets that have
/// the same examples with the same owners and differ in the contents of one owner's examples
/// ([`OwnedExamples::ASSUMPTION`]).
///
/// # Source
/// *Min-sep participation* for examples of several users: the monograph, section 4.4.3. The greedy rule:
/// A. Ganesh et al., It's My Data Too: Private ML for Datasets with Multi-User Training Examples,
/// arXiv:2503.03622.
///
/// ```
/// use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
/// use antinoise_plan::{Length, OwnedExamples, Participations, PrivacyUnit, Request, Setting, choose};
/// let messages = [vec!["ada", "bob"], vec!["ada"], vec!["bob", "cy"], vec!["cy", "dan"], vec!["dan"]];
/// let messages = OwnedExamples::new(messages)?;
/// assert_eq!((messages.users(), messages.of(2), messages.name(2)), (4, &[1, 2][..], "cy"));
/// let setting = Setting::Federated { min_sep: 2, max_participations: Some(3) };
/// let plan = choose(&Request { unit: PrivacyUnit::User, ..Request::new(4, 2, Length::Steps(6), setting)
/// })?.plan;
/// let mut rng = KeyedRng::new(&Key::from_os()?, &RunId::default(), Purpose::DataOrder, 0);
/// let batches = messages.batches(&plan, &mut rng)?;
/// let mut taken = Participations::none(&plan);
/// for (step, batch) in batches.iter().enumerate() {
///     taken.record(step, &messages.owners(batch))?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedExamples {
    owners: Vec<Vec<usize>>,
    names: Vec<String>,
}

/// The participation of an owner so far.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    count: usize,
    /// The first step in which the owner may take part again.
    free_from: usize,
}

impl OwnedExamples {
    /// What the claim of a run with such batches assumes, as plans for users in rounds state it.
    pub const ASSUMPTION: &'static str = OWNERSHIP;

    /// The owners of examples 0, 1, ..., by name. A name that is repeated for an example counts once. Owners
    /// are numbered in the order of their first examples. Spellings of one whole number are one user, as
    /// [`user_name`] has it.
    ///
    /// # Errors
    /// When there is no example, or an example without an owner, or a name that is empty, stands for a
    /// missing cell (NA, null) or is a number that is not whole.
    pub fn new<'a, E: IntoIterator<Item = &'a str>>(
        of_examples: impl IntoIterator<Item = E>,
    ) -> Result<Self> {
        let mut number = HashMap::new();
        let mut found = Self { owners: Vec::new(), names: Vec::new() };
        for (example, names) in of_examples.into_iter().enumerate() {
            let mut owners = Vec::new();
            for name in names {
                let name = user_name(&format!("owner of example {example}"), name)?;
                owners.push(*number.entry(name).or_insert_with_key(|name| {
                    found.names.push(name.to_string());
                    found.names.len() - 1
                }));
            }
            owners.sort_unstable();
            owners.dedup();
            if owners.is_empty() {
                let must_be = "one or more names";
                return Err(
                    InvalidParameter::new(format!("owners of example {example}"), "absent", must_be).into()
                );
            }
            found.owners.push(owners);
        }
        antinoise_input::at_least("number of examples", found.owners.len(), 1)?;
        Ok(found)
    }

    /// Number of examples.
    pub fn examples(&self) -> usize {
        self.owners.len()
    }

    /// Number of users who own an example.
    pub fn users(&self) -> usize {
        self.names.len()
    }

    /// The name of user number `user`.
    ///
    /// # Panics
    /// Unless `user < self.users()`.
    pub fn name(&self, user: usize) -> &str {
        &self.names[user]
    }

    /// The users whose names are nearly the same as another user's. Each takes part as a user of its own.
    pub fn similar_names(&self) -> SimilarNames {
        SimilarNames::among(self.names.iter().map(String::as_str))
    }

    /// The owners of an example, in increasing order.
    ///
    /// # Panics
    /// Unless `example < self.examples()`.
    pub fn of(&self, example: usize) -> &[usize] {
        &self.owners[example]
    }

    /// The owners of all examples of a batch: the units that take part in its step.
    ///
    /// # Panics
    /// Unless all are below `self.examples()`.
    pub fn owners(&self, batch: &[usize]) -> Vec<usize> {
        batch.iter().flat_map(|&example| self.of(example)).copied().collect()
    }

    /// The batch of each step of `plan`, of at most its batch size, in increasing order. A batch is smaller
    /// only where every other example has an owner who may not take part.
    ///
    /// # Errors
    /// When the plan is not for users under min-sep:b,k ([`VerifiedPlan::participation_limits`]), or is for
    /// another number of users than own the examples.
    pub fn batches(&self, plan: &VerifiedPlan, rng: &mut impl Rng) -> Result<Vec<Vec<usize>>> {
        let (min_sep, most) = plan.participation_limits()?;
        if plan.examples != self.users() {
            let must_be = format!("{}, the number of owners", self.users());
            return Err(InvalidParameter::new("examples of the plan", plan.examples, must_be).into());
        }
        let order = Batches::cyclic(self.examples(), 1, rng)?;
        // Examples that were free when they were last looked at, least used first; and the others, by the
        // step from which they may be free. Owners take part later and later, so that no entry is too late.
        let mut free: BinaryHeap<_> =
            order.turn(0).iter().enumerate().map(|(rank, &example)| Reverse((0, rank, example))).collect();
        let mut waiting = BinaryHeap::new();
        let mut taken = vec![Taken::default(); self.users()];
        let mut batches = Vec::with_capacity(plan.steps);
        for step in 0..plan.steps {
            while let Some(&Reverse((from, entry))) = waiting.peek()
                && from <= step
            {
                waiting.pop();
                free.push(Reverse(entry));
            }
            let mut batch = Vec::with_capacity(plan.batch_size);
            while batch.len() < plan.batch_size
                && let Some(Reverse((uses, rank, example))) = free.pop()
            {
                let owners = &self.owners[example];
                let from = owners.iter().map(|&owner| taken[owner].free_from).max().unwrap_or(0);
                if from > step {
                    waiting.push(Reverse((from, (uses, rank, example))));
                } else if owners.iter().all(|&owner| taken[owner].count < most) {
                    batch.push(example);
                    for &owner in owners {
                        let Taken { count, .. } = taken[owner];
                        taken[owner] = Taken { count: count + 1, free_from: step + min_sep };
                    }
                    waiting.push(Reverse((step + min_sep, (uses + 1, rank, example))));
                }
            }
            batch.sort_unstable();
            batches.push(batch);
        }
        Ok(batches)
    }
}
