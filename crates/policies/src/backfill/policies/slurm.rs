//! The scheduling of Slurm, as a policy.

use miserly_core::{Machine, Policy, Spread, Time};

use super::QUEUE_ORDER;
use crate::backfill::{CountPlan, NodePlan, PreemptionOrder, Simple, SlurmLike, SlurmRules};
use crate::registry::{Needs, ParamReader, Params, PolicyDescriptor, PolicyError};
use crate::shared::{Computations, HostPlan};

/// `slurm`.
pub static SLURM: PolicyDescriptor = PolicyDescriptor {
    name: "slurm",
    title: "Slurm: the first jobs of the queue start while they fit; backfilling in cycles",
    paper: "Yoo, Jette, Grondona: SLURM: Simple Linux Utility for Resource Management, JSSPP 2003; slurm.conf(5), \
        SchedulerParameters",
    promises: "nothing",
    needs: Needs { calendar: true, closed_hosts: true, ..Needs::NONE },
    spellings: &[],
    examples: &[],
    read,
};

fn read(params: &mut ParamReader<'_>) -> Result<Box<dyn Params>, PolicyError> {
    let order = params.order("order", "arrival", QUEUE_ORDER)?;
    let order = params.order_settings()?.apply(order);
    let period = params.duration_or_none(
        "priority_calc_period",
        1,
        "none",
        "the time between two computations of the priorities: between them, wait and fair_tree are constant; none: they are always exact",
    )?;
    let first = params.duration(
        "priority_calc_first",
        0,
        "0s",
        "the instant of one of these computations, in the time of the log",
    )?;
    let computations = period.map(|period| Computations { period, first: Time::ZERO + first });
    let order = order.with_computations(computations);
    let batch_sched_delay = params.duration(
        "batch_sched_delay",
        0,
        "0s",
        "the least time between two main loops that follow submissions; Slurm's is 3 s",
    )?;
    let backfill =
        params.flag("backfill", true, "whether there are cycles: sched/backfill, not sched/builtin")?;
    let bf_interval = params.duration("bf_interval", 1, "30s", "the time between two cycles")?;
    let bf_first =
        params.duration("bf_first", 0, "0s", "the instant of one of these cycles, in the time of the log")?;
    let bf_resolution = params.duration(
        "bf_resolution",
        1,
        "60s",
        "the unit of a cycle's plan: time limits are rounded up to it; on nodes, reservations are rounded down",
    )?;
    let bf_window =
        params.duration("bf_window", 1, "1d", "how far ahead a reservation of a cycle may begin")?;
    let bf_max_job_test =
        params.integer("bf_max_job_test", 1..=1_000_000, 500, "the number of jobs that a cycle tries")?;
    let limits = params.running_limits(
        "limits",
        "the limits of running jobs: for queues by number, for groups (g1), or for all, the most jobs, processors, GPUs and MiB of memory, and those of each user",
    )?;
    let preemption = params.preemption(
        "preempt",
        "the running jobs that leave the machine for others: for queues by number, the queues of the others, or of those with a higher priority, requeue, cancel or suspend, the rank of Slurm's priority, and the times of exemption and grace",
    )?;
    let youngest_first = params.flag(
        "preempt_youngest_first",
        false,
        "whether the job that started last is preempted first; else the one of the lowest rank",
    )?;
    let reorder_count = params.integer(
        "preempt_reorder_count",
        0..=1_000,
        1,
        "how often the running jobs are tried again to preempt fewer of them",
    )?;
    let strict_order = params.flag(
        "preempt_strict_order",
        false,
        "whether these further tries keep the order of the jobs, but for the last one",
    )?;
    let preemption_order = PreemptionOrder { youngest_first, reorder_count, strict_order };
    let requeue_delay =
        params.duration("requeue_delay", 1, "2min", "the time after which a requeued job may start again")?;
    let preempt_completing = params.duration(
        "preempt_completing",
        1,
        "1s",
        "the time from the end of a preempted job until its resources are free",
    )?;
    let preempt_retry = params.duration(
        "preempt_retry",
        0,
        "40s",
        "the time after which a waiting job preempts further jobs: KillWait and MessageTimeout",
    )?;
    let billing = params.billing(
        "billing",
        "what the resources of jobs cost in the usage, for queues by number; none: as much as their processors",
    )?;
    let order = if preemption.is_empty() { order } else { order.with_requeues() };
    Ok(Box::new(SlurmRules {
        order,
        batch_sched_delay,
        backfill,
        bf_interval,
        bf_first,
        bf_resolution,
        bf_window,
        bf_max_job_test,
        limits,
        preemption,
        preemption_order,
        requeue_delay,
        preempt_completing,
        preempt_retry,
        billing,
    }))
}

impl Params for SlurmRules {
    fn build(&self, machine: &Machine) -> Box<dyn Policy> {
        let are_all_open = machine.closed_hosts().is_empty();
        let plans_nodes = machine.spread() == Spread::Any || !are_all_open || !self.preemption.is_empty();
        if machine.is_plain() && are_all_open {
            Box::new(SlurmLike::<Simple<CountPlan>>::idle(machine, self.clone()))
        } else if machine.calendar().is_none() && plans_nodes {
            Box::new(SlurmLike::<NodePlan>::idle(machine, self.clone()))
        } else {
            Box::new(SlurmLike::<Simple<HostPlan>>::idle(machine, self.clone()))
        }
    }

    fn needs(&self, needs: Needs) -> Needs {
        let preempts = !self.preemption.is_empty();
        let cancellation = self.preemption.cancels();
        let calendar = needs.calendar && !preempts;
        let suspension = self.preemption.suspends();
        Needs { calendar, suspension, requeue: preempts, cancellation, refusals: cancellation, ..needs }
    }
}
