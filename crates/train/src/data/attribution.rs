//! Multi-attribution: choosing examples so that no user contributes to too many.

use std::collections::HashMap;
use std::hash::Hash;

use antinoise_input::{InvalidParameter, at_least};

/// A choice of examples such that no user contributes to more than `bound` of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribution {
    /// The examples, in increasing order.
    pub kept: Vec<usize>,
    /// Number of examples before the choice.
    pub examples: usize,
    /// Upper bound on the kept examples of one user.
    pub bound: usize,
    /// Users who contribute to an example, kept or not.
    pub users: usize,
}

/// Chooses examples greedily such that each user contributes to at most `bound` of them. Example i belongs to
/// all users in `users_of[i]`, each counted once. An example without users is kept.
///
/// Considers examples in the order of their number of users, and also in the given order, and returns the
/// larger choice. No further example can be added to it. The same input gives the same choice.
///
/// ```
/// use antinoise_train::data::attribute;
/// let kept = attribute(&[vec!["ann", "bob", "cy"], vec!["ann"], vec!["bob"], vec!["cy", "cy"]], 1)?;
/// assert_eq!(kept.kept, [1, 2, 3]);
/// assert!(kept.statement().starts_with("1 of 4 examples was left out (25.0%)"));
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
///
/// # Source
/// Monograph, Section 4.4.3 (the multi-attribution model); greedy assignment as in A. Ganesh et al., It's My
/// Data Too: Private ML for Datasets with Multi-User Training Examples, arXiv:2503.03622.
///
/// # Errors
/// If `bound` is 0.
pub fn attribute<U: Hash + Eq>(users_of: &[Vec<U>], bound: usize) -> Result<Attribution, InvalidParameter> {
    at_least("bound on a user's examples", bound, 1)?;
    let mut numbers = HashMap::new();
    let edges: Vec<Vec<usize>> = users_of
        .iter()
        .map(|users| {
            let number = |user| {
                let next = numbers.len();
                *numbers.entry(user).or_insert(next)
            };
            let mut edge: Vec<usize> = users.iter().map(number).collect();
            edge.sort_unstable();
            edge.dedup();
            edge
        })
        .collect();
    let (in_turn, mut fewest) = ((0..edges.len()).collect::<Vec<_>>(), (0..edges.len()).collect::<Vec<_>>());
    fewest.sort_by_key(|&i| edges[i].len());
    let [in_turn, fewest] = [in_turn, fewest].map(|order| taken(&edges, &order, numbers.len(), bound));
    let kept = if in_turn.len() > fewest.len() { in_turn } else { fewest };
    Ok(Attribution { kept, examples: edges.len(), bound, users: numbers.len() })
}

/// Takes the examples of `order` one after the other, unless a user already has `bound` examples.
fn taken(edges: &[Vec<usize>], order: &[usize], users: usize, bound: usize) -> Vec<usize> {
    let mut counts = vec![0; users];
    let mut kept: Vec<usize> = Vec::new();
    for &i in order {
        if edges[i].iter().all(|&user| counts[user] < bound) {
            edges[i].iter().for_each(|&user| counts[user] += 1);
            kept.push(i);
        }
    }
    kept.sort_unstable();
    kept
}

impl Attribution {
    /// Number of examples that are not used.
    pub fn left_out(&self) -> usize {
        self.examples - self.kept.len()
    }

    /// A sentence about the choice for a privacy statement.
    pub fn statement(&self) -> String {
        let Self { kept, examples, bound, users } = self;
        let left = self.left_out();
        let were = if left == 1 { "was" } else { "were" };
        let share = if *examples == 0 { 0.0 } else { 100.0 * left as f64 / *examples as f64 };
        let who = if *users == 1 { "the one user".into() } else { format!("each of {users} users") };
        format!(
            "{left} of {examples} examples {were} left out ({share:.1}%), so that {who} contributes to at most \
             {bound} of the {} that are used. Which were left out follows from who contributes to what, which is taken to be \
             public: the protection is of what a user's examples hold.",
            kept.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use chacha20::ChaCha8Rng;
    use chacha20::rand_core::{Rng, SeedableRng};

    use super::*;

    fn hypergraph(rng: &mut ChaCha8Rng) -> Vec<Vec<u32>> {
        let mut below = |most: u32| rng.next_u32() % most;
        let (examples, users, widest) = (below(40), 1 + below(12), 1 + below(5));
        (0..examples).map(|_| (0..below(widest + 1)).map(|_| below(users)).collect()).collect()
    }

    fn count(users_of: &[Vec<u32>], kept: &[usize], user: u32) -> usize {
        kept.iter().filter(|&&i| users_of[i].contains(&user)).count()
    }

    #[test]
    fn nobody_is_above_the_bound_and_nothing_more_could_be_kept() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let (mut better, mut worse) = (0, 0);
        for _ in 0..3000 {
            let (users_of, bound) = (hypergraph(&mut rng), 1 + rng.next_u32() as usize % 4);
            let found = attribute(&users_of, bound).unwrap();
            assert_eq!(found, attribute(&users_of, bound).unwrap());
            assert!((0..12).all(|user| count(&users_of, &found.kept, user) <= bound));
            assert!(found.kept.windows(2).all(|pair| pair[0] < pair[1]));
            for i in (0..users_of.len()).filter(|i| !found.kept.contains(i)) {
                let full = |&user: &u32| count(&users_of, &found.kept, user) == bound;
                assert!(users_of[i].iter().any(full), "example {i} could be kept");
            }
            // The definition, in the given order.
            let mut naive: Vec<usize> = Vec::new();
            for (i, users) in users_of.iter().enumerate() {
                if users.iter().all(|&user| count(&users_of, &naive, user) < bound) {
                    naive.push(i);
                }
            }
            assert!(found.kept.len() >= naive.len());
            better += usize::from(found.kept.len() > naive.len());
            worse += usize::from(found.kept == naive && found.left_out() > 0);
        }
        assert!(better > 300 && worse > 100, "{better} {worse}");
    }

    #[test]
    fn edges_of_the_input() {
        assert!(attribute::<u8>(&[vec![1]], 0).is_err());
        let empty = attribute::<u8>(&[], 3).unwrap();
        assert!(
            empty.kept.is_empty() && empty.statement().starts_with("0 of 0 examples were left out (0.0%)")
        );
        assert_eq!(attribute::<u8>(&[vec![], vec![]], 1).unwrap().kept, [0, 1]);
        assert_eq!(attribute(&vec![vec![7]; 5], usize::MAX).unwrap().kept.len(), 5);
        assert_eq!(attribute(&vec![vec![7, 7]; 5], 2).unwrap().kept, [0, 1]);
    }

    #[test]
    fn the_order_of_arrival_is_taken_where_it_keeps_more() {
        // In the order of fewest users, 4 and 5 (two users each) are taken and block three earlier examples.
        let users_of = [vec![0, 4, 5], vec![1, 6, 7], vec![2, 8, 9], vec![3, 10, 11], vec![0, 1], vec![2, 3]];
        assert_eq!(attribute(&users_of, 1).unwrap().kept, [0, 1, 2, 3]);
    }
}
