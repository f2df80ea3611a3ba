//! `miserly slurm twin`: what the configuration of a cluster would have done, or a policy in its place.

use std::collections::BTreeMap;

use miserly_core::{JobNumber, Time};
use miserly_policies::PolicySpec;
use miserly_slurm::{
    BackfillCycles, Comparison, CycleAudit, RecordedHost, RecordedJob, Twin, TwinAudit, place_jobs,
};
use serde::Serialize;

use super::site::Site;
use super::{accounting, left_out_text, share};
use crate::args::SlurmTwinArgs;
use crate::commands::live::counted;
use crate::commands::slurm::{read_to_schedule, seconds};
use crate::output::{print, print_json};

/// The most recorded states from which a twin decides.
const MOST_STATES: usize = 1000;

/// The document of `twin`.
#[derive(Serialize)]
struct TwinDoc {
    #[serde(flatten)]
    twin: Twin,
    #[serde(flatten)]
    audit: TwinAudit,
    cycles: CycleAudit,
    /// Jobs that the simulation left out: without processors, wider than the cluster is now, or refused by the policy.
    not_simulated: u64,
}

pub(in crate::commands::slurm) fn twin(args: &SlurmTwinArgs) -> anyhow::Result<()> {
    let slurm = args.period.cluster.slurm();
    // Its version is checked first. The accounting may take a while, and jobs end meanwhile.
    read_to_schedule(&slurm)?;
    let mut accounting = accounting(&slurm, &args.period)?;
    let eligible = accounting.eligible(&args.period);
    if !args.json {
        accounting.check(&args.period)?;
    }
    let since = accounting.instant(args.period.since);
    let until = args.period.until.map(|until| accounting.instant(until));
    let mut site = Site::read(&slurm, &args.period, args.policy.is_some(), &mut accounting)?;
    let configuration = &site.cluster.configuration;
    let twin = match &args.policy {
        Some(policy) => Twin { policy: policy.to_string(), left_out: vec![] },
        None => site.twin(&site.cluster, BackfillCycles::read(&slurm)),
    };
    let policy: PolicySpec = twin.policy.parse()?;
    let cycle = configuration.cycle();
    let now = configuration.now.saturating_sub(accounting.begin.as_second());
    let until = until.or_else(|| Time::from_secs(now));
    let prepared = site.prepare(&accounting, site.runs_on_nodes(&policy));
    let comparison = prepared.comparison(&policy);
    let (jobs, machine) = (comparison.jobs, comparison.machine);
    let simulated = comparison.starts_from_idle().map_err(anyhow::Error::msg)?;
    let starts = jobs.iter().filter(|job| job.request.submit >= since);
    let starts: Vec<(Time, Time, Time)> = starts
        .filter_map(|job| Some((job.request.submit, job.start?, *simulated.get(&job.request.number)?)))
        .collect();
    let audit = TwinAudit::new(&starts, cycle);
    let mut all = jobs.to_vec();
    let ids_of =
        |job: &RecordedJob| accounting.ids.get(usize::try_from(job.request.number - 1).ok()?).copied();
    let mut hosts: BTreeMap<JobNumber, Vec<RecordedHost>> = jobs
        .iter()
        .filter_map(|job| Some((job.request.number, site.hosts(ids_of(job)?, job.start?)?)))
        .collect();
    for (job, id) in site.unfinished() {
        let on = job.start.and_then(|start| site.hosts(id, start));
        hosts.extend(on.map(|on| (job.request.number, on)));
        all.push(job);
    }
    place_jobs(machine, &mut all, &hosts);
    let cycles = Comparison { jobs: &all, ..comparison }.cycles(
        cycle,
        since..=until.unwrap_or(Time::MAX),
        MOST_STATES,
    );
    let document = TwinDoc { twin, audit, cycles, not_simulated: eligible - starts.len() as u64 };
    if args.json { print_json(&document) } else { print(&twin_text(&document)) }
}

fn twin_text(TwinDoc { twin, audit, cycles, not_simulated }: &TwinDoc) -> String {
    let mut text = format!("policy: {}\n", twin.policy);
    for what in &twin.left_out {
        text += &format!("not in the twin: {what}\n");
    }
    text += &left_out_text(*not_simulated);
    text += &format!(
        "from {} of the cluster, two cycles ahead: {} of {} recorded starts are the policy's too, and {} of {} starts by the policy are recorded\n",
        counted(cycles.states, "state"),
        share(cycles.foreseen, cycles.starts),
        cycles.starts,
        share(cycles.confirmed, cycles.simulated),
        cycles.simulated,
    );
    if audit.jobs == 0 {
        return text + "no job was simulated\n";
    }
    text + &format!(
        "{}, of which {} waited for more than a cycle\n\
         starts within a cycle ({}): {}; of those that waited: {}\n\
         difference of the starts: median {} s, of 95 % at most {} s\n\
         mean wait: {:.0} s in the accounting, {:.0} s under the twin\n",
        counted(audit.jobs, "job"),
        audit.waited,
        seconds(audit.cycle),
        share(audit.close, audit.jobs),
        share(audit.close_of_waited, audit.waited),
        audit.median_difference,
        audit.difference_95,
        audit.recorded_mean_wait,
        audit.twin_mean_wait,
    )
}
