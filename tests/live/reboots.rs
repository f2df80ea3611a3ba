//! Reboots: the clock of the machine begins again, and the boot has another name.
//!
//! A test gives each boot its name, and the time for which the machine has been up.

use jiff::{SignedDuration, Timestamp};
use miserly_api::model::{Exit, JobView, KilledBy, LostBy, Phase, Submission};
use rustix::process::{Signal, kill_process};

use crate::support::{Daemon, SOON, has_two_cpus, processes, queue, sh, until};

/// The most that two readings of clocks differ.
const APART: SignedDuration = SignedDuration::from_secs(2);

/// Two jobs in the first boot of a machine.
struct Jobs {
    daemon: Daemon,
    ordinary: i64,
    restartable: i64,
    submitted: Timestamp,
}

/// Lets all processes see a boot of this name, with a clock that is ahead.
fn boot(daemon: &Daemon, name: &str, ahead: u32) {
    daemon.set_faults(&format!("boot-id:{name}\nboot:{ahead}\n"));
}

impl Jobs {
    /// Returns two jobs that run. The restartable one ends by itself when it runs again.
    fn run(ahead: u32) -> Jobs {
        let mut daemon = Daemon::asleep_with_faults(&queue("miser"));
        boot(&daemon, "one", ahead);
        daemon.start();
        let submitted = Timestamp::now();
        let job = |script: &str, restartable| {
            daemon.submit(&Submission { restartable, no_opportunistic: true, ..sh(script, 2000.0) })
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
fn check_shutdown(ahead: [u32; 2], daemon_first: bool) {
    let mut jobs = Jobs::run(ahead[0]);
    jobs.end_all(Signal::TERM, daemon_first);
    let down = Timestamp::now();
    let [ordinary, again] = jobs.reboot(ahead[1]);
    let Phase::Killed { start: Some(start), end, by: KilledBy::Shutdown, .. } = ordinary.phase else {
        panic!("the shutdown ended it: {:?}", ordinary.phase)
    };
    let ran = [jobs.submitted - APART, start, end, down + APART];
    assert!(ran.is_sorted(), "{ahead:?}: it ran from {start} to {end}: {ran:?}");
    check_again(&again, down);
    let status = jobs.daemon.client().status().expect("a status");
    assert!(status.damage.is_empty(), "{:?}", status.damage);
}

/// Checks that a job ran again after an instant, to its end.
#[track_caller]
fn check_again(job: &JobView, down: Timestamp) {
    let Phase::Done { start, end, exit: Exit::Code(7), .. } = job.phase else {
        panic!("it runs again: {:?}", job.phase)
    };
    assert_eq!(job.runs, 2);
    assert!([down - APART, start, end, Timestamp::now() + APART].is_sorted(), "{down}: {start} to {end}");
}

#[test]
fn a_job_that_a_shutdown_ended_ran_until_the_shutdown() {
    if !has_two_cpus() {
        return;
    }
    // The later clock is behind the earlier one, or ahead of it.
    for (ahead, daemon_first) in [([720, 0], true), ([0, 720], false)] {
        check_shutdown(ahead, daemon_first);
    }
}

#[test]
fn a_power_cut_loses_a_job_and_a_restartable_one_runs_again() {
    if !has_two_cpus() {
        return;
    }
    let mut jobs = Jobs::run(720);
    jobs.daemon.kill();
    jobs.end_all(Signal::KILL, true);
    let down = Timestamp::now();
    let [ordinary, again] = jobs.reboot(0);
    assert!(matches!(ordinary.phase, Phase::Lost { why: LostBy::Reboot, .. }), "{:?}", ordinary.phase);
    check_again(&again, down);
}
