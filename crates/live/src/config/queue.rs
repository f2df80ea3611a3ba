//! A queue of a configuration.

use std::sync::Arc;

use miserly_core::{JobClasses, Kind, Machine, Resources, Span, Time};
use miserly_engine::{IdleTerms, QueueGpus, QueueTerms};
use miserly_executor::QueueRules;
use miserly_machine_file::file::QueueFile;
use miserly_machine_file::{Queue as Part, Week, kilobytes};
use miserly_policies::{Needs, PolicySpec};
use miserly_units::duration;
use toml::{Spanned, Value};

use super::accounts;
use super::error::{Problem, of_field};
use super::programs::{self, ProgramLimits};
use super::values::time;

/// The policy of a queue without a written one.
const POLICY: &str = "miser";

/// The longest slack of promises: a day.
const MOST_SLACK: Span = Span::from_ticks(86_400_000_000);

/// The shortest and the longest time after which a job is idle.
const SHORTEST_IDLE: Span = Span::from_ticks(1_000_000);
const LONGEST_IDLE: Span = Span::from_ticks(30 * 86_400_000_000);

/// Returns the reason why a policy with these needs has no shadow and is none.
pub fn unfit(needs: &Needs) -> Option<&'static str> {
    if needs.time_slices {
        return Some("it slices time");
    }
    if needs.resizing {
        return Some("it resizes running jobs");
    }
    if needs.swapping {
        return Some("it writes the memory of suspended jobs out");
    }
    // A shadow ends no process, so its plans may go beyond limits.
    Needs { beyond_limits: false, ..*needs }.unmet_in_daemon()
}

/// The checked configuration of a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// The name.
    pub name: String,
    /// The policy.
    pub policy: PolicySpec,
    /// A second policy beside it, which starts no job.
    pub shadow: Option<PolicySpec>,
    /// The job classes of its policy, if that has any.
    pub classes: Option<Arc<JobClasses>>,
    /// The resources of its pool, over time.
    pub pool: Week,
    /// The GPUs that its jobs may have, if more is known than their number.
    pub gpus: Option<Arc<QueueGpus>>,
    /// The terms for its jobs.
    pub terms: QueueTerms,
    /// Whether programs with the set-user-ID bit give its jobs no rights; `None` for the rule of all queues.
    pub no_new_privileges: Option<bool>,
    /// The programs around attempts.
    pub programs: QueueRules,
}

impl Queue {
    /// Returns a queue over its part of the pool. `written` is `None` for the default queue of a
    /// file without queues.
    pub(super) fn checked(
        part: Part,
        written: Option<&QueueFile>,
        classes: Option<&Arc<JobClasses>>,
        limits: ProgramLimits,
    ) -> Result<Queue, Problem> {
        let nothing = QueueFile::named(&part.name);
        let written = written.unwrap_or(&nothing);
        let machine = part.week.machine(&part.name, Time::ZERO).with_classes(classes.cloned());
        let policy = policy(written, &machine)?;
        let queue = Queue {
            shadow: shadow(written, &policy, &machine)?,
            // Other queues have no use for them.
            classes: classes.filter(|_| policy.needs().host_table).cloned(),
            policy,
            terms: QueueTerms {
                default_time: time(written.default_time.as_ref(), "default-time")?,
                most_time: time(written.max_time.as_ref(), "max-time")?,
                default_memory: default_memory(written, &part.week)?,
                users: accounts::users(written),
                strict: flag(written.strict.as_ref(), "strict")?.unwrap_or(false),
                pause: flag(written.pause.as_ref(), "pause")?.unwrap_or(true),
                promise_slack: promise_slack(written)?,
                idle: idle(written)?,
            },
            no_new_privileges: flag(written.no_new_privileges.as_ref(), "no-new-privileges")?,
            programs: programs::programs(written, limits)?,
            name: part.name,
            pool: part.week,
            gpus: None,
        };
        queue.fits(written)?;
        Ok(queue)
    }

    /// Checks that its defaults for jobs fit its limits.
    fn fits(&self, written: &QueueFile) -> Result<(), Problem> {
        if let (Some(default), Some(most), Some(written)) =
            (self.terms.default_time, self.terms.most_time, &written.default_time)
            && default > most
        {
            let problem = format!("{} is more than max-time, {}", duration(default), duration(most));
            return Err(of_field(written, "default-time", &problem));
        }
        let needs = self.policy.needs();
        if self.pool.most().get(Kind::Gpus) > 0 && (needs.suspension || needs.requeue || needs.time_slices) {
            let at = written.gpus.as_ref().map_or_else(|| written.name.span(), Spanned::span);
            let name = self.policy.descriptor().name;
            let problem = format!(
                "gpus: policy {name} takes running jobs off their processors, and GPUs cannot follow"
            );
            return Err(Problem::new(at, problem));
        }
        let name = self.policy.descriptor().name;
        match &written.checkpoint {
            None if needs.swapping => {
                let at = written.policy.as_ref().map_or_else(|| written.name.span(), Spanned::span);
                let problem = format!(
                    "policy {name} with an overhead writes the memory of suspended jobs out: that needs [queue.checkpoint], with a command and a restart"
                );
                return Err(Problem::new(at, problem));
            }
            Some(checkpoint) if !needs.swapping => {
                let problem = format!(
                    "policy {} writes no memory out; a policy with an overhead does, such as ss(overhead=write)",
                    self.policy
                );
                return Err(of_field(checkpoint, "checkpoint", &problem));
            }
            _ => {}
        }
        if let Some(epilog) = written.epilog.as_ref().filter(|_| needs.requeue || needs.swapping) {
            let problem = format!(
                "policy {name} gives the processors of a job to another one at once, before an epilog could end"
            );
            return Err(of_field(epilog, "epilog", &problem));
        }
        let memory = self.pool.most().get(Kind::Memory);
        match &written.default_memory {
            Some(written) if memory > 0 && self.terms.default_memory > memory => {
                Err(of_field(written, "default-memory", &"it is more than the queue ever has"))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the value of a field that is true or false, if it is there.
fn flag(written: Option<&Spanned<Value>>, field: &str) -> Result<Option<bool>, Problem> {
    let value = |written: &Spanned<Value>| {
        written.get_ref().as_bool().ok_or_else(|| of_field(written, field, &"it is true or false"))
    };
    written.map(value).transpose()
}

/// Returns what happens to jobs that use almost no processor time.
fn idle(written: &QueueFile) -> Result<Option<IdleTerms>, Problem> {
    let ends = match &written.idle_action {
        None => false,
        Some(action) => {
            let wrong = |problem: &str| of_field(action, "idle-action", &problem);
            match action.get_ref().as_str() {
                _ if written.idle_after.is_none() => {
                    return Err(wrong("it needs idle-after, such as idle-after = \"30min\""));
                }
                Some("warn") => false,
                Some("end") => true,
                _ => return Err(wrong("it is \"warn\" or \"end\"")),
            }
        }
    };
    let Some(after) = time(written.idle_after.as_ref(), "idle-after")? else { return Ok(None) };
    match &written.idle_after {
        Some(written) if !(SHORTEST_IDLE..=LONGEST_IDLE).contains(&after) => {
            Err(of_field(written, "idle-after", &"it is from 1 s to 30 days"))
        }
        _ => Ok(Some(IdleTerms { after, ends })),
    }
}

/// Returns the slack of promises.
fn promise_slack(written: &QueueFile) -> Result<Span, Problem> {
    let field = "promise-slack";
    let slack = time(written.promise_slack.as_ref(), field)?.unwrap_or(QueueTerms::PROMISE_SLACK);
    match &written.promise_slack {
        Some(written) if slack > MOST_SLACK => Err(of_field(written, field, &"it is at most a day")),
        _ => Ok(slack),
    }
}

/// Returns the memory of a job without a memory request, kilobytes.
fn default_memory(written: &QueueFile, pool: &Week) -> Result<u64, Problem> {
    match &written.default_memory {
        Some(memory) => {
            kilobytes(memory.get_ref()).map_err(|problem| of_field(memory, "default-memory", &problem))
        }
        None => Ok(share(&pool.most())),
    }
}

/// Returns the share of memory for one processor, kilobytes.
fn share(pool: &Resources) -> u64 {
    pool.get(Kind::Memory) / pool.cpus_count().get().max(1)
}

/// Returns the second policy of a queue, if it runs on this machine in the shadow of the first.
fn shadow(queue: &QueueFile, real: &PolicySpec, machine: &Machine) -> Result<Option<PolicySpec>, Problem> {
    let Some(written) = &queue.shadow else { return Ok(None) };
    let wrong = |problem: String| of_field(written, "shadow", &problem);
    let text = written.get_ref().as_str().ok_or_else(|| wrong("it is a policy, as text".to_owned()))?;
    let policy: PolicySpec = text.parse().map_err(|error| wrong(format!("{error}")))?;
    for spec in [&policy, real] {
        if let Some(why) = unfit(&spec.needs()) {
            let name = spec.descriptor().name;
            return Err(wrong(format!("policy {name} is in no shadow and has none: {why}")));
        }
    }
    policy.build(machine, 0).map_err(|error| wrong(format!("{error}")))?;
    Ok(Some(policy))
}

/// Returns the policy, if it runs on this machine and a launcher can carry out its decisions.
fn policy(queue: &QueueFile, machine: &Machine) -> Result<PolicySpec, Problem> {
    let (span, text) = queue
        .policy
        .as_ref()
        .map_or((queue.name.span(), POLICY), |written| (written.span(), written.get_ref()));
    let wrong = |problem: String| Problem::new(span.clone(), problem);
    let mut policy: PolicySpec = text.parse().map_err(|error| wrong(format!("policy: {error}")))?;
    if let Some(written) = &queue.horizon {
        let horizon = miserly_machine_file::duration(written.get_ref());
        let horizon = horizon.map_err(|error| of_field(written, "horizon", &error))?;
        policy = policy.with_horizon(horizon).map_err(|error| of_field(written, "horizon", &error))?;
    }
    if let Some(why) = policy.needs().unmet_in_daemon() {
        let name = policy.descriptor().name;
        return Err(wrong(format!("policy {name}: {why}; it runs in simulations only")));
    }
    policy.build(machine, 0).map_err(|error| wrong(format!("policy: {error}")))?;
    Ok(policy)
}
