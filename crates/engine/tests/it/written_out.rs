//! Suspended jobs that a command of their queue writes out.

use miserly_api::model::{Exit, LostBy, Phase, ProblemCode, Submission};
use miserly_engine::{Absence, Action, Attempt, AttemptOutcome, DaemonRequest, Input, Launch};

use super::life::{CLEANUP, Life, job, queue, seconds};

/// A job writes 80 kB each second.
const POLICY: &str = "ss(criterion=remaining, half_width=false, period=none, overhead=write, rate=80)";

/// A job of a pool of one processor and 1000 kB, written out in ten seconds.
fn large(time: u32) -> Submission {
    Submission { memory: Some(800 << 10), restartable: true, ..job(1, time) }
}

/// A job that is suspended at 5 s for another one of 20 s, which starts at 15 s; and the other.
fn one_for_another() -> (Life, i64, i64) {
    let mut life = Life::of_policy(POLICY, 1, 1);
    let victim = life.submit(1, large(100));
    let launch = launched(&life, victim);
    assert!(!launch.restart && launch.end == Some(seconds(101)), "{launch:?}");
    let newcomer = life.submit(5, large(20));
    let actions = life.actions(victim);
    let [Action::WriteOut { until }] = actions[..] else { panic!("{actions:?}") };
    assert_eq!(until, seconds(15));
    (life, victim, newcomer)
}

fn launched(life: &Life, job: i64) -> Launch {
    let actions = life.actions(job);
    let [Action::Launch(launch)] = &actions[..] else { panic!("{actions:?}") };
    (**launch).clone()
}

const fn attempt(job: i64, nth: u32) -> Attempt {
    Attempt { job, nth }
}

fn written(second: i64, failed: Option<&str>) -> AttemptOutcome {
    AttemptOutcome::WrittenOut { at: seconds(second), failed: failed.map(str::to_owned) }
}

impl Life {
    /// An attempt ends that was to be written out.
    fn write(&mut self, second: i64, attempt: Attempt, failed: Option<&str>) {
        self.turn(second, vec![Input::AttemptEnded(attempt, written(second, failed))]);
    }
}

/// Checks that a job is suspended, and whether it has been written out.
#[track_caller]
fn is_suspended(life: &mut Life, second: i64, job: i64, written: bool) {
    let job = life.job(second, job);
    assert!(matches!(&job.phase, Phase::Suspended(held) if held.cpus.is_empty()), "{:?}", job.phase);
    assert_eq!(job.written_out, written);
}

#[test]
fn it_frees_its_memory_and_continues_by_a_restart_with_the_rest_of_its_time() {
    let (mut life, victim, newcomer) = one_for_another();
    is_suspended(&mut life, 6, victim, false);
    life.write(9, attempt(victim, 1), None);
    is_suspended(&mut life, 10, victim, true);
    let actions = life.actions(victim);
    assert!(matches!(actions[..], [Action::Forget]), "{actions:?}");
    // The policy gives the resources on when the time is over that it planned.
    assert!(matches!(life.job(14, newcomer).phase, Phase::Queued));
    life.turn(15, vec![]);
    assert_eq!(launched(&life, newcomer).cpus, [0]);
    life.end(25, newcomer);
    let launch = launched(&life, victim);
    assert!(launch.restart && launch.append, "{launch:?}");
    assert_eq!((launch.cpus, launch.end), (vec![0], Some(seconds(25 + 96))));
    // The start of its command comes later than that of its window, and moves nothing.
    life.turn(26, vec![Input::Launched(attempt(victim, 2), seconds(26))]);
    assert_eq!(life.actions(victim).len(), 0);
    life.end_attempt(40, attempt(victim, 2));
    let job = life.job(41, victim);
    assert!(matches!(job.phase, Phase::Done { exit: Exit::Code(0), .. }), "{:?}", job.phase);
    assert_eq!((job.runs, job.written_out, job.write_out_failed), (2, false, None));
}

#[test]
fn it_begins_anew_if_it_was_not_written_out_and_says_why() {
    let killed = AttemptOutcome::Lost(LostBy::Shim);
    for (outcome, why) in [(written(9, Some("exit 3")), "exit 3"), (killed, "its shim was killed")] {
        let (mut life, victim, newcomer) = one_for_another();
        life.turn(9, vec![Input::AttemptEnded(attempt(victim, 1), outcome)]);
        let job = life.job(10, victim);
        assert!(matches!(job.phase, Phase::Queued), "{:?}", job.phase);
        assert_eq!(job.write_out_failed.as_deref(), Some(why));
        life.actions(victim);
        // The resources are free at once.
        launched(&life, newcomer);
        life.end(25, newcomer);
        let launch = launched(&life, victim);
        assert_eq!((launch.restart, launch.end), (false, Some(seconds(125))));
    }
}

#[test]
fn another_daemon_goes_on_wherever_the_first_one_was_killed() {
    let (mut life, victim, newcomer) = one_for_another();
    // While the command runs.
    life.begin(7, &Absence::default());
    let actions = life.actions(victim);
    assert!(matches!(actions[..], [Action::WriteOut { until }] if until == seconds(15)), "{actions:?}");
    // It ended without a daemon.
    let ended = vec![(attempt(victim, 1), written(9, None))];
    life.begin(11, &Absence { ended, ..Absence::default() });
    is_suspended(&mut life, 12, victim, true);
    // Before its resources are free, and after.
    life.begin(13, &Absence::default());
    is_suspended(&mut life, 14, victim, true);
    life.begin(16, &Absence::default());
    launched(&life, newcomer);
    life.begin(17, &Absence::default());
    is_suspended(&mut life, 18, victim, true);
    life.end(25, newcomer);
    launched(&life, victim);
    // Before the restart: the launch is lost.
    let ended = vec![(attempt(victim, 2), AttemptOutcome::NeverRan)];
    life.begin(27, &Absence { ended, ..Absence::default() });
    let actions = life.actions(victim);
    let [Action::Forget, Action::Launch(launch)] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!((launch.restart, launch.end), (true, Some(seconds(25 + 96))));
}

#[test]
fn a_failure_without_a_daemon_is_one() {
    let (mut life, victim, _) = one_for_another();
    let ended = vec![(attempt(victim, 1), written(9, Some("killed after 10 s")))];
    life.begin(11, &Absence { ended, ..Absence::default() });
    let job = life.job(12, victim);
    assert!(matches!(job.phase, Phase::Queued), "{:?}", job.phase);
    assert_eq!(job.write_out_failed.as_deref(), Some("killed after 10 s"));
}

#[test]
fn it_restarts_at_the_end_of_its_attempt_if_it_resumes_before() {
    let (mut life, victim, newcomer) = one_for_another();
    life.ask(6, DaemonRequest::Cancel { job: newcomer, array: false }).expect("it waits");
    life.turn(15, vec![]);
    assert!(matches!(life.job(15, victim).phase, Phase::Running(_)));
    assert_eq!(life.actions(victim).len(), 0);
    life.write(16, attempt(victim, 1), None);
    let actions = life.actions(victim);
    let [Action::Forget, Action::Launch(launch)] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!((launch.restart, launch.end), (true, Some(seconds(15 + 96))));
}

#[test]
fn it_is_still_written_out_if_it_is_suspended_before_its_restart_runs() {
    let (mut life, victim, newcomer) = one_for_another();
    life.write(9, attempt(victim, 1), None);
    life.turn(15, vec![]);
    life.end(25, newcomer);
    life.actions(victim);
    life.submit(26, large(20));
    let actions = life.actions(victim);
    assert!(matches!(actions[..], [Action::WriteOut { until }] if until == seconds(36)), "{actions:?}");
    life.turn(27, vec![Input::AttemptEnded(attempt(victim, 2), AttemptOutcome::NeverRan)]);
    is_suspended(&mut life, 28, victim, true);
    assert_eq!(life.job(29, victim).runs, 1);
}

#[test]
fn it_is_done_if_it_ends_before_its_command_begins() {
    let (mut life, victim, _) = one_for_another();
    life.end(6, victim);
    let job = life.job(7, victim);
    assert!(matches!(job.phase, Phase::Done { .. }), "{:?}", job.phase);
}

#[test]
fn it_can_be_cancelled_with_or_without_an_attempt() {
    let cancel = |job| DaemonRequest::Cancel { job, array: false };
    let (mut life, victim, newcomer) = one_for_another();
    life.ask(7, cancel(victim)).expect("it is written out");
    let actions = life.actions(victim);
    assert!(matches!(actions[..], [Action::Kill { .. }]), "{actions:?}");
    life.write(8, attempt(victim, 1), None);
    assert!(matches!(life.job(9, victim).phase, Phase::Killed { exit: None, .. }));
    launched(&life, newcomer);

    let (mut life, victim, newcomer) = one_for_another();
    life.write(9, attempt(victim, 1), None);
    life.ask(20, cancel(victim)).expect("it is written out");
    let job = life.job(21, victim);
    assert!(matches!(job.phase, Phase::Killed { start: Some(_), exit: None, .. }), "{:?}", job.phase);
    assert!(matches!(life.job(22, newcomer).phase, Phase::Running(_)));
    life.begin(23, &Absence::default());
}

#[test]
fn a_job_that_is_written_out_has_begun() {
    let (mut life, victim, _) = one_for_another();
    life.write(9, attempt(victim, 1), None);
    let refusal = life.ask(10, DaemonRequest::Hold { job: victim, move_promises: false }).unwrap_err();
    assert!(refusal.message.contains("has begun to run"), "{}", refusal.message);
    is_suspended(&mut life, 11, victim, true);
}

#[test]
fn its_queue_takes_only_jobs_that_may_begin_anew() {
    let mut life = Life::of_policy(POLICY, 1, 1);
    let refusal =
        life.ask(1, DaemonRequest::Submit(Submission { restartable: false, ..large(9) })).unwrap_err();
    assert_eq!((refusal.code, refusal.field.as_deref()), (ProblemCode::Refused, Some("restartable")));
    assert!(refusal.message.contains("submit it with --restartable"), "{}", refusal.message);
    let mut life = Life::of_policy("ss", 1, 1);
    let one = life.submit(1, Submission { restartable: false, ..large(9) });
    life.setup.queues[0].policy = queue("batch", POLICY).policy;
    let refusal = life.set_up(2).unwrap_err();
    assert!(refusal.message.contains("is not restartable"), "{}", refusal.message);
    life.end(3, one);
    life.set_up(4).expect("no job is left");
    assert_eq!(CLEANUP, 1);
}
