//! Instants that are stored. Each names the boot whose clock it was read from.
//!
//! > **Architecture invariant:** a record on disk has no bare [`BootTime`]. The clock begins again with each boot, so a bare
//! > one read after a reboot would be another instant.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use crate::time::BootTime;

/// The identifier of a boot of the machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootId(Box<str>);

impl From<&str> for BootId {
    fn from(id: &str) -> BootId {
        BootId(id.into())
    }
}

impl Display for BootId {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A stored instant: a time of the clock of one boot.
///
/// Instants of two boots have no order here. The daemon knows how far apart the boots are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredInstant {
    at: BootTime,
    /// `None` in a record of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boot_id: Option<BootId>,
}

impl StoredInstant {
    /// Returns an instant of a boot.
    pub const fn new(at: BootTime, boot: BootId) -> StoredInstant {
        StoredInstant { at, boot_id: Some(boot) }
    }

    /// Returns the time of the clock and the boot, unless the record does not name it.
    pub const fn parts(&self) -> (BootTime, Option<&BootId>) {
        (self.at, self.boot_id.as_ref())
    }

    /// Returns the time of the clock if the instant is of this boot.
    pub fn boot_time(&self, boot: &BootId) -> Option<BootTime> {
        (self.boot_id.as_ref() == Some(boot)).then_some(self.at)
    }

    /// Returns the same instant. If it names no boot, it is of this one.
    #[must_use]
    pub(crate) fn or_boot(self, boot: Option<BootId>) -> StoredInstant {
        StoredInstant { boot_id: self.boot_id.or(boot), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_of_its_boot_only() {
        let (one, two) = (BootId::from("one"), BootId::from("two"));
        let instant = StoredInstant::new(BootTime(5), one.clone());
        assert_eq!((instant.boot_time(&one), instant.boot_time(&two)), (Some(BootTime(5)), None));
        assert_eq!(instant.clone().or_boot(Some(two.clone())), instant);
        assert_eq!(serde_json::to_string(&instant).unwrap(), r#"{"at":5,"boot_id":"one"}"#);

        let earlier: StoredInstant = serde_json::from_str(r#"{"at":5}"#).unwrap();
        assert_eq!((earlier.boot_time(&one), earlier.parts()), (None, (BootTime(5), None)));
        assert_eq!(earlier.or_boot(Some(two.clone())).boot_time(&two), Some(BootTime(5)));
    }
}
