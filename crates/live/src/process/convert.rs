//! Conversions between the types of the engine and those of the shim.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use miserly_api::model::{self, KilledBy};
use miserly_core::{Span, Time};
use miserly_engine::{Action, ArrayMember, Attempt, AttemptOutcome, Launch, PlannedWindow};
use miserly_launch::{
    AttemptEnd, AttemptSpec, BootTime, EndCause, Exit, OutputFile, ReservedWindow, ResourceLimits, RunMode,
    ShimCommand, StartFailure,
};

use super::Home;
use crate::clock::BootClock;

/// Returns the specification of an attempt for its shim.
pub(super) fn spec(home: &Home, attempt: Attempt, launch: &Launch) -> AttemptSpec {
    let submission = &launch.submission;
    let cpus = launch.cpus.clone();
    AttemptSpec {
        job: attempt.job.unsigned_abs(),
        attempt: attempt.nth,
        argv: submission.command.iter().map(OsString::from).collect(),
        script: submission.script.clone(),
        cwd: submission.directory.clone(),
        env: environment(home, attempt, launch),
        stdout: output_file(launch.output.clone(), launch),
        stderr: launch.error.clone().map(|path| output_file(path, launch)),
        umask: submission.umask,
        limits: ResourceLimits {
            memory: (launch.memory > 0).then(|| launch.memory.saturating_mul(1024)),
            files: super::files::before(),
        },
        mode: match launch.end {
            Some(_) if launch.limit.is_some() => RunMode::Reserved { cpus, end: BootTime::MAX },
            Some(end) => RunMode::Reserved { cpus, end: boot_time(home.clock, end) },
            None => RunMode::Opportunistic {
                cpus,
                window: launch.planned_window.clone().map(|planned| window(home.clock, planned)),
            },
        },
        grace: duration(launch.grace),
        orphan_resume_delay: duration(launch.orphan_resume_delay),
        run_limit: launch.limit.map(duration),
    }
}

/// Returns an output file. The first attempt that runs truncates the file, as a shell would. Later
/// attempts append to it.
fn output_file(path: PathBuf, launch: &Launch) -> OutputFile {
    OutputFile { path, append: launch.append }
}

/// Returns the environment of a job: that of its submission, and variables that describe the job.
/// Some have the names that scripts know from Slurm, too.
fn environment(home: &Home, attempt: Attempt, launch: &Launch) -> Vec<(OsString, OsString)> {
    let mut environment = launch.submission.environment.clone();
    let mut set = |names: &[&str], value: String| {
        for name in names {
            environment.insert((*name).to_owned(), value.clone());
        }
    };
    set(&["MISERLY_JOB_ID", "SLURM_JOB_ID", "SLURM_JOBID"], attempt.job.to_string());
    set(&["MISERLY_JOB_NAME", "SLURM_JOB_NAME"], launch.name.clone());
    set(&["MISERLY_CPUS", "SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"], launch.submission.cpus.to_string());
    set(&["MISERLY_ATTEMPT"], attempt.nth.to_string());
    set(&["MISERLY_SOCKET"], home.socket.to_string_lossy().into_owned());
    set(&["SLURM_SUBMIT_DIR"], launch.submission.directory.to_string_lossy().into_owned());
    if let Some(ArrayMember { first, index }) = launch.array {
        set(&["MISERLY_ARRAY_ID", "SLURM_ARRAY_JOB_ID"], first.to_string());
        set(&["MISERLY_ARRAY_INDEX", "SLURM_ARRAY_TASK_ID"], index.to_string());
    }
    environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// Returns the shim's command for an action of the engine, if there is one.
pub(super) fn command(clock: BootClock, action: Action) -> Option<ShimCommand> {
    Some(match action {
        Action::Stop => ShimCommand::Stop,
        Action::Continue => ShimCommand::Resume,
        Action::BeginWindow { cpus, end } => ShimCommand::BeginWindow { cpus, end: boot_time(clock, end) },
        Action::PlanWindow(planned) => ShimCommand::SetWindow(window(clock, planned)),
        Action::Move(cpus) => ShimCommand::SetCpus { cpus },
        Action::RunFor(limit) => ShimCommand::SetRunLimit { limit: duration(limit) },
        Action::EndAt(end) => ShimCommand::SetEnd { end: boot_time(clock, end), max_after_resume: None },
        Action::EndIfOrphaned { end, left } => {
            ShimCommand::SetEnd { end: boot_time(clock, end), max_after_resume: Some(duration(left)) }
        }
        Action::Kill { grace } => ShimCommand::Kill { grace: duration(grace) },
        Action::Launch(_) | Action::EndOverdue { .. } | Action::Forget => return None,
    })
}

/// Returns the outcome of an attempt, in the engine's terms.
pub(super) fn outcome(clock: BootClock, end: &AttemptEnd) -> AttemptOutcome {
    let at = clock.ticks(end.at.0);
    let by = end.cause.as_ref().map(|cause| match cause {
        EndCause::Time => KilledBy::Time,
        EndCause::User => KilledBy::User,
        EndCause::Shutdown => KilledBy::Shutdown,
    });
    match &end.exit {
        Exit::Code(code) => AttemptOutcome::Ended { at, exit: model::Exit::Code(*code), by },
        Exit::Signal { signal, .. } => AttemptOutcome::Ended { at, exit: model::Exit::Signal(*signal), by },
        // The job can be launched again.
        Exit::Failed(StartFailure::Ended) if end.cause == Some(EndCause::Shutdown) => {
            AttemptOutcome::NeverRan
        }
        Exit::Failed(failure) => {
            AttemptOutcome::Failed { at, why: self::failure(failure), message: failure.to_string() }
        }
    }
}

fn failure(failure: &StartFailure) -> model::Failure {
    match failure {
        StartFailure::WorkingDirectory { .. } => model::Failure::Directory,
        StartFailure::OutputFile { .. } => model::Failure::Output,
        StartFailure::Program { .. } => model::Failure::Program,
        _ => model::Failure::System,
    }
}

fn window(clock: BootClock, PlannedWindow { start, end, cpus }: PlannedWindow) -> ReservedWindow {
    ReservedWindow { start: boot_time(clock, start), end: boot_time(clock, end), cpus }
}

fn boot_time(clock: BootClock, at: Time) -> BootTime {
    BootTime(clock.boot_time(at))
}

pub(super) fn duration(span: Span) -> Duration {
    Duration::from_micros(span.ticks().max(0).unsigned_abs())
}
