//! The memory of a job: at least a page, or none where it is not accounted.

use std::num::NonZeroU64;

use miserly_api::model::Problem;
use miserly_core::Kind;
use miserly_units::memory;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Queue;
use crate::request::problems::refused_field;

/// The least memory of a job and of a reservation, in kilobytes: a page.
const LEAST: NonZeroU64 = NonZeroU64::new(4).expect("4 is above 0");

/// An amount of memory in kilobytes, not 0: that would be no limit for the kernel.
///
/// Each new amount is at least [`MemoryAmount::LEAST`]. Earlier versions accepted less, and stored jobs have it.
///
/// # Example
/// ```
/// use miserly_engine::MemoryAmount;
/// assert_eq!(MemoryAmount::from_bytes(5000).unwrap().kilobytes(), 5);
/// assert!(MemoryAmount::from_bytes(0).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoryAmount(NonZeroU64);

impl MemoryAmount {
    /// The least amount: a page.
    pub const LEAST: MemoryAmount = MemoryAmount(LEAST);

    /// Returns a number of bytes, rounded up to kilobytes.
    ///
    /// # Errors
    /// It is less than a page.
    pub fn from_bytes(bytes: u64) -> Result<MemoryAmount, Problem> {
        let least = LEAST.get() * 1024;
        if bytes < least {
            let message = format!("{bytes} B of memory: give at least {}, a page", memory(least));
            return Err(Problem::with_field("memory", message));
        }
        Ok(MemoryAmount::at_least(bytes.div_ceil(1024)))
    }

    /// Returns a number of kilobytes, at least a page.
    pub fn at_least(kilobytes: u64) -> MemoryAmount {
        MemoryAmount(NonZeroU64::new(kilobytes).unwrap_or(LEAST).max(LEAST))
    }

    /// Returns the number of kilobytes.
    pub const fn kilobytes(self) -> u64 {
        self.0.get()
    }
}

/// The memory of a job: an amount, or none where the pool accounts no memory.
///
/// It is stored as a number of kilobytes, 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobMemory(Option<MemoryAmount>);

impl JobMemory {
    /// No memory is accounted.
    pub const NONE: JobMemory = JobMemory(None);

    /// Returns the memory of a job in a queue that requests this number of bytes, or nothing.
    ///
    /// # Errors
    /// The amount is less than a page, or more than the pool has.
    pub(crate) fn requested(queue: &Queue, bytes: Option<u64>) -> Result<JobMemory, Problem> {
        let most = queue.pool.most().get(Kind::Memory);
        let amount = match bytes {
            // Where nothing is accounted, it is no request.
            None | Some(0) if most == 0 => return Ok(JobMemory::of_kilobytes(queue.terms.default_memory)),
            None => MemoryAmount::at_least(queue.terms.default_memory),
            Some(bytes) => MemoryAmount::from_bytes(bytes)?,
        };
        if most > 0 && amount.kilobytes() > most {
            let shown = |kilobytes: u64| memory(kilobytes.saturating_mul(1024));
            let (asked, most) = (shown(amount.kilobytes()), shown(most));
            let message = format!("{asked} of memory: queue {} has at most {most}", queue.name);
            return Err(refused_field("memory", message));
        }
        Ok(JobMemory(Some(amount)))
    }

    /// Returns a stored number of kilobytes; 0 for none.
    pub fn of_kilobytes(kilobytes: u64) -> JobMemory {
        JobMemory(NonZeroU64::new(kilobytes).map(MemoryAmount))
    }

    /// Returns the number of kilobytes; 0 for none.
    pub fn kilobytes(self) -> u64 {
        self.0.map_or(0, MemoryAmount::kilobytes)
    }

    /// Returns the limit of a job in a queue. Where memory is accounted, each job has one, also one that an earlier version stored
    /// without.
    pub(crate) fn limit_in(self, queue: &Queue) -> Option<MemoryAmount> {
        let accounted = queue.pool.most().get(Kind::Memory) > 0;
        self.0.or(accounted.then_some(MemoryAmount::LEAST))
    }
}

impl Serialize for JobMemory {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.kilobytes().serialize(to)
    }
}

impl<'de> Deserialize<'de> for JobMemory {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<JobMemory, D::Error> {
        u64::deserialize(from).map(JobMemory::of_kilobytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_at_least_a_page() {
        for bytes in [0, 1, 4095] {
            let problem = MemoryAmount::from_bytes(bytes).unwrap_err();
            assert_eq!(problem.field.as_deref(), Some("memory"));
            assert!(problem.message.ends_with("give at least 4KiB, a page"), "{problem:?}");
        }
        assert_eq!(MemoryAmount::from_bytes(4096).unwrap(), MemoryAmount::LEAST);
        assert_eq!(MemoryAmount::from_bytes(u64::MAX).unwrap().kilobytes(), u64::MAX.div_ceil(1024));
    }

    #[test]
    fn stored_numbers_of_earlier_versions_load() {
        let load = |text: &str| serde_json::from_str::<JobMemory>(text).unwrap();
        for (text, kilobytes) in [("0", 0), ("1", 1), ("4", 4), ("2048", 2048)] {
            assert_eq!(load(text).kilobytes(), kilobytes, "{text}");
            assert_eq!(serde_json::to_string(&load(text)).unwrap(), kilobytes.to_string());
        }
    }
}
