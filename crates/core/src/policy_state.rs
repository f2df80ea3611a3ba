//! The state of policies that cannot be derived. It is opaque to the ledger, which only stores it.

use std::borrow::Cow;

/// A value that a policy stores in the ledger: for a job, a host, a slot, a user or itself.
///
/// The ledger stores it as numbers without a meaning. A policy has one type for each value that it
/// cannot derive after a rebuild. The types of several policies are stored side by side, so an
/// outer policy has its own values.
///
/// # Example
/// ```
/// use miserly_core::{Persistent, PolicyState};
///
/// /// The number of quanta of a job.
/// #[derive(Debug, Default, PartialEq)]
/// struct Quanta(u64);
///
/// impl Persistent for Quanta {
///     const NAME: &'static str = "mine/quanta";
///     const VERSION: u32 = 1;
///
///     fn encode(&self, words: &mut Vec<u64>) {
///         words.push(self.0);
///     }
///
///     fn decode(_version: u32, words: &[u64]) -> Option<Quanta> {
///         let [quanta] = *words else { return None };
///         Some(Quanta(quanta))
///     }
/// }
///
/// let mut state = PolicyState::default();
/// assert_eq!(state.get::<Quanta>(), Quanta(0));
/// state.set(&Quanta(3));
/// assert_eq!(state.get::<Quanta>(), Quanta(3));
/// ```
pub trait Persistent: Default + PartialEq {
    /// The name under which the value is stored: the policy, a slash, the value.
    const NAME: &'static str;

    /// The version of the encoding. It increases with each change of the encoding.
    const VERSION: u32;

    /// Appends the numbers that encode the value.
    fn encode(&self, words: &mut Vec<u64>);

    /// Returns the value that these numbers encode in this version, or `None` if they are invalid.
    fn decode(version: u32, words: &[u64]) -> Option<Self>;
}

/// The values that policies store for one object. Empty, and as large as a vector, for most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyState {
    records: Vec<StateRecord>,
}

/// A stored value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRecord {
    /// [`Persistent::NAME`].
    pub name: Cow<'static, str>,
    /// [`Persistent::VERSION`].
    pub version: u32,
    /// The encoded value.
    pub words: Vec<u64>,
}

impl PolicyState {
    /// The empty state.
    pub const EMPTY: PolicyState = PolicyState { records: Vec::new() };

    /// Returns whether no value is stored.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns the value of this type. Returns the default if none is stored or the stored value
    /// cannot be decoded.
    pub fn get<T: Persistent>(&self) -> T {
        let record = self.records.iter().find(|record| record.name == T::NAME);
        record.and_then(|record| T::decode(record.version, &record.words)).unwrap_or_default()
    }

    /// Stores a value in place of the value of the same type. The default is not stored.
    pub fn set<T: Persistent>(&mut self, value: &T) {
        let known = self.records.iter_mut().position(|record| record.name == T::NAME);
        match known {
            Some(at) if *value == T::default() => {
                self.records.remove(at);
            }
            Some(at) => {
                let record = &mut self.records[at];
                record.version = T::VERSION;
                record.words.clear();
                value.encode(&mut record.words);
            }
            None if *value == T::default() => {}
            None => {
                let mut words = Vec::new();
                value.encode(&mut words);
                self.records.push(StateRecord { name: Cow::Borrowed(T::NAME), version: T::VERSION, words });
                self.records.sort_by(|a, b| a.name.cmp(&b.name));
            }
        }
    }

    /// Returns the stored values, ordered by name.
    pub fn records(&self) -> &[StateRecord] {
        &self.records
    }

    /// Returns the state with these stored values.
    pub fn from_records(mut records: Vec<StateRecord>) -> PolicyState {
        records.sort_by(|a, b| a.name.cmp(&b.name));
        PolicyState { records }
    }
}

/// The state that a ledger stores besides the state of its jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerState {
    /// The state of the policy itself.
    pub policy: PolicyState,
    /// The state of each host, in order. Missing hosts have none.
    pub hosts: Vec<PolicyState>,
    /// The slots with a state, and their states.
    pub slots: Vec<(crate::SlotId, PolicyState)>,
    /// The users with a state, in order, and their states.
    pub users: Vec<(u32, PolicyState)>,
}

/// Returns the two words of a long number, the lower one first.
pub const fn split_words(number: u128) -> [u64; 2] {
    #[expect(clippy::cast_possible_truncation, reason = "the halves")]
    [number as u64, (number >> 64) as u64]
}

/// Returns the long number of two words, the lower one first.
pub const fn join_words([low, high]: [u64; 2]) -> u128 {
    low as u128 | (high as u128) << 64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Sum(u128);

    impl Persistent for Sum {
        const NAME: &'static str = "test/sum";
        const VERSION: u32 = 2;

        fn encode(&self, words: &mut Vec<u64>) {
            words.extend(split_words(self.0));
        }

        fn decode(version: u32, words: &[u64]) -> Option<Sum> {
            match (version, words) {
                (1, [sum]) => Some(Sum(u128::from(*sum))),
                (2, [low, high]) => Some(Sum(join_words([*low, *high]))),
                _ => None,
            }
        }
    }

    #[derive(Debug, Default, PartialEq)]
    struct Flag(bool);

    impl Persistent for Flag {
        const NAME: &'static str = "test/flag";
        const VERSION: u32 = 1;

        fn encode(&self, words: &mut Vec<u64>) {
            words.push(self.0.into());
        }

        fn decode(_version: u32, words: &[u64]) -> Option<Flag> {
            Some(Flag(words == [1]))
        }
    }

    #[test]
    fn values_live_side_by_side() {
        let mut state = PolicyState::EMPTY;
        state.set(&Sum(u128::MAX - 7));
        state.set(&Flag(true));
        assert_eq!((state.get::<Sum>(), state.get::<Flag>()), (Sum(u128::MAX - 7), Flag(true)));
        state.set(&Sum(0));
        assert_eq!((state.get::<Sum>(), state.records().len()), (Sum(0), 1));
        state.set(&Flag(false));
        assert_eq!(state, PolicyState::EMPTY);
    }

    #[test]
    fn an_older_encoding_is_decoded_by_its_version() {
        let record = |version, words| StateRecord { name: Cow::Owned("test/sum".into()), version, words };
        let sum = |version, words| PolicyState::from_records(vec![record(version, words)]).get::<Sum>();
        assert_eq!(sum(1, vec![9]), Sum(9));
        assert_eq!(sum(2, vec![9, 0]), Sum(9));
        assert_eq!(sum(3, vec![9]), Sum(0), "of no known version");
    }
}
