//! Pressure stall information: the share of the time in which processes wait for a resource.

use std::fs;
use std::path::Path;

use crate::Group;

/// The pressure on one resource. A kernel may report a part only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Some process waits.
    pub some: Option<Stall>,
    /// All processes that are not idle wait.
    pub full: Option<Stall>,
}

/// Shares of the time, in hundredths of a percent: 0 to 10000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stall {
    /// The last 10 seconds.
    pub avg10: u32,
    /// The last minute.
    pub avg60: u32,
    /// The last five minutes.
    pub avg300: u32,
}

/// The resources whose pressure the kernel reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Processors.
    Cpu,
    /// Memory.
    Memory,
}

impl Resource {
    const fn name(self) -> &'static str {
        match self {
            Resource::Cpu => "cpu",
            Resource::Memory => "memory",
        }
    }
}

impl Pressure {
    /// Returns the pressure on the machine. Returns `None` if the kernel does not report it.
    pub fn of_machine(resource: Resource) -> Option<Pressure> {
        let text = fs::read_to_string(Path::new("/proc/pressure").join(resource.name())).ok()?;
        Pressure::parse(&text)
    }

    /// Returns the pressure on a group. Returns `None` if the kernel does not report it.
    pub fn of_group(group: &Group, resource: Resource) -> Option<Pressure> {
        Pressure::parse(&group.read(&format!("{}.pressure", resource.name())).ok()?)
    }

    /// Parses lines such as `some avg10=0.12 avg60=0.00 avg300=0.00 total=5`. Returns `None` if there is none.
    ///
    /// ```
    /// use miserly_cgroup::Pressure;
    /// let pressure = Pressure::parse("some avg10=1.50 avg60=0.07 avg300=0.00 total=9\n").unwrap();
    /// assert_eq!((pressure.some.unwrap().avg10, pressure.full), (150, None));
    /// ```
    pub fn parse(text: &str) -> Option<Pressure> {
        let stall = |kind: &str| text.lines().find_map(|line| Stall::parse(line.strip_prefix(kind)?));
        let pressure = Pressure { some: stall("some "), full: stall("full ") };
        (pressure != Pressure::default()).then_some(pressure)
    }
}

impl Stall {
    fn parse(line: &str) -> Option<Stall> {
        let value = |key: &str| line.split(' ').find_map(|word| hundredths(word.strip_prefix(key)?));
        Some(Stall { avg10: value("avg10=")?, avg60: value("avg60=")?, avg300: value("avg300=")? })
    }
}

/// Returns a number with two decimals in hundredths.
fn hundredths(text: &str) -> Option<u32> {
    let (whole, decimals) = text.split_once('.')?;
    let decimals = (decimals.len() == 2).then(|| decimals.parse::<u32>().ok())??;
    whole.parse::<u32>().ok()?.checked_mul(100)?.checked_add(decimals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lines_of_the_kernel() {
        let text = "some avg10=12.34 avg60=0.50 avg300=100.00 total=123\nfull avg10=0.00 avg60=0.00 avg300=0.01 total=0\n";
        let some = Stall { avg10: 1234, avg60: 50, avg300: 10_000 };
        let full = Stall { avg10: 0, avg60: 0, avg300: 1 };
        assert_eq!(Pressure::parse(text), Some(Pressure { some: Some(some), full: Some(full) }));
    }

    #[test]
    fn another_text_is_no_pressure() {
        for text in
            ["", "some", "some avg10=1", "some avg10=-1.00 avg60=0.00 avg300=0.00", "none avg10=1.00\n"]
        {
            assert_eq!(Pressure::parse(text), None, "{text}");
        }
    }
}
