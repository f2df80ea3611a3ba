//! The versions of Slurm that are read, and what each one prints.

use serde::Serialize;

use crate::{Configuration, SlurmError};

/// The oldest version that is read: year and month.
const OLDEST: (u32, u32) = (22, 5);

/// The newest version of which the output is known.
const NEWEST: (u32, u32) = (26, 5);

/// The versions with tests on a real cluster, in order.
const TESTED: [(u32, u32); 3] = [OLDEST, (24, 11), NEWEST];

/// What is known of a version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is tested on a real cluster.
    Tested,
    /// Its output is known from its sources.
    Known,
    /// It is later than all versions of which the output is known. The driver refuses it, unless its administrator insists.
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
    forms_at(parsed(version).unwrap_or(NEWEST))
}

fn forms_at(version: (u32, u32)) -> impl Iterator<Item = Form> {
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

    /// Checks that the output of the controller's version is known. In another one a word may have another meaning: since 26.05
    /// `OverSubscribe=NO` stands with ordinary jobs.
    ///
    /// # Errors
    /// [`SlurmError::Untested`].
    pub fn check_known(&self) -> Result<(), SlurmError> {
        if self.standing() == Standing::Unknown {
            let [oldest, newest] = [OLDEST, NEWEST].map(shown);
            return Err(SlurmError::Untested { version: self.version.clone(), oldest, newest });
        }
        Ok(())
    }

    /// Returns what is known of the version of the controller.
    pub fn standing(&self) -> Standing {
        match parsed(&self.version) {
            Some(version) if TESTED.contains(&version) => Standing::Tested,
            Some(version) if version <= NEWEST => Standing::Known,
            _ => Standing::Unknown,
        }
    }

    /// Returns a warning if the output of the controller's version is not known.
    pub fn unknown_version(&self) -> Option<String> {
        (self.standing() == Standing::Unknown).then(|| {
            format!(
                "Slurm {} is unknown, and read as {}: `miserly slurm check` compares what its commands print",
                self.version,
                shown(NEWEST)
            )
        })
    }

    /// Returns a warning if the version of the controller is not tested, with its differences from the tested version before it.
    pub fn untested_version(&self) -> Option<String> {
        let version = parsed(&self.version).filter(|_| self.standing() == Standing::Known);
        let Some(version) = version else { return self.unknown_version() };
        let before = *TESTED.iter().rev().find(|tested| **tested < version)?;
        let known: Vec<Form> = forms_at(before).collect();
        let others = forms_at(version).filter(|form| !known.contains(form));
        let others: Vec<String> = others.map(|form| format!("{} ({})", form.what, form.prints)).collect();
        let differs = if others.is_empty() {
            format!("has the forms of {}", shown(before))
        } else {
            format!("differs from {} in {}", shown(before), others.join("; "))
        };
        Some(format!(
            "Slurm {} is not tested; by its sources it {differs}. `miserly slurm check` compares what its commands print",
            self.version
        ))
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
            assert!(said.contains("read as 26.05: `miserly slurm check`"), "{said}");
            assert_eq!(of(unknown).untested_version(), Some(said));
            let refused = of(unknown).check_known().unwrap_err().to_string();
            assert!(
                refused.contains("from 22.05 to 26.05") && refused.contains("`miserly slurm check --probe`"),
                "{refused}"
            );
        }
        let standing = |version| of(version).standing();
        assert_eq!(
            ["24.11.5", "25.05.1", "26.05.1", "26.11.0"].map(standing),
            [Standing::Tested, Standing::Known, Standing::Tested, Standing::Unknown]
        );
        assert!(of("25.11.2").check_known().is_ok() && of("26.05.5").check_known().is_ok());
    }

    #[test]
    fn an_untested_version_differs_from_the_tested_one_before_it() {
        let warning = |version: &str| {
            Configuration { version: version.to_owned(), ..Configuration::default() }.untested_version()
        };
        assert_eq!(["22.05.8", "24.11.5", "26.05.5"].map(warning), [None, None, None]);
        let of = |version: &str| warning(version).unwrap();
        assert!(
            of("25.11.2")
                .contains("differs from 24.11 in the comment of a job (scontrol: one blank ends it;")
        );
        assert!(!of("25.11.2").contains("generic resources"), "{}", of("25.11.2"));
        assert!(of("23.11.10").contains("generic resources (TresPerNode=gres/gpu:2); processors of a task"));
        assert!(of("25.05.3").contains("by its sources it has the forms of 24.11"), "{}", of("25.05.3"));
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
