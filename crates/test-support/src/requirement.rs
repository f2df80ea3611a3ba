//! Privileges, tools and data that a test needs, and the switches that require them.

use std::io::Write;
use std::{env, io, thread};

/// A privilege, a tool or data that some machines lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// A folder of real logs, named by `MISERLY_TRACES`.
    Traces,
    /// A Chromium on the path, or named by `MISERLY_BROWSER`.
    Browser,
    /// The rights of root, for a test under the identity of another user.
    Root,
    /// Two processors, for two jobs at the same time.
    Cpus,
    /// The right to mount a small file system.
    Mount,
    /// The right to mount a small file system in a user namespace.
    Namespaces,
    /// The right to move a process out of the kernel's idle class.
    IdleClass,
    /// A kernel that schedules sessions as groups (`/proc/self/autogroup`).
    Autogroup,
    /// An `strace` that lets system calls fail.
    Strace,
    /// A mounted cgroup v2 in which the test may create groups.
    Cgroup,
    /// The rights of root and `useradd`, for a test that creates accounts.
    Accounts,
    /// The rights of root and the programs of Slurm and `MariaDB`, for a cluster of the test's own.
    Slurm,
    /// A `tmux`, for a terminal of the test's own.
    Tmux,
    /// A compiler of C with OpenMP, and Python 3, for examples in these languages.
    Languages,
}

/// The consequence of a requirement for one test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Run,
    Skip,
    Fail,
}

impl Requirement {
    /// All requirements.
    pub const ALL: [Requirement; 14] = [
        Requirement::Traces,
        Requirement::Browser,
        Requirement::Root,
        Requirement::Cpus,
        Requirement::Mount,
        Requirement::Namespaces,
        Requirement::IdleClass,
        Requirement::Autogroup,
        Requirement::Strace,
        Requirement::Cgroup,
        Requirement::Accounts,
        Requirement::Slurm,
        Requirement::Tmux,
        Requirement::Languages,
    ];

    /// Returns the name of the environment variable that turns a skip into a failure where it is 1.
    pub const fn switch(self) -> &'static str {
        match self {
            Requirement::Traces => "MISERLY_REQUIRE_TRACES",
            Requirement::Browser => "MISERLY_REQUIRE_BROWSER",
            Requirement::Root => "MISERLY_REQUIRE_ROOT",
            Requirement::Cpus => "MISERLY_REQUIRE_CPUS",
            Requirement::Mount => "MISERLY_REQUIRE_MOUNT",
            Requirement::Namespaces => "MISERLY_REQUIRE_NAMESPACES",
            Requirement::IdleClass => "MISERLY_REQUIRE_IDLE_CLASS",
            Requirement::Autogroup => "MISERLY_REQUIRE_AUTOGROUP",
            Requirement::Strace => "MISERLY_REQUIRE_STRACE",
            Requirement::Cgroup => "MISERLY_REQUIRE_CGROUP",
            Requirement::Accounts => "MISERLY_REQUIRE_ACCOUNTS",
            Requirement::Slurm => "MISERLY_REQUIRE_SLURM",
            Requirement::Tmux => "MISERLY_REQUIRE_TMUX",
            Requirement::Languages => "MISERLY_REQUIRE_LANGUAGES",
        }
    }

    /// Returns whether the switch is 0: the tests are left out although the machine has what they need. Reports the skip.
    pub fn is_left_out(self) -> bool {
        let left_out = env::var_os(self.switch()).is_some_and(|value| value == "0");
        if left_out {
            report("is left out", self.switch());
        }
        left_out
    }

    /// Returns whether the test can run. If not, reports the skip on standard error.
    ///
    /// `missing` completes the report: "needs two processors".
    ///
    /// # Panics
    /// If the requirement is not `met` and its switch is set.
    #[track_caller]
    pub fn is_met(self, met: bool, missing: &str) -> bool {
        let switch = self.switch();
        let required = env::var_os(switch).is_some_and(|value| value == "1");
        match verdict(met, required) {
            Verdict::Run => true,
            Verdict::Fail => panic!("{missing}; {switch}=1 allows no skip"),
            Verdict::Skip => {
                report(missing, switch);
                false
            }
        }
    }
}

fn verdict(met: bool, required: bool) -> Verdict {
    match (met, required) {
        (true, _) => Verdict::Run,
        (false, false) => Verdict::Skip,
        (false, true) => Verdict::Fail,
    }
}

/// Writes to the stream directly, because the test harness drops the output of macros in a test that passes.
fn report(missing: &str, switch: &str) {
    let test = thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("skipped: {test}: {missing} ({switch}=1 makes this a failure)\n");
    // A report that cannot be written changes no result. One write keeps the line whole beside other tests.
    let _ = io::stderr().write_all(line.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::{Requirement, Verdict, verdict};

    #[test]
    fn only_a_required_requirement_that_is_missing_is_a_failure() {
        assert_eq!(verdict(true, true), Verdict::Run);
        assert_eq!(verdict(true, false), Verdict::Run);
        assert_eq!(verdict(false, false), Verdict::Skip);
        assert_eq!(verdict(false, true), Verdict::Fail);
    }

    #[test]
    fn every_switch_is_documented_and_set_by_the_checks() {
        let project = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        for file in [".ci/testing.md", ".ci/run"] {
            let text = std::fs::read_to_string(format!("{project}/{file}")).expect("a file of the project");
            for requirement in Requirement::ALL {
                assert!(text.contains(requirement.switch()), "{} is not in {file}", requirement.switch());
            }
        }
    }
}
