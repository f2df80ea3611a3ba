//! Conversions between the types of the engine and those of the shim.

use std::time::Duration;

use miserly_api::model::{self, KilledBy};
use miserly_core::Span;
use miserly_engine::{
    Action, Attempt, AttemptOutcome, IdleTerms, Launch, MemoryAmount, PlannedWindow, SentSignal, Usage,
};
use miserly_executor::{AttemptId, LaunchRequest};
use miserly_launch::{
    AttemptEnd, BootTime, EndCause, Exit, IdleRule, Predecessors, ReservedWindow, RunMode, ShimCommand,
    StartFailure,
};
use miserly_marks::{mark, mark_variant};

use crate::clock::{BootClock, Clocks};

/// The most attempts of a job with windows that end before its command begins.
const LAUNCHES: u32 = 10;

/// Returns the numbers of an attempt for the executor.
pub fn id(attempt: Attempt) -> AttemptId {
    AttemptId { job: attempt.job, nth: attempt.nth }
}

/// Returns the request to launch an attempt.
pub(crate) fn request(clock: &BootClock<impl Clocks>, attempt: Attempt, launch: &Launch) -> LaunchRequest {
    let cpus = launch.cpus.clone();
    LaunchRequest {
        attempt: id(attempt),
        submission: Box::new((*launch.submission).clone()),
        credential: launch.credential.as_ref().map(|credential| credential.content().to_owned()),
        queue: launch.queue.clone(),
        configured_queue: launch.configured_queue.clone(),
        array: launch.array.map(Into::into),
        append: launch.append,
        ordinal: launch.ordinal,
        restart: launch.restart,
        memory: launch.memory.map(MemoryAmount::kilobytes),
        // The host has the limit of open files.
        files: None,
        mode: match launch.end {
            Some(_) if launch.limit.is_some() => RunMode::Reserved { cpus, end: BootTime::MAX },
            Some(end) => RunMode::Reserved { cpus, end: clock.boot_time(end) },
            None => {
                let window = launch.planned_window.as_ref().map(|planned| window(clock, planned));
                if launch.waits {
                    RunMode::Waiting { window }
                } else {
                    RunMode::Opportunistic { cpus, window }
                }
            }
        },
        grace: duration(launch.grace),
        cleanup: duration(launch.cleanup_time),
        orphan_resume_delay: duration(launch.orphan_resume_delay),
        idle: launch.idle.map(idle_rule),
        run_limit: launch.limit.map(duration),
        strict: launch.strict,
        gpus: launch.gpus.clone(),
    }
}

/// Returns the rule of a shim for an idle job.
pub(crate) fn idle_rule(terms: IdleTerms) -> IdleRule {
    IdleRule { after: duration(terms.after), ends: terms.ends }
}

/// Returns the shim's command for an action of the engine, if there is one.
pub(crate) fn command(clock: &BootClock<impl Clocks>, action: Action) -> Option<ShimCommand> {
    Some(match action {
        Action::Stop => ShimCommand::Stop,
        Action::Continue => ShimCommand::Resume,
        Action::BeginWindow { cpus, end } => ShimCommand::BeginWindow { cpus, end: clock.boot_time(end) },
        Action::PlanWindow(planned) => ShimCommand::SetWindow(window(clock, &planned)),
        Action::RevokeWindow => ShimCommand::RevokeWindow,
        Action::RunEarly { cpus } => ShimCommand::RunEarly { cpus },
        Action::Withdraw => ShimCommand::Withdraw,
        Action::Move(cpus) => ShimCommand::SetCpus { cpus },
        Action::RunFor(limit) => ShimCommand::SetRunLimit { limit: duration(limit) },
        Action::EndAt(end) => ShimCommand::SetEnd { end: clock.boot_time(end), max_after_resume: None },
        Action::EndIfOrphaned { end, left } => {
            ShimCommand::SetEnd { end: clock.boot_time(end), max_after_resume: Some(duration(left)) }
        }
        Action::Signal(SentSignal { nth, request }) => {
            ShimCommand::Signal { nth, signal: request.signal.number(), main_only: request.main }
        }
        Action::Kill { grace } => ShimCommand::Kill { grace: duration(grace) },
        Action::WriteOut { until } => ShimCommand::Checkpoint { until: clock.boot_time(until) },
        Action::Launch(_) | Action::EndOverdue { .. } | Action::Forget => return None,
    })
}

/// Returns the outcome of an attempt, in the engine's terms.
pub(crate) fn outcome(clock: &BootClock<impl Clocks>, attempt: Attempt, end: &AttemptEnd) -> AttemptOutcome {
    let at = clock.ended(&end.at);
    let by = end.cause.as_ref().map(|cause| {
        mark_variant!(cause, EndCause { Time, User, Shutdown, Memory, Idle });
        match cause {
            EndCause::Time => KilledBy::Time,
            EndCause::User => KilledBy::User,
            EndCause::Shutdown => KilledBy::Shutdown,
            EndCause::Memory => KilledBy::Memory,
            EndCause::Idle => KilledBy::Idle,
        }
    });
    mark_variant!(&end.exit, Exit { Code, Signal, Failed });
    if let Some(report) = &end.checkpoint {
        if end.exit == Exit::Failed(StartFailure::Ended) {
            mark!("written out before it began");
            return AttemptOutcome::NeverRan;
        }
        return AttemptOutcome::WrittenOut { at, failed: report.failure.as_ref().map(ToString::to_string) };
    }
    match &end.exit {
        Exit::Code(code) => AttemptOutcome::Ended { at, exit: model::Exit::Code(*code), by },
        Exit::Signal { signal, .. } => AttemptOutcome::Ended { at, exit: model::Exit::Signal(*signal), by },
        // The job can be launched again. Its window begins with it.
        Exit::Failed(StartFailure::Ended) if ended_before_it_began(attempt, end.cause) => {
            mark!("ended before it began");
            AttemptOutcome::NeverRan
        }
        // Another attempt has another prolog.
        Exit::Failed(StartFailure::Prolog(_)) if end.cause == Some(EndCause::Shutdown) => {
            AttemptOutcome::NeverRan
        }
        Exit::Failed(StartFailure::Prolog(failure)) => {
            AttemptOutcome::Failed { at, why: model::Failure::Prolog, message: failure.to_string() }
        }
        Exit::Failed(failure) => {
            AttemptOutcome::Failed { at, why: self::failure(failure), message: failure.to_string() }
        }
    }
}

/// Returns the usage of an attempt. Without a run of its command there is none.
pub(crate) fn usage(end: &AttemptEnd) -> Option<Usage> {
    if matches!(end.exit, Exit::Failed(_)) {
        return None;
    }
    let stops = end.stops;
    let of_group = end.usage.map(|usage| Usage { stops, ..group_usage(&usage) });
    let of_processes = || {
        end.processes.map(|used| Usage {
            user: micros(used.user),
            system: micros(used.system),
            memory_peak: Some(used.memory_peak),
            stops,
            of_processes: true,
            ..Usage::default()
        })
    };
    of_group.or_else(of_processes)
}

/// Returns the usage of the processes of a control group.
pub fn group_usage(used: &miserly_cgroup::Usage) -> Usage {
    Usage {
        user: micros(used.user),
        system: micros(used.cpu.saturating_sub(used.user)),
        memory_peak: used.memory_peak,
        io_read: used.io_read,
        io_written: used.io_written,
        ..Usage::default()
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Returns whether the job of an attempt that ended before its command began is launched again: the machine slept over its
/// window, or was shut down. A window that is shorter than a launch would end so each time.
fn ended_before_it_began(attempt: Attempt, cause: Option<EndCause>) -> bool {
    match cause {
        Some(EndCause::Shutdown) => true,
        Some(EndCause::Time) => attempt.nth < LAUNCHES,
        Some(EndCause::User | EndCause::Memory | EndCause::Idle) | None => false,
    }
}

fn failure(failure: &StartFailure) -> model::Failure {
    match failure {
        StartFailure::WorkingDirectory { .. } => model::Failure::Directory,
        StartFailure::InputFile { .. } => model::Failure::Input,
        StartFailure::OutputFile { .. } => model::Failure::Output,
        StartFailure::Program { .. } => model::Failure::Program,
        StartFailure::Prolog(_) => model::Failure::Prolog,
        _ => model::Failure::System,
    }
}

/// Returns a planned window as a shim gets it.
pub(crate) fn window(clock: &BootClock<impl Clocks>, planned: &PlannedWindow) -> ReservedWindow {
    let folder = |attempt: &Attempt| format!("{}.{}", attempt.job, attempt.nth);
    let after = || Predecessors {
        attempts: planned.after.iter().map(folder).collect(),
        until: clock.boot_time(planned.latest),
    };
    ReservedWindow {
        start: clock.boot_time(planned.start),
        end: clock.boot_time(planned.end),
        cpus: planned.cpus.clone(),
        after: (!planned.after.is_empty()).then(after),
    }
}

/// Returns a span as a duration; none below 0.
pub fn duration(span: Span) -> Duration {
    Duration::from_micros(span.ticks().max(0).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use miserly_launch::{ProcessUsage, ProgramFailure, ProgramReport, StoredInstant};

    use super::*;
    use crate::clock::tests::FakeClocks;

    fn ended(exit: Exit) -> AttemptEnd {
        let (usage, processes) = (None, None);
        let (prolog, epilog, checkpoint) = (None, None, None);
        AttemptEnd {
            exit,
            cause: None,
            at: StoredInstant::new(BootTime(0), "one".into()),
            late: None,
            usage,
            processes,
            stops: 2,
            prolog,
            epilog,
            checkpoint,
        }
    }

    #[test]
    fn an_attempt_is_written_out_if_its_command_had_begun_and_the_checkpoint_says_how() {
        let clock = BootClock::start("one".into(), FakeClocks::default());
        let outcome = |exit, failure| {
            let report = Some(Box::new(ProgramReport { failure, output: String::new() }));
            let cause = Some(EndCause::User);
            outcome(
                &clock,
                Attempt { job: 1, nth: 1 },
                &AttemptEnd { cause, checkpoint: report, ..ended(exit) },
            )
        };
        let killed = || Exit::Signal { signal: 9, core: false };
        let AttemptOutcome::WrittenOut { failed: None, .. } = outcome(killed(), None) else { panic!() };
        let failed = outcome(killed(), Some(ProgramFailure::Code(3)));
        assert!(matches!(failed, AttemptOutcome::WrittenOut { failed: Some(why), .. } if why == "exit 3"));
        let early = outcome(Exit::Failed(StartFailure::Ended), Some(ProgramFailure::Killed));
        assert_eq!(early, AttemptOutcome::NeverRan);
    }

    #[test]
    fn a_failed_prolog_ends_the_job_unless_the_machine_shuts_down() {
        let clock = BootClock::start("one".into(), FakeClocks::default());
        let outcome = |cause| {
            let exit = Exit::Failed(StartFailure::Prolog(ProgramFailure::Signal(15)));
            outcome(&clock, Attempt { job: 1, nth: 1 }, &AttemptEnd { cause, ..ended(exit) })
        };
        let failed = |outcome: AttemptOutcome| match outcome {
            AttemptOutcome::Failed { why, message, .. } => (why, message),
            other => panic!("{other:?}"),
        };
        for cause in [None, Some(EndCause::Time)] {
            assert_eq!(failed(outcome(cause)), (model::Failure::Prolog, "signal 15".to_owned()));
        }
        assert_eq!(outcome(Some(EndCause::Shutdown)), AttemptOutcome::NeverRan);
    }

    #[test]
    fn the_group_of_an_attempt_counts_before_its_processes() {
        let second = Duration::from_secs(1);
        let processes = Some(ProcessUsage { user: second, system: 2 * second, memory_peak: 4096 });
        let of_processes = AttemptEnd { processes, ..ended(Exit::Code(0)) };
        let expect = Usage {
            user: 1_000_000,
            system: 2_000_000,
            memory_peak: Some(4096),
            stops: 2,
            of_processes: true,
            ..Usage::default()
        };
        assert_eq!(usage(&of_processes), Some(expect));
        let group = miserly_cgroup::Usage { cpu: 5 * second, user: 2 * second, ..Default::default() };
        let both = AttemptEnd { usage: Some(group), ..of_processes.clone() };
        let expect = Usage { user: 2_000_000, system: 3_000_000, stops: 2, ..Usage::default() };
        assert_eq!(usage(&both), Some(expect));
        let never_ran = AttemptEnd { exit: Exit::Failed(StartFailure::Ended), ..of_processes };
        assert_eq!(usage(&never_ran), None);
    }

    /// The machine slept between the launch and the start of the command, so the window was over before it.
    #[test]
    fn a_job_whose_window_ended_before_its_command_began_is_launched_again() {
        let clock = BootClock::start("one".into(), FakeClocks::default());
        let outcome = |cause, nth| {
            let exit = Exit::Failed(StartFailure::Ended);
            let end = AttemptEnd { cause, ..ended(exit) };
            outcome(&clock, Attempt { job: 1, nth }, &end)
        };
        assert_eq!(outcome(Some(EndCause::Time), 1), AttemptOutcome::NeverRan);
        assert_eq!(outcome(Some(EndCause::Shutdown), LAUNCHES), AttemptOutcome::NeverRan);
        for (cause, nth) in [(Some(EndCause::Time), LAUNCHES), (Some(EndCause::User), 1), (None, 1)] {
            assert!(matches!(outcome(cause, nth), AttemptOutcome::Failed { .. }), "{cause:?} {nth}");
        }
    }
}
