//! Before the window and in it.

use std::fs;

use miserly_launch::{BootTime, Launcher, Mode, Phase, Refusal, Reply, Told, Unenforced};

use crate::support::{SECOND, Test, cpus, done, kill, stat, status, ticks, until};

const SCHED_IDLE: &str = "5";
const BURNS: &str = "echo $$; while :; do :; done";
/// Prints the pids of a parent and of a child.
const TWO: &str = "sh -c 'echo $$; sleep 100; :' & echo $$; wait";

fn class(pid: u32) -> String {
    stat(pid).unwrap()[38].clone()
}

/// Where the idle time is in the times of a processor.
const IDLE: usize = 3;

/// What a processor has spent its time on, in clock ticks.
fn processor(cpu: u32) -> Vec<u64> {
    let all = fs::read_to_string("/proc/stat").unwrap();
    let line = all.lines().find_map(|line| line.strip_prefix(&format!("cpu{cpu} "))).expect("a processor");
    line.split_whitespace().map(|ticks| ticks.parse().unwrap()).collect()
}

impl Test {
    /// The same before its window.
    fn early(mut self, cpus: &[u32]) -> Test {
        self.order.mode = Mode::Early { cpus: cpus.to_vec(), window: None };
        self
    }
}

#[test]
fn early_is_idle_and_critical_is_not() {
    let abilities = Launcher::probe().unwrap();
    let test = Test::of(TWO).early(&abilities.cpus);
    let mut shim = test.launch();
    let pids = test.pids(2);
    assert!(pids.iter().all(|pid| class(*pid) == SCHED_IDLE));
    let state = done(&mut shim, &Told::Hello);
    assert!(state.idle && state.end.is_none(), "{state:?}");

    let (cpu, end) = (abilities.cpus[0], BootTime::now().after(60 * SECOND));
    let state = done(&mut shim, &Told::Critical { cpus: vec![cpu], end });
    assert_eq!((state.idle, state.cpus, state.end), (!abilities.leaves_idle, vec![cpu], Some(end)));
    for pid in pids {
        assert_eq!(class(pid) == SCHED_IDLE, !abilities.leaves_idle);
        assert_eq!(status(pid, "Cpus_allowed_list"), cpu.to_string());
    }
    kill(&mut shim);
}

#[test]
fn a_window_that_begins_ends_too_and_lets_a_parked_job_go_on() {
    let test = Test::of("echo here; sleep 100").early(&cpus());
    let mut shim = test.launch();
    test.wait_out("here");
    assert_eq!(done(&mut shim, &Told::Stop).phase, Phase::Stopped);
    let end = BootTime::now().after(SECOND);
    let state = done(&mut shim, &Told::Critical { cpus: cpus(), end });
    assert!(matches!(state.phase, Phase::Running | Phase::Ending(_)), "{state:?}");
    assert_eq!(crate::support::ended(&shim).cause, Some(miserly_launch::Cause::Time));
}

#[test]
fn a_window_that_begins_before_the_command_does_is_its_window() {
    let test = Test::of(TWO).early(&cpus());
    let mut shim = test.launch();
    let (cpu, end) = (cpus()[0], BootTime::now().after(60 * SECOND));
    done(&mut shim, &Told::Critical { cpus: vec![cpu], end });
    let idle = !Launcher::probe().unwrap().leaves_idle;
    for pid in test.pids(2) {
        assert!(class(pid) != SCHED_IDLE || idle);
        assert_eq!(status(pid, "Cpus_allowed_list"), cpu.to_string());
    }
    kill(&mut shim);
}

#[test]
fn a_job_moves_to_other_processors() {
    let test = Test::of(TWO);
    let mut shim = test.launch();
    let pids = test.pids(2);
    for cpu in cpus() {
        assert_eq!(done(&mut shim, &Told::Cpus { cpus: vec![cpu] }).cpus, [cpu]);
        assert!(pids.iter().all(|pid| status(*pid, "Cpus_allowed_list") == cpu.to_string()));
    }
    for cpus in [vec![], vec![1000], vec![5000]] {
        let reply = shim.tell(&Told::Cpus { cpus: cpus.clone() }).unwrap();
        assert!(matches!(reply, Reply::Refused(Refusal::Cpus { .. })), "{cpus:?}: {reply:?}");
    }
    kill(&mut shim);
}

#[test]
fn an_early_job_gets_next_to_nothing_beside_a_busy_one_and_all_when_that_stops() {
    let cpu = [cpus()[0]];
    let (early, busy) = (Test::of(BURNS).early(&cpu), Test::of(BURNS));
    let mut busy_shim = busy.launch();
    done(&mut busy_shim, &Told::Cpus { cpus: cpu.to_vec() });
    let busy_pid = busy.pids(1)[0];
    let mut early_shim = early.launch();
    let early_pid = early.pids(1)[0];

    // One in ten is far above what the kernel gives: 0.2 % by class, 1.5 % where it weighs sessions.
    let (early_before, busy_before) = (ticks(early_pid), ticks(busy_pid));
    let busy_ticks = until(|| Some(ticks(busy_pid) - busy_before).filter(|ticks| *ticks >= 100));
    let early_ticks = ticks(early_pid) - early_before;
    assert!(early_ticks * 10 <= busy_ticks, "{early_ticks} beside {busy_ticks}");

    done(&mut busy_shim, &Told::Stop);
    // Whatever other programs leave of the processor is the early job's: hardly anything is left over.
    let before = processor(cpu[0]);
    std::thread::sleep(SECOND);
    let spent: Vec<u64> =
        processor(cpu[0]).iter().zip(&before).map(|(after, before)| after - before).collect();
    assert!(spent[IDLE] * 10 <= spent.iter().sum(), "{spent:?}");
    kill(&mut busy_shim);
    kill(&mut early_shim);
}

#[test]
fn what_is_not_enforced_is_told_in_sentences() {
    let abilities = Launcher::probe().unwrap();
    assert_eq!(abilities.unenforced.contains(&Unenforced::StaysIdle), !abilities.leaves_idle);
    assert!(abilities.unenforced.contains(&Unenforced::Memory));
    assert!(Unenforced::Memory.to_string().starts_with("memory is not guaranteed"));
}
