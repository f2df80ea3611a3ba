//! The control groups of jobs, if the configuration names a place for them.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use miserly_cgroup::systemd::{Confinement, Scopes, SystemdError};
use miserly_cgroup::{Capability, CgroupError, JobGroup, Tree};
use miserly_launch::CgroupSpec;
use serde::{Deserialize, Serialize};

use crate::AttemptId;
use crate::failure::{LaunchFailure, LaunchFailureKind};
use crate::gpus::{self, DeviceHider, GpuDevice};

/// The most processes and threads of a job, for each of its processors.
const PIDS: u64 = 512;

/// The settings of the control groups of jobs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GroupSettings {
    /// The place.
    pub place: GroupPlace,
    /// The memory that is kept for jobs, in bytes.
    pub memory: u64,
    /// The processors of jobs, by number.
    pub cpus: Vec<u32>,
    /// The processor with which the kernel is tried.
    pub probed: u32,
    /// Whether there are queues whose jobs have partitions.
    pub has_strict_queues: bool,
    /// Whether jobs in their windows have a priority over other programs.
    pub has_priority: bool,
    /// The GPUs of jobs, by index; empty if their device nodes are not known.
    pub gpus: Vec<GpuDevice>,
}

/// The place of the control groups of jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupPlace {
    /// A folder of cgroup v2.
    Folder(PathBuf),
    /// Scopes of systemd.
    Systemd,
}

/// What the kernel does for the control groups of jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupFacts {
    /// The folder of the tree.
    pub tree: PathBuf,
    /// The capabilities of the kernel there.
    pub can: Vec<Capability>,
    /// Whether jobs of strict queues have partitions.
    pub has_partitions: bool,
    /// Whether the weight of the tree can be raised for jobs in their windows.
    pub raises: bool,
    /// Why jobs of strict queues cannot have partitions; `None` if they can, or if there is no such queue.
    pub no_partitions: Option<String>,
    /// Whether a job sees the device nodes of its own GPUs only.
    pub hides_gpus: bool,
    /// Why it sees those of all GPUs; `None` if it does not, or if no device nodes are known.
    pub no_hiding: Option<String>,
}

/// The place of the control groups of jobs, and the capabilities of the kernel there.
#[derive(Clone, Debug)]
pub struct JobGroups(Option<Arc<Place>>);

#[derive(Debug)]
struct Place {
    tree: Tree,
    in_systemd: bool,
    facts: GroupFacts,
    /// What hides the GPUs of other jobs, if the kernel can.
    hider: Option<DeviceHider>,
    gpus: Vec<GpuDevice>,
}

impl JobGroups {
    /// Returns no place: jobs have no control groups.
    pub const fn none() -> JobGroups {
        JobGroups(None)
    }

    /// Opens a place for the groups of jobs, and tries the capabilities of the kernel there. Also returns a sentence for each thing that
    /// is not possible.
    ///
    /// Without the right to create groups in the place, jobs have none. `hider` makes what hides the GPUs of other jobs.
    pub fn open(
        settings: &GroupSettings,
        hider: impl FnOnce(&Tree) -> io::Result<DeviceHider>,
    ) -> (JobGroups, Vec<String>) {
        Place::open(settings, hider).map_or_else(
            |error| (JobGroups::none(), vec![format!("jobs have no control groups: {error}")]),
            |(place, warnings)| (JobGroups(Some(Arc::new(place))), warnings),
        )
    }

    /// Returns the capabilities of the kernel for the groups of jobs; `None` if they have none.
    pub fn facts(&self) -> Option<&GroupFacts> {
        self.0.as_ref().map(|place| &place.facts)
    }

    /// Returns the control group for a job with this memory in kilobytes, `None` for no limit, and this number of processors.
    /// `strict` is whether its queue is.
    pub(crate) fn spec(&self, memory: Option<u64>, cpus: u64, strict: bool) -> Option<CgroupSpec> {
        let place = self.0.as_ref()?;
        Some(CgroupSpec {
            tree: place.facts.tree.clone(),
            shims: Some(place.tree.shims().path().to_owned()),
            can: place.facts.can.clone(),
            memory: memory.map(|kilobytes| kilobytes.saturating_mul(1024)),
            pids: Some(cpus.saturating_mul(PIDS)),
            early_on_all: place.in_systemd,
            raises: place.facts.raises,
            strict: strict && place.facts.has_partitions,
            hides_devices: place.hider.is_some(),
        })
    }

    /// Hides the GPUs of other jobs from an attempt that has these, by index. Creates its group.
    ///
    /// # Errors
    /// There are no such GPUs, or the kernel refuses it.
    pub(crate) fn hide_gpus(&self, attempt: AttemptId, own: &[u32]) -> Result<(), LaunchFailure> {
        let Some(Place { hider: Some(hider), gpus, .. }) = self.0.as_deref() else { return Ok(()) };
        gpus::check(gpus, own).map_err(|wrong| {
            LaunchFailure::new(LaunchFailureKind::Final, &format!("{wrong}; nothing was launched"))
        })?;
        hider.hide(attempt, gpus::rules(gpus, own)).map_err(|error| {
            let is_gone = matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe);
            if is_gone && matches!(hider, DeviceHider::Process(_)) {
                // This process may not attach programs itself, nor start one that may. The next executor has one; jobs run on.
                crate::server::log(
                    &"the process that hides devices has ended; the executor ends, and another one begins",
                );
                std::process::exit(1);
            }
            let message = format!("the GPUs of other jobs cannot be hidden from it: {error}");
            LaunchFailure::new(LaunchFailureKind::Temporary, &message)
        })
    }

    /// Returns the value of the variables by which libraries choose GPUs, for a job with these, by index.
    pub(crate) fn visible_gpus(&self, own: &[u32]) -> String {
        match self.0.as_deref() {
            Some(Place { hider: Some(_), gpus, .. }) => gpus::visible(gpus, own),
            _ => gpus::indexes(own),
        }
    }

    /// Starts the scopes again if an administrator has stopped them.
    pub(crate) fn restore(&self) -> Result<(), SystemdError> {
        match &self.0 {
            Some(place) if place.in_systemd && !place.tree.exists() => Scopes::open().map(drop),
            _ => Ok(()),
        }
    }

    /// Keeps this memory for jobs, in bytes, if the kernel can keep any.
    ///
    /// # Errors
    /// A group above the tree keeps less.
    pub fn keep_memory(&self, bytes: u64) -> io::Result<()> {
        let place = self.0.as_ref().filter(|place| place.facts.can.contains(&Capability::MemoryMin));
        let kept = place.map(|place| keep_memory(&place.tree, bytes, place.in_systemd));
        kept.unwrap_or(Ok(())).map_err(io::Error::other)
    }

    /// Keeps other programs off these processors, and off no others.
    ///
    /// # Errors
    /// systemd refuses it or does not answer, or does not manage the groups of jobs.
    pub fn confine(&self, busy: &[u32]) -> io::Result<()> {
        match &self.0 {
            Some(place) if place.in_systemd => Confinement.set(busy).map_err(io::Error::other),
            _ => Err(io::Error::other("systemd does not manage the control groups of jobs")),
        }
    }

    /// Gives the processors of an attempt that has ended back to other programs. Its group is removed later.
    pub(crate) fn end_partition(&self, attempt: AttemptId) -> io::Result<()> {
        match self.job(attempt).map(|job| job.end_partition()) {
            Some(Err(error)) if !error.is_missing() => {
                Err(io::Error::other(format!("its partition stays: {error}")))
            }
            _ => Ok(()),
        }
    }

    /// Ends the partitions of all attempts that have ended without a daemon.
    pub(crate) fn end_partitions(&self) -> io::Result<()> {
        for attempt in self.attempts()? {
            let job = self.job(attempt);
            if job.is_some_and(|job| job.events().is_ok_and(|events| !events.populated)) {
                self.end_partition(attempt)?;
            }
        }
        Ok(())
    }

    fn job(&self, attempt: AttemptId) -> Option<JobGroup> {
        let place = self.0.as_ref()?;
        Some(place.tree.job(attempt.job.unsigned_abs(), attempt.nth))
    }

    /// Removes the group of an attempt that is over.
    pub(crate) fn remove(&self, attempt: AttemptId) -> io::Result<()> {
        let Some(job) = self.job(attempt) else { return Ok(()) };
        job.remove().map_err(|error| io::Error::other(format!("its control group stays: {error}")))?;
        // Its shim may have been killed before it did so.
        self.settle_weight();
        Ok(())
    }

    /// Lowers the weight of the tree unless a job in its window needs it.
    pub(crate) fn settle_weight(&self) {
        if let Some(place) = self.0.as_ref().filter(|place| place.facts.raises) {
            // The next end of a job tries it again.
            let _ = place.tree.settle_weight();
        }
    }

    /// Returns the attempts that have a group.
    pub(crate) fn attempts(&self) -> io::Result<Vec<AttemptId>> {
        let Some(place) = &self.0 else { return Ok(vec![]) };
        let groups = place.tree.jobs().map_err(|error| io::Error::other(error.to_string()))?;
        let attempt = |(job, nth, _)| Some(AttemptId { job: i64::try_from(job).ok()?, nth });
        Ok(groups.into_iter().filter_map(attempt).collect())
    }
}

impl Place {
    fn open(
        settings: &GroupSettings,
        hider: impl FnOnce(&Tree) -> io::Result<DeviceHider>,
    ) -> Result<(Place, Vec<String>), SystemdError> {
        let GroupSettings { place, memory, cpus, probed, has_strict_queues, has_priority, gpus } = settings;
        let tree = match place {
            GroupPlace::Folder(path) => Tree::open(path)?,
            GroupPlace::Systemd => Scopes::open()?,
        };
        let in_systemd = *place == GroupPlace::Systemd;
        let folder = tree.group().path().to_owned();
        let capabilities = tree.probe(*probed)?;
        let missing = capabilities.missing().iter();
        let missing = missing.map(|(missing, answer)| {
            format!("the kernel does not {missing} in {}: {answer}", folder.display())
        });
        let mut warnings: Vec<String> = missing.collect();
        let mut can = capabilities.present();
        if can.contains(&Capability::MemoryMin)
            && let Err(error) = keep_memory(&tree, *memory, in_systemd)
        {
            warnings.push(format!("memory is not guaranteed to jobs: {error}"));
            can.retain(|one| *one != Capability::MemoryMin);
        }
        let partitions =
            has_strict_queues.then(|| tree.reserve_cpus(cpus).and_then(|()| tree.try_partition(cpus)));
        let has_partitions = matches!(partitions, Some(Ok(())));
        let no_partitions = partitions.and_then(Result::err).map(|error| error.to_string());
        if let Some(why) = &no_partitions {
            warnings.push(format!("jobs of strict queues share their idle processors: {why}"));
        }
        // The weight of a scope is systemd's.
        let may_raise = *has_priority && !in_systemd && can.contains(&Capability::Idle);
        let raises = may_raise && tree.settle_weight().is_ok();
        let hider = (!gpus.is_empty()).then(|| {
            tree.try_devices().map_err(|error| error.to_string())?;
            hider(&tree).map_err(|error| error.to_string())
        });
        let (hider, no_hiding) = match hider {
            Some(Ok(hider)) => (Some(hider), None),
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        if let Some(why) = &no_hiding {
            warnings.push(format!("a job can use the GPUs of other jobs: {why}"));
        }
        let hides_gpus = hider.is_some();
        let facts =
            GroupFacts { tree: folder, can, has_partitions, raises, no_partitions, hides_gpus, no_hiding };
        Ok((Place { tree, in_systemd, facts, hider, gpus: gpus.clone() }, warnings))
    }
}

/// Keeps the memory of jobs in all groups above them.
fn keep_memory(tree: &Tree, bytes: u64, in_systemd: bool) -> Result<(), SystemdError> {
    if in_systemd {
        Scopes::keep_memory(bytes)?;
    }
    tree.protect_memory(bytes).map_err(CgroupError::into)
}
