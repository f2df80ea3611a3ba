//! The number of times that a job was bypassed.

use miserly_core::Persistent;

/// The number of jobs that sort behind a waiting job and started before it (Chiang and Vernon,
/// Table 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bypassed(pub u32);

impl Persistent for Bypassed {
    const NAME: &'static str = "backfill/bypassed";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        words.push(self.0.into());
    }

    fn decode(_version: u32, words: &[u64]) -> Option<Bypassed> {
        let [jobs] = *words else { return None };
        u32::try_from(jobs).ok().map(Bypassed)
    }
}
