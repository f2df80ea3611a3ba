//! The built-in machines.

use miserly_core::{Kind, Resources};

use crate::hosts::Hosts;

/// The names of the built-in machines.
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

/// Returns the hosts of the built-in machine of that name.
pub(crate) fn built_in(name: &str) -> Option<Vec<Hosts>> {
    (name == "o2k").then(|| O2K.map(host).into())
}

fn host((name, cpus, gigabytes): (&str, u64, u64)) -> Hosts {
    let each = Resources::cpus(cpus).with(Kind::Memory, gigabytes * GIGABYTE);
    Hosts { name: name.into(), count: None, each }
}
