//! The priority over other programs of a job in its window.

use std::fs;
use std::path::Path;

use miserly_cgroup::{Capability, group_of};
use miserly_launch::{
    BootTime, CriticalMeans, CriticalPriority, MachineClock as _, RunMode, ShimCommand, priority_rights,
};
use miserly_test_support::Requirement;

use crate::support::{SECOND, Test, cpus, done, kill, output, stat, until};
use crate::users::of_user;

const ROUND_ROBIN: &str = "2";

/// Prints the pids of a parent, of a child, and of a child in a session of its own.
const THREE: &str = "sh -c 'echo $$; sleep 100; :' & setsid sh -c 'echo $$; sleep 100; :' & echo $$; wait";

impl Test {
    fn with(mut self, priority: CriticalPriority) -> Test {
        self.spec.critical_priority = priority;
        self
    }

    /// Returns the nice value of its processes in the window.
    fn nice(&self) -> i32 {
        if self.group_can(Capability::Idle) { 0 } else { -20 }
    }
}

/// Returns the weight of a process's control group, and those of the two groups of the tree, if they have any.
fn weights(pid: u32) -> Vec<String> {
    let folder = group_of(pid).map(|group| group.path().to_owned()).unwrap_or_default();
    let read = |folder: &Path| fs::read_to_string(folder.join("cpu.weight")).ok();
    folder.ancestors().take(3).filter_map(read).map(|text| text.trim().to_owned()).collect()
}

/// Returns whether this user may raise priorities.
fn may_raise() -> bool {
    Requirement::Root.is_met(priority_rights().nice && priority_rights().real_time, "needs CAP_SYS_NICE")
}

/// Returns the nice values of a process and of its session. A kernel without autogroups has none of sessions.
fn nice(pid: u32) -> (i32, Option<i32>) {
    let own = stat(pid).expect("a process")[16].parse().unwrap();
    let session = fs::read_to_string(format!("/proc/{pid}/autogroup")).ok();
    (own, session.and_then(|line| line.trim().rsplit(' ').next()?.parse().ok()))
}

/// Returns whether a process and its session have this nice value.
fn has_nice(pid: u32, value: i32) -> bool {
    let (own, session) = nice(pid);
    own == value && session.is_none_or(|session| session == value)
}

#[test]
fn a_job_that_starts_in_its_window_is_raised_if_it_has_a_priority() {
    if !may_raise() {
        return;
    }
    for (priority, raised) in [(CriticalPriority::Off, false), (CriticalPriority::Auto, true)] {
        let test = Test::new("echo $$; sleep 100").with(priority);
        let mut shim = test.launch();
        let pid = test.pids(1)[0];
        let value = if raised { test.nice() } else { 0 };
        until(|| has_nice(pid, value).then_some(()));
        if test.group_can(Capability::Idle) {
            let weights = weights(pid);
            assert_eq!(weights[0], if raised { "10000" } else { "100" });
            // Other tests use the same tree.
            assert!(!raised || weights == ["10000"; 3], "{weights:?}");
        }
        kill(&mut shim);
    }
}

#[test]
fn all_processes_of_an_opportunistic_job_are_raised_at_its_window() {
    if !may_raise() {
        return;
    }
    let mut test = Test::new(THREE).with(CriticalPriority::Auto);
    test.spec.mode = RunMode::Opportunistic { cpus: cpus(), window: None };
    let mut shim = test.launch();
    let pids = test.pids(3);
    assert!(pids.iter().all(|pid| nice(*pid).0 == 0));
    let end = BootTime::now().after(60 * SECOND);
    let state = done(&mut shim, &ShimCommand::BeginWindow { cpus: cpus(), end });
    assert!(!state.idle);
    for pid in pids {
        until(|| has_nice(pid, test.nice()).then_some(()));
        assert!(!test.group_can(Capability::Idle) || weights(pid) == ["10000"; 3]);
    }
    // The shim is no process of the job.
    assert!(has_nice(shim.identity().pid, 0));
    kill(&mut shim);
}

#[test]
fn a_job_of_real_time_is_so_by_choice_only() {
    if !may_raise() {
        return;
    }
    for (priority, class) in [(CriticalPriority::Auto, "0"), (CriticalPriority::RealTime, ROUND_ROBIN)] {
        let test = Test::new("echo $$; sleep 100").with(priority);
        let mut shim = test.launch();
        assert_eq!(stat(test.pids(1)[0]).unwrap()[38], class);
        kill(&mut shim);
    }
}

#[test]
fn a_job_of_a_user_cannot_raise_itself_and_cannot_come_back() {
    let script = "grep -E 'nice|realtime prio' /proc/$$/limits; own() { cut -d' ' -f19 /proc/$$/stat; }; \
                  renice 5 $$ >/dev/null; own; renice -20 $$ >/dev/null 2>&1; own; chrt -r -p 1 $$ >/dev/null 2>&1; \
                  cut -d' ' -f41 /proc/$$/stat; grep -c CapEff:.0000000000000000 /proc/$$/status";
    let Some(test) = of_user(script) else { return };
    let limits = [rustix::process::Resource::Nice, rustix::process::Resource::Rtprio];
    // The limits of the launcher would permit it.
    for limit in limits {
        let all = rustix::process::Rlimit { current: Some(30), maximum: Some(30) };
        // Only with CAP_SYS_RESOURCE. Without it they forbid it anyway.
        let _ = rustix::process::setrlimit(limit, all);
    }
    let test = test.with(CriticalPriority::Auto);
    let out = output(&test);
    let words: Vec<&str> = out.split_whitespace().collect();
    let none = |name: &[&'static str]| [name, &["0", "0"]].concat();
    let limits = [none(&["Max", "nice", "priority"]), none(&["Max", "realtime", "priority"])].concat();
    assert_eq!(words, [limits, vec!["5", "5", "0", "1"]].concat());
}

#[test]
fn the_means_follow_from_configuration_groups_and_rights() {
    use CriticalMeans as Means;
    let (all, idle) = (&Capability::ALL[..], [Capability::Idle]);
    let auto = |can: &[Capability], raises| Means::of(CriticalPriority::Auto, can, raises, false);
    assert_eq!((auto(all, true), auto(&idle, false)), (Means::Weight, Means::ForeignGroups));
    assert_eq!(Means::of(CriticalPriority::Auto, all, false, true), Means::Confinement);
    assert_eq!(Means::of(CriticalPriority::Off, all, true, false), Means::Off);
    let (without, real_time) = (auto(&[], false), Means::of(CriticalPriority::RealTime, all, true, false));
    let rights = priority_rights();
    assert_eq!(without, if rights.nice { Means::Nice } else { Means::NoRight });
    assert_eq!(real_time, if rights.real_time { Means::RealTime } else { Means::Weight });
    assert!(Means::NoRight.to_string().contains("CAP_SYS_NICE"));
}
