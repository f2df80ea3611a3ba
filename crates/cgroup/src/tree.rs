//! The group in which a daemon creates the groups of its jobs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::setting::EXCLUSIVE;
use crate::{CgroupError, Group, JobGroup, Limits, Processors, Setting, parse_cpus};

/// The controllers that jobs use.
const CONTROLLERS: [&str; 5] = ["cpu", "cpuset", "io", "memory", "pids"];

/// The highest weight of a group (`cpu.weight`).
const RAISED: u32 = 10_000;
/// The weight of a group at its creation.
const DEFAULT: u32 = 100;

const SHIMS: &str = "shims";
const JOBS: &str = "jobs";

/// The group below which a daemon creates the groups of its jobs.
///
/// It has no processes of its own, so that it may give controllers to its children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    root: Group,
    jobs: Group,
    shims: Group,
}

impl Tree {
    /// Takes a group as a tree, creates it if its parent exists, and gives its controllers to its children.
    ///
    /// # Errors
    /// [`CgroupError::NoGroup`] if the folder is not one of cgroup v2; [`CgroupError::Io`] if a right is missing, or the
    /// group has processes.
    pub fn open(path: &Path) -> Result<Tree, CgroupError> {
        let root = match (Group::open(path), path.parent(), path.file_name().and_then(|name| name.to_str())) {
            (Err(error), Some(parent), Some(name)) if error.is_missing() => {
                let parent = Group::open(parent)?;
                // The root of the hierarchy may not have given these yet. Elsewhere that is the right of another.
                let _ = parent.enable(&CONTROLLERS);
                parent.create(name)?
            }
            (found, _, _) => found?,
        };
        let shims = root.create(SHIMS)?;
        Tree::prepare(root, shims)
    }

    /// Takes a group that exists as a tree, and a group elsewhere for its shims.
    ///
    /// # Errors
    /// As [`open`](Tree::open).
    pub fn open_with_shims(path: &Path, shims: &Path) -> Result<Tree, CgroupError> {
        Tree::prepare(Group::open(path)?, Group::open(shims)?)
    }

    fn prepare(root: Group, shims: Group) -> Result<Tree, CgroupError> {
        root.enable(&CONTROLLERS)?;
        let jobs = root.create(JOBS)?;
        jobs.enable(&CONTROLLERS)?;
        Ok(Tree { root, jobs, shims })
    }

    /// Returns a tree that was opened before, with its group for shims. Does not access it.
    pub fn opened(path: &Path, shims: Option<&Path>) -> Tree {
        let root = Group::at(path);
        let shims = shims.map_or_else(|| root.child(SHIMS), Group::at);
        Tree { jobs: root.child(JOBS), shims, root }
    }

    /// Returns the group of the tree.
    pub fn group(&self) -> &Group {
        &self.root
    }

    /// Returns the group of all shims.
    pub fn shims(&self) -> Group {
        self.shims.clone()
    }

    /// Returns whether the groups of jobs exist.
    pub fn exists(&self) -> bool {
        self.jobs.path().exists()
    }

    /// Keeps this much memory for the jobs of the tree: `memory.min` of the tree. Others can use the part that its jobs do
    /// not use.
    ///
    /// # Errors
    /// [`CgroupError::Differs`] names a group above the tree that keeps less: the tree keeps no more than that.
    pub fn protect_memory(&self, bytes: u64) -> Result<(), CgroupError> {
        for group in [&self.root, &self.jobs] {
            // Whoever keeps enough for the tree already, such as systemd for its scope, is the only writer.
            if !keeps(group, bytes)? {
                Setting::MemoryMin(bytes).apply(group)?;
            }
        }
        let mut above = self.root.parent();
        while let Some(group) = above.filter(Group::has_memory) {
            if !keeps(&group, bytes)? {
                let (path, found) = (group.path().join("memory.min"), group.read("memory.min")?);
                return Err(CgroupError::Differs { path, written: bytes.to_string(), found });
            }
            above = group.parent();
        }
        Ok(())
    }

    /// Permits jobs to have these processors for themselves ([`Processors::Exclusive`]).
    ///
    /// The kernel wants the processors in `cpuset.cpus.exclusive` of each group from the top of the hierarchy down, also of
    /// groups that belong to a service manager. Nothing is taken from other groups before a job has a partition.
    ///
    /// # Errors
    /// [`CgroupError::Io`], [`CgroupError::Differs`]: the kernel makes no partitions here.
    pub fn reserve_cpus(&self, cpus: &[u32]) -> Result<(), CgroupError> {
        let mut groups = vec![self.jobs.clone()];
        while let Some(above) = groups.last().and_then(Group::parent).filter(Group::has_memory) {
            groups.push(above);
        }
        for group in groups.iter().rev() {
            // Partitions of running jobs stay.
            let present = parse_cpus(&group.read(EXCLUSIVE)?).unwrap_or_default();
            let all: BTreeSet<u32> = present.iter().chain(cpus).copied().collect();
            if all.len() > present.len() {
                Setting::ExclusiveCpus(all.into_iter().collect()).apply(group)?;
            }
        }
        Ok(())
    }

    /// Tries whether a job can have one of these processors for itself. Where jobs have all of them, nothing is tried.
    ///
    /// # Errors
    /// As [`reserve_cpus`](Tree::reserve_cpus).
    pub fn try_partition(&self, cpus: &[u32]) -> Result<(), CgroupError> {
        let mut used = BTreeSet::new();
        for (.., job) in self.jobs()? {
            used.extend(parse_cpus(&job.group().read("cpuset.cpus")?).unwrap_or_default());
        }
        let Some(cpu) = cpus.iter().copied().find(|cpu| !used.contains(cpu)) else { return Ok(()) };
        let job = self.job(0, std::process::id());
        job.create()?;
        let limits = Limits { cpus: Some(Processors::Exclusive(vec![cpu])), ..Limits::default() };
        let failure = job.limit(&limits).into_iter().next();
        job.end_partition()?;
        job.remove()?;
        failure.map_or(Ok(()), Err)
    }

    /// Gives a job that is not idle the highest weight beside other programs, also in the groups of the tree above it.
    ///
    /// # Errors
    /// [`CgroupError::Io`], [`CgroupError::Differs`]: the kernel refuses a weight.
    pub fn raise(&self, job: &JobGroup) -> Result<(), CgroupError> {
        Setting::Weight(RAISED).apply(job.group())?;
        self.settle_weight()
    }

    /// Takes the weight away that [`raise`](Tree::raise) gave. The group of the job may be gone.
    ///
    /// # Errors
    /// As [`raise`](Tree::raise).
    pub fn lower(&self, job: &JobGroup) -> Result<(), CgroupError> {
        match Setting::Weight(DEFAULT).apply(job.group()) {
            Err(error) if !error.is_missing() => Err(error),
            _ => self.settle_weight(),
        }
    }

    /// Raises the weight of the tree if a job is raised, and lowers it else.
    ///
    /// Several processes may do so at the same time: each looks again after it has written, so the last look is followed by no
    /// write.
    ///
    /// # Errors
    /// As [`raise`](Tree::raise).
    pub fn settle_weight(&self) -> Result<(), CgroupError> {
        loop {
            let raised = self.has_raised_job()?;
            for group in [&self.root, &self.jobs] {
                match Setting::Weight(if raised { RAISED } else { DEFAULT }).apply(group) {
                    // Beside the root of the hierarchy there is no other group.
                    Err(error) if error.is_missing() => {}
                    other => other?,
                }
            }
            if self.has_raised_job()? == raised {
                return Ok(());
            }
        }
    }

    fn has_raised_job(&self) -> Result<bool, CgroupError> {
        let is_raised = |job: &JobGroup| job.weight().is_ok_and(|weight| weight == RAISED);
        Ok(self.jobs()?.iter().any(|(.., job)| is_raised(job)))
    }

    /// Returns the group of an attempt, whether or not it exists.
    pub fn job(&self, job: u64, attempt: u32) -> JobGroup {
        JobGroup::at(self.jobs.child(&format!("{job}.{attempt}")))
    }

    /// Returns the groups of attempts that exist: job, attempt, group.
    ///
    /// # Errors
    /// [`CgroupError::Io`].
    pub fn jobs(&self) -> Result<Vec<(u64, u32, JobGroup)>, CgroupError> {
        let named = |group: Group| {
            let (job, attempt) = group.path().file_name()?.to_str()?.split_once('.')?;
            Some((job.parse().ok()?, attempt.parse().ok()?, JobGroup::at(group)))
        };
        Ok(self.jobs.children()?.into_iter().filter_map(named).collect())
    }
}

/// Returns whether a group keeps at least this much memory.
fn keeps(group: &Group, bytes: u64) -> Result<bool, CgroupError> {
    const PAGE: u64 = 4096;
    let found = group.read("memory.min")?;
    Ok(found == "max" || found.parse::<u64>().is_ok_and(|found| found >= bytes / PAGE * PAGE))
}

/// Returns the folder of a group by its path in the hierarchy, if cgroup v2 is mounted.
pub(crate) fn folder_of(group: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|mount| path_below(mount, group))
}

/// Returns the group of a process, if it exists and cgroup v2 is mounted.
pub fn group_of(process: u32) -> Option<Group> {
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    Group::open(&folder_of(own)?).ok()
}

/// Returns the path of a group below a mount of cgroup v2.
fn path_below(mount: &str, group: &str) -> Option<PathBuf> {
    let (place, kind) = mount.split_once(" - ")?;
    let mut fields = place.split(' ').skip(3);
    let (root, at) = (fields.next()?, fields.next()?);
    let below = group.strip_prefix(if root == "/" { "" } else { root })?.trim_start_matches('/');
    kind.starts_with("cgroup2 ").then(|| Path::new(at).join(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_below_the_mount() {
        let whole = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw";
        let part = "30 23 0:26 /a/b /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw";
        let other = "31 23 0:27 / /proc rw - proc proc rw";
        let path = |mount, group| path_below(mount, group).map(|path| path.display().to_string());
        assert_eq!(path(whole, "/user.slice/x").as_deref(), Some("/sys/fs/cgroup/user.slice/x"));
        assert_eq!(path(whole, "/").as_deref(), Some("/sys/fs/cgroup/"));
        assert_eq!(path(part, "/a/b/c").as_deref(), Some("/sys/fs/cgroup/c"));
        assert_eq!(path(part, "/else"), None);
        assert_eq!(path(other, "/"), None);
    }
}
