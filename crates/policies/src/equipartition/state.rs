//! The state of equipartitioning that cannot be derived from a ledger.

use miserly_core::{HostId, Persistent, Time, join_words, split_words};

/// The missed work that a job has to catch up (Chiang and Vernon §2.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissedWork {
    /// Processor-ticks.
    pub work: u128,
    /// The instant at which that was counted.
    pub counted: Option<Time>,
}

/// The host that a waiting job is assigned to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AssignedHost(pub(super) Option<HostId>);

/// The instant at which a host was last repartitioned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repartitioned(pub Option<Time>);

fn word(time: Time) -> u64 {
    time.ticks().cast_unsigned()
}

fn time(word: u64) -> Time {
    Time::from_ticks(word.cast_signed())
}

impl Persistent for MissedWork {
    const NAME: &'static str = "eqspatial/missed-work";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        words.extend(split_words(self.work));
        words.extend(self.counted.map(word));
    }

    fn decode(_version: u32, words: &[u64]) -> Option<MissedWork> {
        match *words {
            [low, high] => Some(MissedWork { work: join_words([low, high]), counted: None }),
            [low, high, at] => Some(MissedWork { work: join_words([low, high]), counted: Some(time(at)) }),
            _ => None,
        }
    }
}

impl Persistent for AssignedHost {
    const NAME: &'static str = "eqspatial/assigned-host";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        words.extend(self.0.map(|host| u64::from(host.0)));
    }

    fn decode(_version: u32, words: &[u64]) -> Option<AssignedHost> {
        let [host] = *words else { return None };
        Some(AssignedHost(Some(HostId(u32::try_from(host).ok()?))))
    }
}

impl Persistent for Repartitioned {
    const NAME: &'static str = "eqspatial/repartitioned";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        words.extend(self.0.map(word));
    }

    fn decode(_version: u32, words: &[u64]) -> Option<Repartitioned> {
        let [at] = *words else { return None };
        Some(Repartitioned(Some(time(at))))
    }
}
