//! The versions of Slurm that are read, and what each one prints.

use serde::Serialize;

use crate::{Configuration, SlurmError};

/// The oldest version that is read: year and month.
const OLDEST: (u32, u32) = (22, 5);

/// The newest version of which the output is known.
const NEWEST: (u32, u32) = (26, 5);

/// The newest version that is driven. On a real 26.05 the driver takes no nodes.
const NEWEST_DRIVEN: (u32, u32) = (25, 11);

/// What is known of a version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is read, and the driver knows it.
    Driven,
    /// It is read. The driver refuses it without a word of its administrator.
    Read,
    /// It is later than all versions of which the output is known.
    #[default]
    Unknown,
}

/// A form of output that is not the same in all versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Form {
    /// What it stands for.
    pub what: &'static str,
    /// The first version with this form: year and month.
    pub since: (u32, u32),
    /// What Slurm prints.
    pub prints: &'static str,
    /// How it is read.
    pub read_as: &'static str,
}

/// The forms, each from a version on, from the sources of Slurm: `slurm_sprint_job_info` of `src/api/job_info.c`, since 24.11
/// `src/scontrol/info_job.c`, and `src/common/slurm_opt.c`.
const FORMS: [Form; 11] = [
    Form {
        what: "a job with its nodes to itself",
        since: (22, 5),
        prints: "scontrol: OverSubscribe=NO, or EXCLUSIVE; OK with other jobs",
        read_as: "whole nodes",
    },
    Form {
        what: "a job with its nodes to itself",
        since: (26, 5),
        prints: "scontrol: Exclusive=NODE, or TOPO, after OverSubscribe, which is NO with most jobs",
        read_as: "whole nodes",
    },
    Form {
        what: "a partition of whole nodes",
        since: (22, 5),
        prints: "scontrol: OverSubscribe=EXCLUSIVE",
        read_as: "whole nodes",
    },
    Form {
        what: "a partition of whole nodes",
        since: (26, 5),
        prints: "scontrol: OverSubscribe=NO Exclusive=NODE, or TOPO",
        read_as: "whole nodes",
    },
    Form {
        what: "the comment of a job",
        since: (22, 5),
        prints: "scontrol: two blanks end it, and a blank within may look so",
        read_as: "Comment of squeue -O, byte for byte",
    },
    Form {
        what: "the comment of a job",
        since: (25, 11),
        prints: "scontrol: one blank ends it; SubmitLine, a text of the user, is before it",
        read_as: "Comment of squeue -O, byte for byte",
    },
    Form {
        what: "generic resources",
        since: (22, 5),
        prints: "TresPerNode=gres:gpu:2",
        read_as: "two GPUs on each node",
    },
    Form {
        what: "generic resources",
        since: (23, 11),
        prints: "TresPerNode=gres/gpu:2",
        read_as: "two GPUs on each node",
    },
    Form {
        what: "processors of a task",
        since: (22, 5),
        prints: "CPUs/Task=2",
        read_as: "two processors for a task",
    },
    Form {
        what: "processors of a task",
        since: (23, 11),
        prints: "CPUs/Task=2, and TresPerTask=cpu:2, since 24.05 cpu=2",
        read_as: "two processors for a task, and no generic resource",
    },
    Form {
        what: "memory by GPU",
        since: (22, 5),
        prints: "MinMemoryNode=0, since 24.11 MinMemoryTRES=1500M; MemPerTres has it by GPU",
        read_as: "the memory of all GPUs of a node",
    },
];

/// Returns the forms of a version. One that is unknown is read as the newest.
pub(crate) fn forms_of(version: &str) -> impl Iterator<Item = Form> {
    let version = parsed(version).unwrap_or(NEWEST);
    let later = move |form: &Form| {
        FORMS
            .iter()
            .any(|other| other.what == form.what && other.since > form.since && other.since <= version)
    };
    FORMS.into_iter().filter(move |form| form.since <= version && !later(form))
}

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
        match self.standing() {
            Standing::Driven => Ok(()),
            _ => Err(SlurmError::Untested { version, oldest: shown(OLDEST), newest: shown(NEWEST_DRIVEN) }),
        }
    }

    /// Returns what is known of the version of the controller.
    pub fn standing(&self) -> Standing {
        match parsed(&self.version) {
            Some(version) if version <= NEWEST_DRIVEN => Standing::Driven,
            Some(version) if version <= NEWEST => Standing::Read,
            _ => Standing::Unknown,
        }
    }

    /// Returns a warning if the version of the controller is later than all known ones, or is none.
    pub fn unknown_version(&self) -> Option<String> {
        (self.standing() == Standing::Unknown).then(|| {
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
        let standing = |version| of(version).standing();
        assert_eq!(
            ["24.11.5", "26.05.1", "26.11.0"].map(standing),
            [Standing::Driven, Standing::Read, Standing::Unknown]
        );
        assert!(of("25.11.2").check_tested().is_ok() && of("26.05.5").check_tested().is_err());
    }

    #[test]
    fn each_version_has_one_form_of_each_thing() {
        let things: std::collections::BTreeSet<&str> = FORMS.iter().map(|form| form.what).collect();
        for version in ["22.05.8", "23.02.7", "23.11.10", "24.11.5", "25.11.2", "26.05.3", "unknown"] {
            let forms: Vec<Form> = forms_of(version).collect();
            assert_eq!(forms.len(), things.len(), "{version}: {forms:?}");
        }
        let whole = |version| forms_of(version).next().unwrap().prints;
        assert!(
            whole("25.11.9").contains("OverSubscribe=NO, or") && whole("26.05.0").contains("Exclusive=NODE")
        );
    }
}
