//! Lists of processors as the kernel writes them: `0-3,8`.

use std::fmt::Write;
use std::{fs, io};

/// The file with the online processors.
pub(crate) const ONLINE: &str = "/sys/devices/system/cpu/online";
/// The file with the processors that can be online.
pub(crate) const POSSIBLE: &str = "/sys/devices/system/cpu/possible";

/// The highest accepted processor number, far beyond the limit of any kernel.
const MAX: u32 = 65_535;

/// A text that is not a list of processors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a list of processors such as 0-3,8 (0 to {MAX})")]
pub struct CpuListError(pub String);

/// Returns processors as the kernel writes them. They need not be sorted.
///
/// ```
/// assert_eq!(miserly_cgroup::format_cpus(&[8, 1, 0, 2]), "0-2,8");
/// ```
pub fn format_cpus(cpus: &[u32]) -> String {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut text = String::new();
    for range in sorted.chunk_by(|one, next| one + 1 == *next) {
        let comma = if text.is_empty() { "" } else { "," };
        let (first, last) = (range[0], range[range.len() - 1]);
        // Writing to a text does not fail.
        let _ = if first == last {
            write!(text, "{comma}{first}")
        } else {
            write!(text, "{comma}{first}-{last}")
        };
    }
    text
}

/// Returns the online processors of the machine, by number.
///
/// # Errors
/// They cannot be read.
pub fn online_cpus() -> io::Result<Vec<u32>> {
    read(ONLINE)
}

/// Returns the processors in a file of the kernel, by number.
pub(crate) fn read(path: &str) -> io::Result<Vec<u32>> {
    parse_cpus(&fs::read_to_string(path)?).map_err(io::Error::other)
}

/// Parses processors, ascending. An empty text is no processor.
///
/// # Errors
/// [`CpuListError`] with the text.
pub fn parse_cpus(text: &str) -> Result<Vec<u32>, CpuListError> {
    let error = || CpuListError(text.to_owned());
    let mut cpus = vec![];
    for range in text.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number <= MAX).ok_or_else(error);
        cpus.extend(number(first)?..=number(last)?);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_list_is_read_as_it_was_written(cpus in prop::collection::btree_set(0..5000_u32, 0..200)) {
            let cpus: Vec<u32> = cpus.into_iter().collect();
            prop_assert_eq!(parse_cpus(&format_cpus(&cpus)).unwrap(), cpus);
        }

        #[test]
        fn no_text_is_a_panic(text in ".{0,20}") {
            let _ = parse_cpus(&text);
        }
    }

    #[test]
    fn as_the_kernel_writes_them() {
        assert_eq!(format_cpus(&[3, 1, 2, 2, 5]), "1-3,5");
        assert_eq!(parse_cpus("0-1,4\n").unwrap(), [0, 1, 4]);
        assert_eq!(parse_cpus("\n").unwrap(), [0_u32; 0]);
        for wrong in ["a", "1-", "-1", "1-99999999"] {
            assert_eq!(parse_cpus(wrong), Err(CpuListError(wrong.into())));
        }
    }
}
