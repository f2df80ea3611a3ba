//! `miserly slurm shadow`: what another policy, or a changed cluster, would have done.

use std::collections::BTreeMap;

use anyhow::{anyhow, ensure};
use jiff::Timestamp;
use miserly_api::model::ShadowView;
use miserly_core::{JobNumber, Time};
use miserly_engine::wall_after;
use miserly_live::shadow::{ComparedJob, of_jobs};
use miserly_policies::PolicySpec;
use miserly_slurm::{Cluster, JobState, RecordedJob, Twin, TwinAudit};
use serde::Serialize;

use super::site::Site;
use super::{accounting, left_out_text, share};
use crate::args::SlurmShadowArgs;
use crate::commands::live::{counted, shadow_text};
use crate::commands::slurm::{read_to_schedule, seconds};
use crate::output::{print, print_json};

/// The document of `shadow`.
#[derive(Serialize)]
struct ShadowDoc {
    #[serde(flatten)]
    view: ShadowView,
    /// The base line: the policy that schedules as the cluster does.
    twin: Twin,
    /// How near the base line is to the accounting.
    twin_audit: TwinAudit,
    /// Whether both policies ran on the processors of the cluster without its nodes.
    without_nodes: bool,
    /// Jobs of the period that neither simulation has.
    not_simulated: u64,
}

pub(in crate::commands::slurm) fn shadow(args: &SlurmShadowArgs) -> anyhow::Result<()> {
    let slurm = args.period.cluster.slurm();
    read_to_schedule(&slurm)?;
    let mut accounting = accounting(&slurm, &args.period)?;
    if !args.json {
        accounting.check(&args.period)?;
    }
    let mut site = Site::read(&slurm, &args.period, args.policy.is_some(), &mut accounting)?;
    let cycle = site.cluster.configuration.cycle();
    let twin = site.twin(&site.cluster);
    let base: PolicySpec = twin.policy.parse()?;
    let shadow = Shadow::new(args, &site, &twin)?;
    let without_nodes = [&base, &shadow.policy].into_iter().any(|policy| !site.runs_on_nodes(policy));
    let prepared = site.prepare(&accounting, !without_nodes);
    let base_starts = prepared.comparison(&base).starts_from_idle().map_err(anyhow::Error::msg)?;
    let real_policy = format!("the twin of Slurm {}", site.cluster.configuration.version);
    let queue = site.cluster.configuration.cluster.clone();
    let unfinished = site.cluster.jobs.values().filter(|job| job.state != JobState::Pending).count() as u64;
    site.cluster = shadow.cluster;
    let changed = site.prepare(&accounting, !without_nodes);
    let starts = changed.comparison(&shadow.policy).starts_from_idle().map_err(anyhow::Error::msg)?;

    let since = accounting.instant(args.period.since);
    let jobs: Vec<&RecordedJob> = prepared.jobs.iter().filter(|job| job.request.submit >= since).collect();
    let wall = |at: Time| wall_after(accounting.begin, at - Time::ZERO);
    let compared = jobs.iter().filter_map(|job| compared(job, &base_starts, &starts, wall));
    let compared: Vec<ComparedJob> = compared.collect();
    let audit: Vec<(Time, Time, Time)> = jobs
        .iter()
        .filter_map(|job| Some((job.request.submit, job.start?, *base_starts.get(&job.request.number)?)))
        .collect();
    let not_simulated = accounting.eligible(&args.period) - compared.len() as u64;
    let until = args.period.until.unwrap_or_else(Timestamp::now);
    let view = of_jobs(queue, [shadow.name, real_policy], compared, [args.period.since, until]);
    let twin_audit = TwinAudit::new(&audit, cycle);
    let document = ShadowDoc { view, twin, twin_audit, without_nodes, not_simulated };
    if args.json {
        return print_json(&document);
    }
    if unfinished > 0 && args.period.until.is_none() {
        note!("warning: {} that have not ended are not in the shadow", counted(unfinished, "job"));
    }
    print(&text(&document))
}

/// Returns a job that at least one of the policies started.
fn compared(
    job: &RecordedJob,
    base: &BTreeMap<JobNumber, Time>,
    shadow: &BTreeMap<JobNumber, Time>,
    wall: impl Fn(Time) -> Timestamp,
) -> Option<ComparedJob> {
    let [base, shadow] = [base, shadow].map(|starts| starts.get(&job.request.number).copied());
    base.or(shadow)?;
    Some(ComparedJob {
        submitted: wall(job.request.submit),
        uid: job.request.user.unwrap_or(u32::MAX),
        procs: job.request.procs().get(),
        start: base.map(&wall),
        shadow_start: shadow.map(&wall),
        runtime: job.start.zip(job.end).map(|(start, end)| end - start),
        refused: shadow.is_none(),
    })
}

/// What is compared with the twin of a cluster.
struct Shadow {
    name: String,
    policy: PolicySpec,
    /// The cluster with its changes.
    cluster: Cluster,
}

impl Shadow {
    fn new(args: &SlurmShadowArgs, site: &Site, twin: &Twin) -> anyhow::Result<Shadow> {
        let mut cluster = site.cluster.clone();
        for setting in &args.set {
            cluster.set(setting).map_err(|error| anyhow!("--set {setting}: {error}"))?;
        }
        if let Some(added) = &args.add_nodes {
            cluster
                .add_nodes(added.count, added.like.as_deref())
                .map_err(|error| anyhow!("--add-nodes: {error}"))?;
        }
        let nodes = args.add_nodes.iter().map(|added| format!("{} more", counted(added.count, "node")));
        let policy = if let Some(policy) = &args.policy {
            policy.clone()
        } else {
            let changed = site.twin(&cluster);
            ensure!(
                args.set.is_empty() || changed.policy != twin.policy,
                "--set changes nothing in the twin, which is {}: the value is that of the cluster, or nothing depends on it",
                twin.policy
            );
            changed.policy.parse()?
        };
        let name = args.policy.iter().map(PolicySpec::to_string);
        let name: Vec<String> = name.chain(args.set.iter().map(ToString::to_string)).chain(nodes).collect();
        Ok(Shadow { name: name.join(", "), policy, cluster })
    }
}

fn text(ShadowDoc { view, twin, twin_audit: audit, without_nodes, not_simulated }: &ShadowDoc) -> String {
    let mut text = shadow_text(view) + &left_out_text(*not_simulated);
    text += &format!(
        "\nthe twin has {} of {} within a cycle ({}) of the accounting; mean wait {:.0} s in the accounting, {:.0} s under the twin\n",
        share(audit.close, audit.jobs),
        counted(audit.jobs, "start"),
        seconds(audit.cycle),
        audit.recorded_mean_wait,
        audit.twin_mean_wait,
    );
    if *without_nodes {
        text += "both ran on the processors of the cluster without its nodes, because the policy plans no nodes\n";
    }
    for what in &twin.left_out {
        text += &format!("not in the twin: {what}\n");
    }
    text
}
