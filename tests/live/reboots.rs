//! Reboots: the clock of the machine begins again, and the boot has another name.
//!
//! A test gives each boot its name, and the time for which the machine has been up.

use std::fs;
use std::thread;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use miserly_api::model::{Exit, JobView, KilledBy, LostBy, Phase, Submission};
use rustix::process::{Signal, kill_process};

use crate::support::{Daemon, SOON, has_two_cpus, processes, queue, sh, until, without_queues};

/// The most that two readings of clocks differ.
const APART: SignedDuration = SignedDuration::from_secs(2);

/// Two jobs in the first boot of a machine.
struct Jobs {
    daemon: Daemon,
    ordinary: i64,
    restartable: i64,
    submitted: Timestamp,
}

/// Lets all processes see a boot of this name, with a clock that is ahead. They read the file at any time.
fn boot(daemon: &Daemon, name: &str, ahead: u32) {
    let new = daemon.path("faults.new");
    fs::write(&new, format!("boot-id:{name}\nboot:{ahead}\n")).expect("a file that can be written");
    fs::rename(new, daemon.faults()).expect("a file that can be renamed");
}

impl Jobs {
    /// Returns two jobs that run. The restartable one ends by itself when it runs again.
    fn run(configuration: &str, ahead: u32) -> Jobs {
        Jobs::run_for(configuration, ahead, 2000.0)
    }

    /// The same, with a time limit in seconds.
    fn run_for(configuration: &str, ahead: u32, time: f64) -> Jobs {
        let mut daemon = Daemon::asleep_with_faults(configuration);
        boot(&daemon, "one", ahead);
        daemon.start();
        let submitted = Timestamp::now();
        let job = |script: &str, restartable| {
            daemon.submit(&Submission { restartable, no_opportunistic: true, ..sh(script, time) })
        };
        let flags = ["first", "second"].map(|name| daemon.path(name));
        let [first, second] = flags.each_ref().map(|flag| flag.display());
        let ordinary = job(&format!("touch {first}; exec sleep 1000"), false);
        let restartable = job(&format!("[ -e {second} ] && exit 7; touch {second}; exec sleep 1000"), true);
        until("both run", SOON, || flags.iter().all(|flag| flag.exists()).then_some(()));
        Jobs { daemon, ordinary, restartable, submitted }
    }

    /// Sends a signal to all processes at once, and waits until they have gone. The daemon is first or last.
    fn end_all(&mut self, signal: Signal, daemon_first: bool) {
        let folder = self.daemon.path("");
        if daemon_first {
            self.daemon.stop();
        }
        let daemon = self.daemon.pid();
        for pid in processes::of_daemon(&folder).into_iter().filter(|pid| Some(*pid) != daemon) {
            // It may have ended.
            let _ = kill_process(pid, signal);
        }
        if !daemon_first {
            self.daemon.stop();
        }
        until("all are gone", SOON, || processes::of_daemon(&folder).is_empty().then_some(()));
    }

    /// Boots the machine again. Returns both jobs when the restartable one has ended.
    fn reboot(&mut self, ahead: u32) -> [JobView; 2] {
        boot(&self.daemon, "two", ahead);
        self.daemon.start();
        let again = self.daemon.wait(self.restartable);
        [self.daemon.job(self.ordinary), again]
    }
}

/// Shuts a machine down, boots it again, and checks that the jobs ran when they did.
#[track_caller]
fn check_shutdown(configuration: &str, ahead: [u32; 2], daemon_first: bool) {
    let mut jobs = Jobs::run(configuration, ahead[0]);
    jobs.end_all(Signal::TERM, daemon_first);
    let down = Timestamp::now();
    let [ordinary, again] = jobs.reboot(ahead[1]);
    let Phase::Killed { start: Some(start), end, by: KilledBy::Shutdown, .. } = ordinary.phase else {
        panic!("{configuration}: the shutdown ended it: {:?}", ordinary.phase)
    };
    let ran = [jobs.submitted - APART, start, end, down + APART];
    assert!(ran.is_sorted(), "{configuration}{ahead:?}: it ran from {start} to {end}: {ran:?}");
    check_again(&again, down);
    let status = jobs.daemon.client().status().expect("a status");
    assert!(status.damage.is_empty(), "{configuration}: {:?}", status.damage);
}

/// Checks that a job ran again after an instant, to its end.
#[track_caller]
fn check_again(job: &JobView, down: Timestamp) {
    let Phase::Done { start, end, exit: Exit::Code(7), .. } = job.phase else {
        panic!("it runs again: {:?}", job.phase)
    };
    assert_eq!(job.attempts, 2);
    assert!([down - APART, start, end, Timestamp::now() + APART].is_sorted(), "{down}: {start} to {end}");
}

#[test]
fn a_job_that_a_shutdown_ended_ran_until_the_shutdown() {
    if !has_two_cpus() {
        return;
    }
    // The later clock is behind the earlier one, or ahead of it.
    let cases = [([720, 0], true), ([720, 0], false), ([0, 720], true), ([86_400 * 30, 5], true)];
    thread::scope(|scope| {
        for (ahead, daemon_first) in cases {
            scope.spawn(move || check_shutdown(&queue("miser"), ahead, daemon_first));
        }
    });
}

#[test]
fn a_restartable_job_runs_again_after_a_reboot_under_every_policy() {
    if !has_two_cpus() {
        return;
    }
    let immediate = "immediate(policy=fcfs-backfill, quantum=30s, after=0s)";
    let policies = ["conservative", "easy", "ss", immediate, "gang"].map(queue);
    thread::scope(|scope| {
        for configuration in policies.into_iter().chain([without_queues()]) {
            scope.spawn(move || check_shutdown(&configuration, [720, 0], true));
        }
    });
}

/// The state of the former boot has a window that is over, and its job has no attempt any more.
#[test]
fn a_job_whose_window_is_over_at_the_next_boot_runs_again() {
    if !has_two_cpus() {
        return;
    }
    let limit: u8 = 8;
    let policies = ["miser", "conservative", "easy", "gang"].map(queue);
    thread::scope(|scope| {
        for configuration in policies.into_iter().chain([without_queues()]) {
            scope.spawn(move || {
                let mut jobs = Jobs::run_for(&configuration, 720, f64::from(limit));
                jobs.end_all(Signal::TERM, true);
                let down = Timestamp::now();
                thread::sleep(Duration::from_secs(u64::from(limit) + 2));
                let [_, again] = jobs.reboot(0);
                check_again(&again, down);
                let log = jobs.daemon.log();
                assert!(!log.contains("set aside") && !log.contains("is stopped"), "{configuration}: {log}");
            });
        }
    });
}

#[test]
fn a_power_cut_loses_a_job_and_a_restartable_one_runs_again() {
    if !has_two_cpus() {
        return;
    }
    let mut jobs = Jobs::run(&queue("miser"), 720);
    jobs.daemon.kill();
    jobs.end_all(Signal::KILL, true);
    let down = Timestamp::now();
    let [ordinary, again] = jobs.reboot(0);
    assert!(matches!(ordinary.phase, Phase::Lost { why: LostBy::Reboot, .. }), "{:?}", ordinary.phase);
    check_again(&again, down);
}
