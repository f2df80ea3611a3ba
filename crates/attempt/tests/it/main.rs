//! Tests of whole attempts on a machine in memory.

mod machine;

use std::rc::Rc;
use std::time::Duration;

use miserly_attempt::{
    AttemptEnd, EndCause, Exit, FoundAttempt, LaunchError, LossCause, ShimCommand, ShimRefusal, ShimReply,
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
