//! What the daemon knows of the control groups of its jobs. The executor has the rights to change them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use miserly_api::model::{CriticalPriority, Unenforced};
use miserly_cgroup::systemd::Confinement;
use miserly_cgroup::{Capability, JobGroup, Pressure, Resource, Tree};
use miserly_core::Kind;
use miserly_engine::{Attempt, Usage};
use miserly_executor::{GroupFacts, GroupPlace as Place, GroupSettings};
use miserly_launch::CriticalMeans;
use miserly_launcher::group_usage;

use crate::config::{Configuration, GroupPlace};

/// What the kernel does for the control groups of jobs.
#[derive(Clone, Debug, Default)]
pub struct JobGroups {
    facts: Option<GroupFacts>,
    confines: bool,
    /// The priority of jobs in their windows, as configured.
    priority: miserly_launch::CriticalPriority,
    /// The memory that stays free for the system, in bytes.
    reserve: Arc<AtomicU64>,
    /// Why jobs see the GPUs of other jobs; `None` if they do not, or if there are none.
    open_gpus: Option<String>,
}

impl JobGroups {
    /// `facts` is what the kernel does; `None` if jobs have no control groups.
    pub fn new(configuration: &Configuration, facts: Option<GroupFacts>) -> JobGroups {
        let asked = configuration.cgroup == Some(GroupPlace::Systemd { confine: true });
        let reserve = Arc::new(AtomicU64::new(configuration.memory_plan().reserve));
        let priority = configuration.rules.critical_priority;
        let open_gpus = open_gpus(configuration, facts.as_ref());
        JobGroups { confines: asked && facts.is_some(), facts, priority, reserve, open_gpus }
    }

    /// Returns the settings for the executor; `None` if jobs are to have no control groups.
    pub fn settings(configuration: &Configuration) -> Option<GroupSettings> {
        let place = match configuration.cgroup.as_ref()? {
            GroupPlace::Folder(path) => Place::Folder(path.clone()),
            GroupPlace::Systemd { .. } => Place::Systemd,
        };
        let has = |cpu: &&u32| !configuration.cpus.contains(*cpu);
        let outside = configuration.opportunistic_cpus.iter().find(has).or(configuration.cpus.first());
        Some(GroupSettings {
            place,
            memory: configuration.memory_plan().pool,
            cpus: configuration.cpus.clone(),
            // Not one that a job has as a partition.
            probed: outside.copied().unwrap_or(0),
            has_strict_queues: configuration.queues.iter().any(|queue| queue.terms.strict),
            has_priority: configuration.rules.critical_priority != miserly_launch::CriticalPriority::Off,
            gpus: configuration.gpu_devices().unwrap_or_default(),
        })
    }

    /// Returns whether other programs are kept off the processors of jobs in their windows.
    pub(super) fn confines(&self) -> bool {
        self.confines
    }

    /// Returns the group of an attempt that may have a partition.
    pub(super) fn partition(&self, attempt: Attempt) -> Option<JobGroup> {
        self.facts.as_ref().filter(|facts| facts.has_partitions)?;
        Some(self.tree()?.job(attempt.job.unsigned_abs(), attempt.nth))
    }

    /// Returns the tree of groups, to read from it.
    fn tree(&self) -> Option<Tree> {
        self.facts.as_ref().map(|facts| Tree::opened(&facts.tree, None))
    }

    /// Returns what the kernel does for the groups of jobs.
    pub(super) fn can(&self) -> &[Capability] {
        self.facts.as_ref().map_or(&[], |facts| &facts.can)
    }

    /// Changes the memory that stays free for the system.
    pub(crate) fn set_reserve(&self, bytes: u64) {
        self.reserve.store(bytes, Ordering::Relaxed);
    }

    /// Returns the memory that stays free for the system, in bytes.
    pub(super) fn reserve(&self) -> u64 {
        self.reserve.load(Ordering::Relaxed)
    }

    /// Returns the groups of attempts that exist.
    ///
    /// # Errors
    /// The folder of the groups cannot be read.
    pub(super) fn attempts(&self) -> io::Result<Vec<(Attempt, JobGroup)>> {
        let Some(tree) = self.tree() else { return Ok(vec![]) };
        let groups = tree.jobs().map_err(|error| io::Error::other(error.to_string()))?;
        let attempt = |(job, nth, group)| Some((Attempt { job: i64::try_from(job).ok()?, nth }, group));
        Ok(groups.into_iter().filter_map(attempt).collect())
    }

    /// Returns the pressure on the processors and the memory of all jobs, if there are groups and the kernel reports it.
    pub(crate) fn pressure(&self) -> Option<(Option<Pressure>, Option<Pressure>)> {
        let tree = self.tree()?;
        let of = |resource| Pressure::of_group(tree.group(), resource);
        Some((of(Resource::Cpu), of(Resource::Memory)))
    }

    /// Returns what an attempt has used so far, if it has a group.
    pub(super) fn usage(&self, attempt: Attempt) -> Option<Usage> {
        let used = self.tree()?.job(attempt.job.unsigned_abs(), attempt.nth).usage().ok()?;
        Some(group_usage(&used))
    }

    /// Returns the means that give jobs in their windows a priority over other programs.
    pub fn critical_priority(&self) -> CriticalPriority {
        let raises = self.facts.as_ref().is_some_and(|facts| facts.raises);
        let means = CriticalMeans::of(self.priority, self.can(), raises, self.confines);
        CriticalPriority { means: means.name().to_owned(), sentence: means.to_string() }
    }

    /// Returns the limits that are not enforced on this machine.
    ///
    /// Where jobs run as their users, shims have the rights of root.
    pub fn unenforced(&self, runs_as_users: bool) -> Vec<Unenforced> {
        use miserly_launch::Unenforced::{Gpus, OtherPrograms, OtherRights, ShimStopped};
        let is_done = |what: &miserly_launch::Unenforced| match what {
            Gpus => self.open_gpus.is_none(),
            OtherPrograms => self.confines,
            OtherRights | ShimStopped => runs_as_users,
            _ => false,
        };
        let shown = |what: miserly_launch::Unenforced| {
            let why = self.open_gpus.as_ref().filter(|_| what == Gpus);
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            Unenforced { what: what.name().to_owned(), sentence: what.to_string() + &why }
        };
        let all = miserly_launch::unenforced(self.can()).into_iter();
        let mut all: Vec<_> = all.filter(|what| !is_done(what)).map(shown).collect();
        let unconfined = if self.confines { Confinement.unconfined() } else { vec![] };
        if !unconfined.is_empty() {
            all.push(Unenforced {
                what: OtherPrograms.name().to_owned(),
                sentence: format!(
                    "programs in these groups, which systemd does not manage, may run on a job's cpus: {}",
                    unconfined.join(", ")
                ),
            });
        }
        if let Some(why) = self.facts.as_ref().and_then(|facts| facts.no_partitions.as_ref()) {
            let sentence = format!("opportunistic jobs run on idle cpus of jobs of strict queues: {why}");
            all.push(Unenforced { what: "strict-queues".to_owned(), sentence });
        }
        all
    }
}

/// Returns why jobs see the GPUs of other jobs, if they do.
fn open_gpus(configuration: &Configuration, facts: Option<&GroupFacts>) -> Option<String> {
    if configuration.pool.most().get(Kind::Gpus) == 0 || facts.is_some_and(|facts| facts.hides_gpus) {
        return None;
    }
    let known = configuration.gpu_devices().is_some();
    Some(match facts.and_then(|facts| facts.no_hiding.clone()) {
        Some(why) => why,
        None if !known => {
            "their device nodes are not known; list them as [[gpu]] in the configuration".to_owned()
        }
        None => "jobs have no control groups (cgroup in the configuration)".to_owned(),
    })
}
