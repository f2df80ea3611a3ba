//! `miserly slurm twin`: what the configuration of a cluster would have done, or a policy in its place.

use std::collections::BTreeMap;

use miserly_core::{JobNumber, Time};
use miserly_policies::PolicySpec;
use miserly_slurm::{
    Comparison, ControllerDelays, CycleAudit, RecordedHost, RecordedJob, Twin, TwinAudit, TwinCauses,
    place_jobs,
};
use serde::Serialize;

use super::site::Site;
use super::{accounting, left_out_text, share};
use crate::args::SlurmTwinArgs;
use crate::commands::live::{counted, table};
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
    /// Why starts differ by more than a cycle.
    causes: TwinCauses,
    delays: ControllerDelays,
    /// Jobs that the simulation left out: without processors, wider than the cluster is now, or refused by the policy.
    not_simulated: u64,
    /// Runs after a preemption that the policy did not make.
    not_repeated: u64,
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
        None => site.twin(&site.cluster),
    };
    let policy: PolicySpec = twin.policy.parse()?;
    let cycle = configuration.cycle();
    let now = configuration.now.saturating_sub(accounting.begin.as_second());
    let until = until.or_else(|| Time::from_secs(now));
    let prepared = site.prepare(&accounting, site.runs_on_nodes(&policy));
    let comparison = prepared.comparison(&policy);
    let (jobs, machine) = (comparison.jobs, comparison.machine);
    let simulated = comparison.starts_from_idle().map_err(anyhow::Error::msg)?;
    let in_period: Vec<&RecordedJob> = jobs.iter().filter(|job| job.request.submit >= since).collect();
    let starts =
        |job: &&RecordedJob| Some((job.request.submit, job.start?, *simulated.get(&job.request.number)?));
    let starts: Vec<(Time, Time, Time)> = in_period.iter().filter_map(starts).collect();
    let audit = TwinAudit::new(&starts, cycle);
    let is_missing = |job: &&&RecordedJob| !simulated.contains_key(&job.request.number);
    let reruns = in_period.iter().filter(|job| job.rerun_of.is_some());
    let not_repeated = reruns.filter(is_missing).count() as u64;
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
    let (cycles, seen) = Comparison { jobs: &all, ..comparison }.cycles(
        cycle,
        since..=until.unwrap_or(Time::MAX),
        MOST_STATES,
    );
    let of_job = |job: &&RecordedJob| {
        let number = job.request.number;
        Some((job.start?, *simulated.get(&number)?, seen.get(&number).copied()))
    };
    let causes = TwinCauses::new(in_period.iter().filter_map(of_job), cycle);
    let delays = ControllerDelays::new(jobs, cycle, site.cycles);
    let not_simulated = eligible - starts.len() as u64 - not_repeated;
    let document = TwinDoc { twin, audit, cycles, causes, delays, not_simulated, not_repeated };
    if args.json { print_json(&document) } else { print(&twin_text(&document)) }
}

fn twin_text(document: &TwinDoc) -> String {
    let TwinDoc { twin, audit, cycles, causes, delays, not_simulated, not_repeated } = document;
    let mut text = format!("policy: {}\n", twin.policy);
    for what in &twin.left_out {
        text += &format!("not in the twin: {what}\n");
    }
    text += &left_out_text(*not_simulated);
    if *not_repeated > 0 {
        text += &format!(
            "not repeated: {} after a preemption that the policy did not make\n",
            counted(*not_repeated, "run")
        );
    }
    text += &format!(
        "from {} of the cluster, two cycles ahead: {} of {} recorded starts are the policy's too, and {} of {} starts by the policy are recorded\n",
        counted(cycles.states, "state"),
        share(cycles.foreseen, cycles.starts),
        cycles.starts,
        share(cycles.confirmed, cycles.simulated),
        cycles.simulated,
    );
    if cycles.states_left_out > 0 {
        text += &format!(
            "not compared: {}, with more processors in use than there are, as beside suspended jobs, or a job in an unknown place\n",
            counted(cycles.states_left_out, "state"),
        );
    }
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
    ) + &causes_text(causes)
        + &delays_text(delays)
}

/// Returns a table of the causes of differences, if there are any.
fn causes_text(causes: &TwinCauses) -> String {
    if causes.different == 0 {
        return String::new();
    }
    let rows = [
        (
            causes.inherited,
            "from the recorded state as in the cluster: the simulation had another state, by earlier differences",
        ),
        (
            causes.cluster_later,
            "the cluster started the job later than the policy does from the recorded state",
        ),
        (
            causes.cluster_earlier,
            "the cluster started the job earlier than the policy does from the recorded state",
        ),
        (causes.unseen, "no state of the cluster was compared around the start"),
    ];
    let rows = rows.into_iter().filter(|(count, _)| *count > 0);
    let rows = rows.map(|(count, cause)| vec![count.to_string(), cause.to_owned()]);
    format!("causes of the {}:\n", counted(causes.different, "different start"))
        + &table(&["starts", "cause"], &["starts"], rows)
}

/// Returns a line on the delays of the controller.
fn delays_text(delays: &ControllerDelays) -> String {
    let mut text = format!(
        "a start follows the last end or submission after {} s (median), of 95 % within {} s; cycles are {} apart",
        delays.median,
        delays.most_95,
        seconds(delays.interval),
    );
    if let (Some(mean), Some(longest), Some(main)) =
        (delays.cycle_mean, delays.cycle_longest, delays.main_longest)
    {
        text += &format!(
            ", take {mean:.3} s in the mean and {longest:.1} s at most, and the main loop {main:.1} s at most"
        );
    }
    text + "\n"
}
