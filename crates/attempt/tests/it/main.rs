//! Tests of whole attempts on a machine in memory.

mod machine;

use std::rc::Rc;
use std::time::Duration;

use miserly_attempt::{
    AttemptEnd, AttemptPhase, AttemptSpec, EndCause, Exit, FoundAttempt, IdleRule, LaunchError, LossCause,
    Predecessors, ReservedWindow, RunMode, ShimCommand, ShimRefusal, ShimReply,
};

use crate::machine::{Found, Machine, at, spec};

#[track_caller]
fn ended(found: Found) -> AttemptEnd {
    match found {
        FoundAttempt::Ended(end) => end,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_job_that_ends_by_itself_has_an_end() {
    let machine = Machine::new(Some(Duration::from_secs(20)));
    let shim = machine.launch(&spec()).unwrap();
    drop(shim);
    machine.run_shim();
    let end = ended(machine.find().unwrap());
    assert_eq!((end.exit, end.cause, end.late), (Exit::Code(0), None, None));
    assert_eq!((end.at.parts().0, machine.starts()), (at(20), 1));
    assert!(machine.sent().is_empty());
}

#[test]
fn a_command_that_keeps_its_shim_from_running_has_begun_with_its_permission() {
    let machine = Machine::new(Some(Duration::from_secs(20)));
    machine.starve_shim(Duration::from_secs(3));
    machine.launch(&spec()).unwrap();
    machine.run_shim();
    assert_eq!((machine.recorded_start(), machine.starts()), (at(0), 1));
}

#[test]
fn a_job_that_ignores_the_end_of_its_window_is_killed() {
    let machine = Machine::new(None);
    machine.launch(&spec()).unwrap();
    machine.run_shim();
    assert_eq!(machine.sent(), ["90 Terminate All", "90 Continue All", "100 Kill"]);
    let end = ended(machine.find().unwrap());
    assert_eq!((end.cause, end.late), (Some(EndCause::Time), Some(Duration::ZERO)));
}

/// Returns an attempt with a long window whose job is idle after 50 seconds.
fn idle(ends: bool, mode: RunMode) -> AttemptSpec {
    AttemptSpec { idle: Some(IdleRule { after: Duration::from_secs(50), ends }), mode, ..spec() }
}

fn long_window() -> RunMode {
    RunMode::Reserved { cpus: vec![0], end: at(1000) }
}

#[test]
fn an_idle_job_is_warned_and_then_ended() {
    let machine = Machine::new(None);
    machine.wait_from(at(20));
    machine.launch(&idle(true, long_window())).unwrap();
    machine.run_shim();
    assert_eq!(machine.sent(), ["70 Terminate All", "70 Continue All", "80 Kill"]);
    assert_eq!(ended(machine.find().unwrap()).cause, Some(EndCause::Idle));
    let [warning, end] = &machine.written()[..] else { panic!("{:?}", machine.written()) };
    assert!(
        warning.contains("almost no processor time for 40 s") && warning.contains("ended in 10 s"),
        "{warning}"
    );
    assert!(end.contains("because it is idle"), "{end}");
}

#[test]
fn an_idle_job_is_only_warned_where_its_queue_does_not_end_it() {
    let machine = Machine::new(None);
    machine.wait_from(at(20));
    machine.launch(&idle(false, long_window())).unwrap();
    machine.run_shim();
    assert_eq!(machine.written().len(), 1);
    assert_eq!(ended(machine.find().unwrap()).cause, Some(EndCause::Time));
}

#[test]
fn time_before_the_window_is_not_idle() {
    let machine = Machine::new(Some(Duration::from_mins(5)));
    machine.wait_from(at(0));
    machine.launch(&idle(true, RunMode::Opportunistic { cpus: vec![0], window: None })).unwrap();
    machine.run_shim();
    assert!(machine.written().is_empty() && machine.sent().is_empty());
}

#[test]
fn a_daemon_commands_a_shim_that_it_has_found() {
    let machine = Machine::new(None);
    machine.launch(&spec()).unwrap();
    let Ok(FoundAttempt::Alive(mut shim)) = machine.find() else { panic!("it is lost") };
    let kill = ShimCommand::Kill { grace: Duration::ZERO };
    let reply = shim.commands.request(&kill, |_| Ok(machine.turn())).unwrap();
    assert!(matches!(reply, ShimReply::Done(_)), "{reply:?}");
    machine.run_shim();
    assert_eq!(ended(machine.find().unwrap()).cause, Some(EndCause::User));
}

#[test]
fn a_lock_that_is_held_for_a_moment_is_waited_for() {
    let machine = Machine::new(None);
    machine.hold_lock(Duration::from_millis(40));
    machine.launch(&spec()).unwrap();
    let held = Machine::new(None);
    held.hold_lock(Duration::from_mins(1));
    let refused = held.launch(&spec());
    assert!(matches!(refused, Err(LaunchError::Unclear { .. })), "{refused:?}");
    held.pause(Duration::from_mins(1));
    assert!(matches!(held.find(), Ok(FoundAttempt::NeverRan)));
}

#[test]
fn an_attempt_has_one_shim() {
    let machine = Machine::new(None);
    machine.launch(&spec()).unwrap();
    assert_eq!(machine.begin_shim(None).err(), Some(ShimRefusal::Taken));
    machine.run_shim();
    assert_eq!(machine.begin_shim(None).err(), Some(ShimRefusal::Taken));
}

/// Kills the shim before its `nth` effect. Returns the machine, and whether the shim had that many effects.
fn killed(nth: u32) -> (Rc<Machine>, bool) {
    let machine = Machine::new(Some(Duration::from_secs(20)));
    machine.kill_shim_at(nth);
    let _ = machine.launch(&spec());
    machine.run_shim();
    let was_killed = machine.effects() >= nth;
    machine.kill_shim_at(0);
    (machine, was_killed)
}

#[test]
fn a_shim_that_is_killed_before_any_of_its_effects_leaves_one_state() {
    let mut states = vec![];
    for nth in 1.. {
        let (machine, was_killed) = killed(nth);
        let (starts, has_start) = (machine.starts(), machine.has("started.json"));
        let state = match machine.find().unwrap() {
            FoundAttempt::NeverRan => {
                assert!(starts == 0 && !has_start, "effect {nth}");
                "never ran"
            }
            FoundAttempt::Lost(lost) => {
                assert!(lost.cause == LossCause::Kill && has_start, "effect {nth}");
                if starts == 0 { "lost before the permission" } else { "lost" }
            }
            FoundAttempt::Ended(_) if starts == 1 => "ended",
            other => panic!("effect {nth}: {other:?}"),
        };
        // No command runs after the decision.
        assert!(machine.begin_shim(None).is_err());
        assert_eq!(machine.starts(), starts);
        if states.last() != Some(&state) {
            states.push(state);
        }
        if !was_killed {
            break;
        }
    }
    assert_eq!(states, ["never ran", "lost before the permission", "lost", "ended"]);
}

/// Returns an attempt whose shim waits for a window from second 20 to 60, after the attempt 16.1, at most until second 25.
fn waiting() -> AttemptSpec {
    let after = Some(Predecessors { attempts: vec!["16.1".into()], until: at(25) });
    let window = Some(ReservedWindow { start: at(20), end: at(60), cpus: vec![0], after });
    AttemptSpec { mode: RunMode::Waiting { window }, grace: Duration::ZERO, ..spec() }
}

/// Returns the answer of a waiting shim to a command.
fn answer(machine: &Rc<Machine>, command: &ShimCommand) -> ShimReply {
    let Ok(FoundAttempt::Alive(mut shim)) = machine.find() else { panic!("its shim does not wait") };
    // It may exit by that.
    shim.commands
        .request(command, |_| {
            machine.turn();
            Ok(true)
        })
        .expect("an answer")
}

/// Launches a shim that waits, without a daemon, beside an earlier attempt. Returns the instant of its start.
fn begun_at(earlier_until: i64) -> i64 {
    let machine = Machine::new(Some(Duration::from_secs(10)));
    machine.hold_earlier(at(earlier_until));
    drop(machine.launch(&waiting()).expect("a launch"));
    assert_eq!((machine.starts(), machine.has("started.json")), (0, false));
    machine.run_shim();
    assert_eq!(machine.starts(), 1);
    ended(machine.find().expect("an end")).at.parts().0.0 / 1_000_000 - 10
}

#[test]
fn a_waiting_shim_begins_its_window_without_a_daemon() {
    assert_eq!(begun_at(0), 20);
}

#[test]
fn a_window_waits_for_the_attempt_before_it_but_not_for_ever() {
    assert_eq!(begun_at(22), 22);
    assert_eq!(begun_at(40), 25);
}

#[test]
fn a_window_that_began_alone_ends_as_planned() {
    let machine = Machine::new(None);
    machine.hold_earlier(at(40));
    machine.launch(&waiting()).unwrap();
    machine.run_shim();
    assert_eq!(machine.sent(), ["60 Kill"]);
}

#[test]
fn a_shim_that_lost_its_window_waits_for_a_command() {
    let machine = Machine::new(Some(Duration::from_secs(10)));
    machine.launch(&waiting()).unwrap();
    let ShimReply::Done(state) = answer(&machine, &ShimCommand::RevokeWindow) else { panic!("refused") };
    assert_eq!((state.phase, state.window), (AttemptPhase::Waiting, None));
    machine.pause(Duration::from_secs(30));
    assert_eq!(machine.starts(), 0);
    answer(&machine, &ShimCommand::BeginWindow { cpus: vec![0], end: at(90) });
    machine.run_shim();
    assert_eq!(ended(machine.find().unwrap()).at.parts().0, at(40));
    // The window has begun.
    let began = Machine::new(None);
    began.launch(&waiting()).unwrap();
    began.pause(Duration::from_secs(25));
    // The preparing program has answered.
    began.pause(Duration::ZERO);
    assert_eq!(began.starts(), 1);
    for late in [ShimCommand::RevokeWindow, ShimCommand::Withdraw] {
        assert_eq!(answer(&began, &late), ShimReply::Refused(ShimRefusal::Begun));
    }
}

#[test]
fn a_withdrawn_shim_leaves_an_attempt_that_never_ran() {
    let machine = Machine::new(None);
    machine.launch(&waiting()).unwrap();
    answer(&machine, &ShimCommand::Withdraw);
    assert!(matches!(machine.find(), Ok(FoundAttempt::NeverRan)));
    assert_eq!((machine.starts(), machine.effects() > 0), (0, true));
}

#[test]
fn a_waiting_shim_runs_early_and_keeps_its_window() {
    let machine = Machine::new(None);
    machine.launch(&waiting()).unwrap();
    let begun = answer(&machine, &ShimCommand::RunEarly { cpus: vec![0] });
    let ShimReply::Done(state) = begun else { panic!("refused") };
    assert_eq!(state.window.map(|window| window.start), Some(at(20)));
    machine.pause(Duration::ZERO);
    assert_eq!(machine.starts(), 1);
    machine.run_shim();
    assert_eq!(machine.sent().last().map(String::as_str), Some("60 Kill"));
}

/// The processors are those of its early run, and it is in the idle class there.
#[test]
fn a_window_that_begins_without_its_processors_gets_them_later() {
    let refused = |refusals| {
        let machine = Machine::new(None);
        machine.launch(&waiting()).unwrap();
        answer(&machine, &ShimCommand::RunEarly { cpus: vec![0] });
        machine.refuse_places(refusals);
        machine.pause(Duration::from_secs(20));
        machine
    };
    let by_itself = refused(2);
    by_itself.run_shim();
    assert_eq!(by_itself.sent(), ["20 Refuse", "21 Refuse", "22 Place [0]", "60 Kill"]);
    for command in
        [ShimCommand::BeginWindow { cpus: vec![0], end: at(70) }, ShimCommand::SetCpus { cpus: vec![0] }]
    {
        let machine = refused(1);
        let ShimReply::Done(state) = answer(&machine, &command) else { panic!("refused") };
        assert_eq!(state.cpus, [0]);
        assert_eq!(machine.sent(), ["20 Refuse", "20 Place [0]"], "{command:?}");
    }
}

#[test]
fn a_waiting_shim_is_over_if_the_machine_slept_over_its_window() {
    let machine = Machine::new(None);
    machine.launch(&waiting()).unwrap();
    machine.pause(Duration::from_mins(1));
    assert!(matches!(machine.find(), Ok(FoundAttempt::NeverRan)));
    assert_eq!(machine.starts(), 0);
}
