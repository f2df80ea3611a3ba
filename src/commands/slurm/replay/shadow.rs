//! `miserly slurm shadow`: what another policy would have done.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use miserly_core::{JobNumber, Machine, Refusal, Request, Span, Time};
use miserly_engine::wall_after;
use miserly_import::ImportedLog;
use miserly_live::shadow::{ComparedJob, of_jobs};
use miserly_policies::PolicySpec;
use miserly_run::{RunOptions, RunSetup};
use miserly_sim::{Finished, Observer};
use miserly_slurm::JobState;
use miserly_workload::swf::{Field, Record};
use miserly_workload::{JobOptions, Overrun, Trace};

use super::{Accounting, accounting, left_out_text, plain, times};
use crate::args::SlurmShadowArgs;
use crate::commands::live::{counted, shadow_text};
use crate::commands::slurm::read_to_schedule;
use crate::output::{print, print_json};

/// The outcome of jobs in a simulation, by their place in the log.
#[derive(Default)]
struct Outcomes {
    starts: BTreeMap<JobNumber, Time>,
    refused: BTreeSet<JobNumber>,
}

impl Observer for Outcomes {
    fn finished(&mut self, job: &Finished) -> std::io::Result<()> {
        self.starts.insert(job.request.number, job.start);
        Ok(())
    }

    fn refused(&mut self, _now: Time, request: &Request, _why: Refusal) -> std::io::Result<()> {
        self.refused.insert(request.number);
        Ok(())
    }
}

/// A job of the accounting that has ended, and its start in a simulation.
struct Replayed {
    /// The record of the accounting.
    record: Record,
    submit: Time,
    /// The recorded start.
    start: Time,
    /// The start in the simulation; none if the policy refused the job.
    simulated: Option<Time>,
}

pub(in crate::commands::slurm) fn shadow(args: &SlurmShadowArgs) -> anyhow::Result<()> {
    let slurm = args.period.cluster.slurm();
    let cluster = read_to_schedule(&slurm)?;
    let accounting = accounting(&slurm, &args.period)?;
    if !args.json {
        accounting.check(&args.period)?;
    }
    let since = accounting.instant(args.period.since);
    let Accounting { log, begin, .. } = accounting;
    let outcomes = simulated(&log, &plain(&cluster), &args.policy)?;
    let (mut jobs, mut not_simulated) = (vec![], 0);
    for record in log.records {
        let Some((submit, start)) = times(&record) else { continue };
        if submit < since {
            continue;
        }
        let number = record.get(Field::Job);
        let simulated = outcomes.starts.get(&number).copied();
        if simulated.is_none() && !outcomes.refused.contains(&number) {
            not_simulated += 1;
        } else {
            jobs.push(Replayed { record, submit, start, simulated });
        }
    }
    let wall = |at: Time| wall_after(begin, at - Time::ZERO);
    let job = |job: Replayed| ComparedJob {
        submitted: wall(job.submit),
        uid: u32::try_from(job.record.get(Field::User)).unwrap_or(u32::MAX),
        procs: job.record.get(Field::Allocated).unsigned_abs(),
        start: Some(wall(job.start)),
        shadow_start: job.simulated.map(wall),
        runtime: Span::from_secs(job.record.get(Field::Runtime)),
        refused: job.simulated.is_none(),
    };
    let until = args.period.until.unwrap_or_else(Timestamp::now);
    let names = [args.policy.to_string(), format!("Slurm {}", cluster.configuration.version)];
    let jobs = jobs.into_iter().map(job);
    let view = of_jobs(cluster.configuration.cluster.clone(), names, jobs, [args.period.since, until]);
    if args.json {
        return print_json(&view);
    }
    let unfinished = cluster.jobs.values().filter(|job| job.state != JobState::Pending).count() as u64;
    if unfinished > 0 && args.period.until.is_none() {
        note!("warning: {} that have not ended are not in the shadow", counted(unfinished, "job"));
    }
    print(&(shadow_text(&view) + &left_out_text(not_simulated)))
}

/// Returns the outcomes of the jobs of a log that have ended, from their eligibility on.
fn simulated(log: &ImportedLog, machine: &Machine, policy: &PolicySpec) -> anyhow::Result<Outcomes> {
    let mut text = vec![];
    log.write(&mut text)?;
    // Slurm ends a job some time after its limit. The real runtime counts.
    let jobs = JobOptions { overrun: Overrun::Run, ..JobOptions::default() };
    let procs = Some(machine.capacity().cpus_count());
    let setup = RunSetup::new(
        Trace::memory("the accounting", text),
        RunOptions { procs, jobs, ..RunOptions::default() },
    )?;
    let mut outcomes = Outcomes::default();
    setup.outcome(policy, false, &mut [&mut outcomes])?;
    Ok(outcomes)
}
