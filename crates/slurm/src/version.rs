//! The versions of Slurm that are read.

use crate::{Configuration, SlurmError};

/// The oldest version that is read: year and month.
const OLDEST: (u32, u32) = (22, 5);

/// The newest version of which the output is known.
const NEWEST: (u32, u32) = (26, 5);

/// The newest version that is driven. On a real 26.05 the driver takes no nodes.
const NEWEST_DRIVEN: (u32, u32) = (25, 11);

impl Configuration {
    /// Checks that the controller is of a version that can be read.
    pub(crate) fn check_version(&self) -> Result<(), SlurmError> {
        let version = self.version.clone();
        match parsed(&version) {
            Some(of) if of < OLDEST => Err(SlurmError::TooOld { version, oldest: shown(OLDEST) }),
            _ => Ok(()),
        }
    }

    /// Checks that the controller is of a version that may be driven. In another one a word may have another meaning: since 26.05
    /// `OverSubscribe=NO` stands with ordinary jobs.
    ///
    /// # Errors
    /// [`SlurmError::Untested`].
    pub fn check_tested(&self) -> Result<(), SlurmError> {
        let version = self.version.clone();
        match parsed(&version) {
            Some(of) if of <= NEWEST_DRIVEN => Ok(()),
            _ => Err(SlurmError::Untested { version, oldest: shown(OLDEST), newest: shown(NEWEST_DRIVEN) }),
        }
    }

    /// Returns a warning if the version of the controller is later than all known ones, or is none.
    pub fn unknown_version(&self) -> Option<String> {
        let is_known = parsed(&self.version).is_some_and(|version| version <= NEWEST);
        (!is_known).then(|| {
            format!(
                "Slurm {} is unknown to this program, which knows versions up to {}: compare with squeue and sinfo",
                self.version,
                shown(NEWEST)
            )
        })
    }
}

fn shown((year, month): (u32, u32)) -> String {
    format!("{year}.{month:02}")
}

/// Returns year and month of a version such as `24.11.5` or `22.05.8-2`.
fn parsed(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_versions_are_refused_and_new_ones_are_named() {
        let of = |version: &str| Configuration { version: version.to_owned(), ..Configuration::default() };
        let refused = of("21.08.8-2").check_version().unwrap_err().to_string();
        assert_eq!(refused, "Slurm 21.08.8-2 is too old: version 22.05 or a later one is needed");
        for known in ["22.05.0-0rc1", "22.05.8", "23.11.10", "24.11.5", "25.11.1", "26.05.5"] {
            assert!(of(known).check_version().is_ok(), "{known}");
            assert_eq!(of(known).unknown_version(), None, "{known}");
        }
        for unknown in ["26.11.0", "next", ""] {
            assert!(of(unknown).check_version().is_ok(), "{unknown}");
            let said = of(unknown).unknown_version().unwrap();
            assert!(said.contains("up to 26.05"), "{said}");
            let refused = of(unknown).check_tested().unwrap_err().to_string();
            assert!(refused.contains("from 22.05 to 25.11"), "{refused}");
        }
        assert!(of("25.11.2").check_tested().is_ok() && of("26.05.5").check_tested().is_err());
    }
}
