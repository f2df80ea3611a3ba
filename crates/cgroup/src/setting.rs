//! Settings of a group, written and read back.

use crate::{CgroupError, Group, format_cpus, parse_cpus};

/// The size of a page. The kernel cuts amounts of memory to whole pages.
const PAGE: u64 = 4096;

/// The file with the state of a partition.
pub(crate) const PARTITION: &str = "cpuset.cpus.partition";
/// The state of a valid partition.
const ROOT: &str = "root";
/// The state of a group that is no partition.
pub(crate) const MEMBER: &str = "member";
/// The file with the processors of partitions.
pub(crate) const EXCLUSIVE: &str = "cpuset.cpus.exclusive";

/// A setting of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// The processors on which the group may run (`cpuset.cpus`). They are all effective, or the setting fails. An empty list
    /// leaves all that the group above has, also if a partition takes some of them later.
    Cpus(Vec<u32>),
    /// The processors that this group or one below may have as a partition (`cpuset.cpus.exclusive`).
    ExclusiveCpus(Vec<u32>),
    /// Whether the exclusive processors are taken from all other groups (`cpuset.cpus.partition`).
    Partition(bool),
    /// Whether the group runs only where nothing else wants to (`cpu.idle`).
    Idle(bool),
    /// The share of the processors beside other groups: 1 to 10000 (`cpu.weight`).
    Weight(u32),
    /// Bytes that are taken from others before they are taken from the group (`memory.min`).
    MemoryMin(u64),
    /// Maximum bytes of memory; `None` is no limit (`memory.max`).
    MemoryMax(Option<u64>),
    /// Maximum bytes of swap; `None` is no limit (`memory.swap.max`).
    SwapMax(Option<u64>),
    /// Whether the kernel kills all processes if memory is exhausted, or only one (`memory.oom.group`).
    KillTogether(bool),
    /// Maximum number of processes and threads; `None` is no limit (`pids.max`).
    Pids(Option<u64>),
}

impl Setting {
    /// Returns the name of the file.
    pub const fn file(&self) -> &'static str {
        match self {
            Setting::Cpus(_) => "cpuset.cpus",
            Setting::ExclusiveCpus(_) => EXCLUSIVE,
            Setting::Partition(_) => PARTITION,
            Setting::Idle(_) => "cpu.idle",
            Setting::Weight(_) => "cpu.weight",
            Setting::MemoryMin(_) => "memory.min",
            Setting::MemoryMax(_) => "memory.max",
            Setting::SwapMax(_) => "memory.swap.max",
            Setting::KillTogether(_) => "memory.oom.group",
            Setting::Pids(_) => "pids.max",
        }
    }

    /// Returns the text to write.
    fn text(&self) -> String {
        match self {
            Setting::Cpus(cpus) | Setting::ExclusiveCpus(cpus) => format_cpus(cpus),
            Setting::Partition(on) => if *on { ROOT } else { MEMBER }.to_owned(),
            Setting::Idle(on) | Setting::KillTogether(on) => u8::from(*on).to_string(),
            Setting::MemoryMin(bytes) => whole_pages(*bytes).to_string(),
            Setting::MemoryMax(bytes) | Setting::SwapMax(bytes) => limit(bytes.map(whole_pages)),
            Setting::Weight(weight) => weight.to_string(),
            Setting::Pids(number) => limit(*number),
        }
    }

    /// Returns the file with the value that the kernel follows.
    const fn effective(&self) -> &'static str {
        match self {
            Setting::Cpus(_) => "cpuset.cpus.effective",
            _ => self.file(),
        }
    }

    /// Applies the setting and reads it back.
    ///
    /// # Errors
    /// [`CgroupError::Io`] if the kernel refuses it, [`CgroupError::Differs`] if it has another value afterwards.
    pub fn apply(&self, group: &Group) -> Result<(), CgroupError> {
        let written = self.text();
        group.write(self.file(), &written)?;
        let found = group.read(self.effective())?;
        let is_equal = match self {
            Setting::Cpus(cpus) => {
                cpus.is_empty() || parse_cpus(&found).is_ok_and(|found| found == sorted(cpus))
            }
            _ => found == written,
        };
        if is_equal {
            return Ok(());
        }
        Err(CgroupError::Differs { path: group.path().join(self.effective()), written, found })
    }
}

fn sorted(cpus: &[u32]) -> Vec<u32> {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
}

const fn whole_pages(bytes: u64) -> u64 {
    bytes / PAGE * PAGE
}

fn limit(number: Option<u64>) -> String {
    number.map_or_else(|| "max".to_owned(), |number| number.to_string())
}
