//! The machines that come with the program.

use miserly_core::{Kind, Resources};

use super::{Hosts, MachineSpec};

/// The names of the machines that come with the program.
pub const BUILT_IN: &[&str] = &["o2k"];

/// The hosts of the NCSA Origin 2000: name, processors, memory in gigabytes (Chiang and Vernon, Table 2).
const O2K: [(&str, u64, u64); 8] = [
    ("eir", 128, 64),
    ("nerthus", 128, 64),
    ("jord1", 128, 32),
    ("saga1", 128, 32),
    ("huldra", 128, 32),
    ("hod1", 128, 64),
    ("mimir", 128, 32),
    ("modi2", 64, 16),
];

/// Kilobytes in a gigabyte: the table's 64 GB on 128 processors are 512 MB each.
const GIGABYTE: u64 = 1 << 20;

impl MachineSpec {
    /// The machine of that name, if it comes with the program.
    pub(super) fn built_in(name: &str) -> Option<MachineSpec> {
        (name == "o2k").then(|| MachineSpec::of(name.into(), O2K.map(host).into()))
    }
}

fn host((name, cpus, gigabytes): (&str, u64, u64)) -> Hosts {
    let each = Resources::cpus(cpus).with(Kind::Memory, gigabytes * GIGABYTE);
    Hosts { name: name.into(), count: None, each }
}
