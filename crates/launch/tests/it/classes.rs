//! Scheduling classes before and in the window.

use std::fs;

use miserly_cgroup::Capability;
use miserly_launch::{
    AttemptPhase, BootTime, MachineClock as _, RunMode, ShimCommand, ShimRefusal, ShimReply, Unenforced,
    leaves_idle, unenforced,
};

use crate::support::{SECOND, Test, cpus, done, is_idle, kill, status, ticks, until};

const BURNS: &str = "echo $$; while :; do :; done";
/// Prints the pids of a parent and of a child.
const TWO: &str = "sh -c 'echo $$; sleep 100; :' & echo $$; wait";

/// Index of the idle time in the times of a processor.
const IDLE: usize = 3;

/// Returns the times of a processor in clock ticks.
fn processor(cpu: u32) -> Vec<u64> {
    let all = fs::read_to_string("/proc/stat").unwrap();
    let line = all.lines().find_map(|line| line.strip_prefix(&format!("cpu{cpu} "))).expect("a processor");
    line.split_whitespace().map(|ticks| ticks.parse().unwrap()).collect()
}

impl Test {
    /// Makes the job opportunistic.
    fn early(mut self, cpus: &[u32]) -> Test {
        self.spec.mode = RunMode::Opportunistic { cpus: cpus.to_vec(), window: None };
        self
    }
}

#[test]
fn early_is_idle_and_critical_is_not() {
    let test = Test::new(TWO).early(&cpus());
    let mut shim = test.launch();
    let pids = test.pids(2);
    assert!(pids.iter().all(|pid| is_idle(*pid)));
    let state = done(&mut shim, &ShimCommand::Status);
    assert!(state.idle && state.end.is_none(), "{state:?}");

    let (cpu, end) = (cpus()[0], BootTime::now().after(60 * SECOND));
    let state = done(&mut shim, &ShimCommand::BeginWindow { cpus: vec![cpu], end });
    assert_eq!((state.idle, state.cpus, state.end), (!leaves_idle(), vec![cpu], Some(end)));
    for pid in pids {
        assert_eq!(is_idle(pid), !leaves_idle());
        assert_eq!(status(pid, "Cpus_allowed_list"), cpu.to_string());
    }
    kill(&mut shim);
}

#[test]
fn a_window_that_begins_ends_too_and_lets_a_parked_job_go_on() {
    let test = Test::new("echo here; sleep 100").early(&cpus());
    let mut shim = test.launch();
    test.wait_out("here");
    assert_eq!(done(&mut shim, &ShimCommand::Stop).phase, AttemptPhase::Stopped);
    let end = BootTime::now().after(SECOND);
    let state = done(&mut shim, &ShimCommand::BeginWindow { cpus: cpus(), end });
    assert!(matches!(state.phase, AttemptPhase::Running | AttemptPhase::Ending(_)), "{state:?}");
    assert_eq!(crate::support::ended(&shim).cause, Some(miserly_launch::EndCause::Time));
}

#[test]
fn a_window_that_begins_before_the_command_does_is_its_window() {
    let test = Test::new(TWO).early(&cpus());
    let mut shim = test.launch();
    let (cpu, end) = (cpus()[0], BootTime::now().after(60 * SECOND));
    done(&mut shim, &ShimCommand::BeginWindow { cpus: vec![cpu], end });
    let idle = !leaves_idle();
    for pid in test.pids(2) {
        assert!(!is_idle(pid) || idle);
        assert_eq!(status(pid, "Cpus_allowed_list"), cpu.to_string());
    }
    kill(&mut shim);
}

#[test]
fn a_job_moves_to_other_processors() {
    let test = Test::new(TWO);
    let mut shim = test.launch();
    let pids = test.pids(2);
    for cpu in cpus() {
        assert_eq!(done(&mut shim, &ShimCommand::SetCpus { cpus: vec![cpu] }).cpus, [cpu]);
        assert!(pids.iter().all(|pid| status(*pid, "Cpus_allowed_list") == cpu.to_string()));
    }
    for cpus in [vec![], vec![1000], vec![5000]] {
        let reply = shim.request(&ShimCommand::SetCpus { cpus: cpus.clone() }).unwrap();
        assert!(matches!(reply, ShimReply::Refused(ShimRefusal::Cpus { .. })), "{cpus:?}: {reply:?}");
    }
    kill(&mut shim);
}

#[test]
fn an_early_job_gets_next_to_nothing_beside_a_busy_one_and_all_when_that_stops() {
    let cpu = [cpus()[0]];
    let (early, busy) = (Test::new(BURNS).early(&cpu), Test::new(BURNS));
    let mut busy_shim = busy.launch();
    done(&mut busy_shim, &ShimCommand::SetCpus { cpus: cpu.to_vec() });
    let busy_pid = busy.pids(1)[0];
    let mut early_shim = early.launch();
    let early_pid = early.pids(1)[0];

    // One in ten is far above the share that the kernel gives: 0.2 % by class, 1.5 % with
    // autogroups.
    let (early_before, busy_before) = (ticks(early_pid), ticks(busy_pid));
    let busy_ticks = until(|| Some(ticks(busy_pid) - busy_before).filter(|ticks| *ticks >= 100));
    let early_ticks = ticks(early_pid) - early_before;
    assert!(early_ticks * 10 <= busy_ticks, "{early_ticks} beside {busy_ticks}");

    done(&mut busy_shim, &ShimCommand::Stop);
    // The opportunistic job gets the whole remainder: hardly any processor time is idle.
    let before = processor(cpu[0]);
    std::thread::sleep(SECOND);
    let spent: Vec<u64> =
        processor(cpu[0]).iter().zip(&before).map(|(after, before)| after - before).collect();
    assert!(spent[IDLE] * 10 <= spent.iter().sum(), "{spent:?}");
    kill(&mut busy_shim);
    kill(&mut early_shim);
}

#[test]
fn unenforced_limits_have_sentences() {
    assert_eq!(unenforced(&[]).contains(&Unenforced::StaysIdle), !leaves_idle());
    assert!(unenforced(&[]).contains(&Unenforced::Memory));
    let whole = unenforced(&Capability::ALL);
    assert!(whole.contains(&Unenforced::OtherPrograms) && whole.contains(&Unenforced::GroupWeight));
    assert!(!whole.contains(&Unenforced::Memory) && !whole.contains(&Unenforced::Moves));
    assert!(unenforced(&[]).contains(&Unenforced::OpportunisticMemory));
    assert!(!whole.contains(&Unenforced::OpportunisticMemory) && whole.contains(&Unenforced::Io));
    assert!(Unenforced::Memory.to_string().starts_with("memory is not guaranteed"));
}
