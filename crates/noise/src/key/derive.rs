//! Key derivation: a child key is the HMAC-SHA-256 of the child's purpose under the parent key.
//!
//! The chain is key -> run -> stream | samplers | words | commitments. Each arrow is a pseudo-random function
//! of a label and of fields, each preceded by its length, so that no two purposes have the same input. So
//! keys of different purposes are computationally independent, and none reveals anything about its parent.
//! All labels are in one list, [`Derived`], so that no two purposes have the same label.

use hmac::digest::FixedOutput;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// The length of a key and of a digest.
pub(crate) const BYTES: usize = 32;

/// The version of key derivation. A change that makes the same key give different bits must increase it.
const DOMAIN: &str = "antinoise keys 1";

/// The purpose of a derived key. No two values have the same label and fields.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Derived<'a> {
    /// The run of this name.
    Run(&'a str),
    /// The noise of the stream with this description.
    Noise(&'a [u8; BYTES]),
    /// Random numbers for the purpose of this name.
    Sampler(&'a str),
    /// The commitment to a description, a context and a step.
    Commitment(&'a [u8; BYTES], &'a [u8; BYTES], u64),
    /// The keyed sums of words for the purpose of this name.
    Words(&'a str),
    /// The commitment to a state.
    State(&'a StateFields<'a>),
    /// Normals outside of any stream, under the cipher of this name.
    Normals(&'a str),
}

/// The values that a commitment to a state by coordinate covers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateFields<'a> {
    pub(crate) description: &'a [u8; BYTES],
    pub(crate) context: &'a [u8; BYTES],
    pub(crate) step: u64,
    pub(crate) made: u64,
    /// The keyed sum of all words of the state.
    pub(crate) total: u128,
    /// Further data of the caller that the commitment covers.
    pub(crate) extra: &'a [u8],
}

/// Sets child to HMAC-SHA-256(parent, domain, label, field, field, ...).
pub(crate) fn derive(parent: &[u8; BYTES], purpose: Derived<'_>, child: &mut [u8; BYTES]) {
    match purpose {
        Derived::Run(name) => derive_labelled(parent, "run", &[name.as_bytes()], child),
        Derived::Noise(description) => derive_labelled(parent, "noise", &[description], child),
        Derived::Sampler(name) => derive_labelled(parent, "purpose", &[name.as_bytes()], child),
        Derived::Commitment(description, context, step) => {
            derive_labelled(parent, "commitment", &[description, context, &step.to_le_bytes()], child);
        }
        Derived::Words(name) => derive_labelled(parent, "words", &[name.as_bytes()], child),
        Derived::State(&StateFields { description, context, step, made, total, extra }) => {
            let (steps, total) = ([step.to_le_bytes(), made.to_le_bytes()], total.to_le_bytes());
            derive_labelled(
                parent,
                "state",
                &[description, context, steps.as_flattened(), &total, extra],
                child,
            );
        }
        Derived::Normals(cipher) => derive_labelled(parent, "normals", &[cipher.as_bytes()], child),
    }
}

fn derive_labelled(parent: &[u8; BYTES], label: &str, fields: &[&[u8]], child: &mut [u8; BYTES]) {
    // The states of the HMAC are wiped on drop.
    let mut mac = Hmac::<Sha256>::new_from_slice(parent).expect("keys of any length are taken");
    for field in [DOMAIN.as_bytes(), label.as_bytes()].iter().chain(fields) {
        mac.update(&(field.len() as u64).to_le_bytes());
        mac.update(field);
    }
    mac.finalize_into(child.into());
}

/// A digest of values that are not secret, in an injective encoding: different lists of values give different
/// bytes.
pub(crate) struct Description(Sha256);

impl Description {
    /// Creates an empty description of type `kind`.
    pub(crate) fn new(kind: &str) -> Self {
        let mut description = Self(Sha256::new());
        description.text(kind);
        description
    }

    /// Appends the length of a text, then the text.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.count(text.len());
        self.0.update(text);
        self
    }

    /// Appends a whole number.
    pub(crate) fn count(&mut self, count: usize) -> &mut Self {
        self.0.update((count as u64).to_le_bytes());
        self
    }

    /// Appends all bits of a number.
    pub(crate) fn number(&mut self, number: f64) -> &mut Self {
        self.0.update(number.to_bits().to_le_bytes());
        self
    }

    /// Appends the length of a list of numbers, then the numbers.
    pub(crate) fn numbers(&mut self, numbers: &[f64]) -> &mut Self {
        numbers.iter().fold(self.count(numbers.len()), |to, &x| to.number(x))
    }

    pub(crate) fn digest(self) -> [u8; BYTES] {
        self.0.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn derived(parent: [u8; BYTES], label: &str, fields: &[&[u8]]) -> [u8; BYTES] {
        let mut child = [0; BYTES];
        derive_labelled(&parent, label, fields, &mut child);
        child
    }

    /// Expected value from Python's hmac module: hmac.new(bytes([7] * 32), message, "sha256"), where message
    /// joins "antinoise keys 1", "run", "0" and "", each after its length as eight little-endian bytes.
    #[test]
    fn a_derived_key_is_the_hmac_of_its_label_and_fields() {
        let found = derived([7; BYTES], "run", &[b"0", b""]);
        let text: String = found.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, "1a04909b776006ef51920abdf765ca83974408e67ba3df44e9ad868f7abbe19a");
    }

    #[test]
    fn parents_labels_and_every_cut_of_the_fields_give_other_keys() {
        let mut seen = std::collections::HashSet::new();
        for parent in [[1; BYTES], [2; BYTES]] {
            for label in ["run", "ru", "noise"] {
                for fields in
                    [&[][..], &[&b""[..]], &[b"", b""], &[b"ab"], &[b"a", b"b"], &[b"b", b"a"], &[b"", b"ab"]]
                {
                    assert!(seen.insert(derived(parent, label, fields)));
                }
            }
        }
    }

    #[test]
    fn no_two_purposes_have_the_same_key() {
        let (mut seen, digests) = (std::collections::HashSet::new(), [[1; BYTES], [2; BYTES]]);
        let names = ["", "run", "noise", "aes-256-ctr"];
        let by_name =
            |name| [Derived::Run(name), Derived::Sampler(name), Derived::Normals(name), Derived::Words(name)];
        let [a, b] = &digests;
        let by_digest = |step| [(a, a), (a, b), (b, a)].map(|(a, b)| Derived::Commitment(a, b, step));
        let all = names.into_iter().flat_map(by_name).chain([0, 1].into_iter().flat_map(by_digest));
        let state = |description, context, step, made, total, extra| StateFields {
            description,
            context,
            step,
            made,
            total,
            extra,
        };
        let states = [
            state(a, a, 0, 0, 0, b""),
            state(a, b, 0, 0, 0, b""),
            state(b, a, 0, 0, 0, b""),
            state(a, a, 1, 0, 0, b""),
            state(a, a, 0, 1, 0, b""),
            state(a, a, 0, 0, 1, b""),
            state(a, a, 0, 0, 1 << 127, b""),
            state(a, a, 0, 0, 0, b"0"),
        ];
        let all = all.chain(states.iter().map(Derived::State));
        for purpose in all.chain(digests.iter().map(Derived::Noise)) {
            let mut child = [0; BYTES];
            derive(&[7; BYTES], purpose, &mut child);
            assert!(seen.insert(child), "{purpose:?}");
        }
    }

    #[test]
    fn lists_of_numbers_are_told_apart_by_their_cuts_and_bits() {
        let digest = |lists: &[&[f64]]| {
            let mut description = Description::new("test");
            lists.iter().fold(&mut description, |to, list| to.numbers(list));
            description.digest()
        };
        let mut seen = std::collections::HashSet::new();
        for lists in [&[&[1.0, 2.0][..]][..], &[&[1.0], &[2.0]], &[&[], &[1.0, 2.0]], &[&[0.0]], &[&[-0.0]]] {
            assert!(seen.insert(digest(lists)));
        }
    }
}
