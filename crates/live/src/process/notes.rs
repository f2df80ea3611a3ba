//! The restrictions of the launcher, for `status`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use miserly_engine::Attempt;

use miserly_executor::NoProgram;
use miserly_launch::ProgramKind;
use tokio::sync::watch;

const LARGE_SHIMS: &str = "the shim of each job is the program miserly, which takes more memory; put miserly-shim of the same build \
     beside it (`cargo build --release --features full` makes both) and start the daemon again";

const UNCONFINED: &str = "other programs may run on the processors of jobs";

/// The restrictions under which the launcher works at present.
#[derive(Clone, Debug, Default)]
pub struct LauncherNotes(Arc<Notes>);

#[derive(Debug, Default)]
struct Notes {
    /// The launches that wait for descriptors.
    waiting: AtomicUsize,
    /// The reason why the shims are not the program `miserly-shim`.
    no_shim_program: OnceLock<String>,
    /// The reason why other programs are not kept off the processors of jobs, although they should be.
    confinement: Mutex<Option<String>>,
    /// The groups with programs that systemd does not manage, and that were not there at the start.
    unmanaged: Mutex<Vec<String>>,
    /// The opportunistic jobs that are parked because memory is short.
    parked: Mutex<Arc<BTreeSet<i64>>>,
    /// Changes with the set of parked jobs.
    parking: watch::Sender<()>,
    /// The programs of queues that failed, by kind.
    program_failures: [AtomicU64; ProgramKind::ALL.len()],
}

impl LauncherNotes {
    /// Sets the number of launches that wait for descriptors, and logs the begin and the end of a
    /// shortage.
    pub(super) fn set_waiting(&self, waiting: usize) {
        match (self.0.waiting.swap(waiting, Ordering::Relaxed), waiting) {
            (0, 1..) => tracing::warn!(
                "the launcher is short of descriptors; launches wait. Raise the limit of open files (LimitNOFILE=)"
            ),
            (1.., 0) => tracing::info!("the launcher has descriptors again"),
            _ => {}
        }
    }

    /// Sets the reason why the shims are not the program `miserly-shim`, and logs it.
    pub(crate) fn set_no_shim_program(&self, reason: &NoProgram) {
        tracing::warn!("{LARGE_SHIMS}: {reason}");
        // It is set once, at the start.
        let _ = self.0.no_shim_program.set(reason.to_string());
    }

    /// Sets the reason why other programs are not kept off the processors of jobs, and logs changes.
    pub(super) fn set_confinement(&self, failure: Option<String>) {
        let mut present = self.0.confinement.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*present, &failure) {
            (before, Some(now)) if before.as_ref() != Some(now) => tracing::warn!("{UNCONFINED}: {now}"),
            (Some(_), None) => tracing::info!("other programs are kept off the processors of jobs again"),
            _ => {}
        }
        *present = failure;
    }

    /// Sets the groups of programs that systemd does not manage and that came after the start, and logs changes.
    pub(super) fn set_unmanaged(&self, groups: Vec<String>) {
        let mut present = self.0.unmanaged.lock().unwrap_or_else(PoisonError::into_inner);
        if *present != groups && !groups.is_empty() {
            tracing::warn!("{UNCONFINED}: {}", unmanaged(&groups));
        }
        *present = groups;
    }

    /// Sets the attempts that are parked because memory is short.
    pub(crate) fn set_parked(&self, attempts: &BTreeSet<Attempt>) {
        let jobs: BTreeSet<i64> = attempts.iter().map(|attempt| attempt.job).collect();
        if **self.parked() != jobs {
            *self.parked() = Arc::new(jobs);
            self.0.parking.send_replace(());
        }
    }

    /// Returns the jobs that are parked because memory is short.
    pub(crate) fn parked_jobs(&self) -> Arc<BTreeSet<i64>> {
        Arc::clone(&self.parked())
    }

    /// Returns a receiver that changes after each change of the parked jobs.
    pub(crate) fn parking(&self) -> watch::Receiver<()> {
        self.0.parking.subscribe()
    }

    /// Counts a failed program of a queue.
    pub(super) fn count_failure(&self, kind: ProgramKind) {
        self.0.program_failures[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the numbers of programs of queues that failed, as [`ProgramKind::ALL`].
    pub(crate) fn program_failures(&self) -> [u64; ProgramKind::ALL.len()] {
        self.0.program_failures.each_ref().map(|counter| counter.load(Ordering::Relaxed))
    }

    fn parked(&self) -> MutexGuard<'_, Arc<BTreeSet<i64>>> {
        // A set is whole at any time.
        self.0.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns one sentence for each restriction.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let waiting = self.0.waiting.load(Ordering::Relaxed);
        let launches =
            if waiting == 1 { "1 launch waits".to_owned() } else { format!("{waiting} launches wait") };
        let short = (waiting > 0).then(|| format!("short of descriptors; {launches}"));
        let large = self.0.no_shim_program.get();
        let large = large.map(|reason| format!("{LARGE_SHIMS}: {reason}"));
        let parked = match self.parked().len() {
            0 => None,
            1 => Some("memory is short; 1 opportunistic job is parked".to_owned()),
            jobs => Some(format!("memory is short; {jobs} opportunistic jobs are parked")),
        };
        let present = self.0.confinement.lock().unwrap_or_else(PoisonError::into_inner);
        let unconfined = present.as_ref().map(|why| format!("{UNCONFINED}: {why}"));
        let groups = self.0.unmanaged.lock().unwrap_or_else(PoisonError::into_inner);
        let unmanaged = (!groups.is_empty()).then(|| format!("{UNCONFINED}: {}", unmanaged(&groups)));
        short.into_iter().chain(large).chain(unconfined).chain(unmanaged).chain(parked).collect()
    }
}

fn unmanaged(groups: &[String]) -> String {
    format!("systemd does not manage the groups {}, which came after the daemon's start", groups.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_has_a_sentence_as_long_as_launches_wait() {
        let notes = LauncherNotes::default();
        assert!(notes.sentences().is_empty());
        notes.set_waiting(1);
        assert_eq!(notes.sentences(), ["short of descriptors; 1 launch waits"]);
        notes.set_waiting(3);
        assert_eq!(notes.sentences(), ["short of descriptors; 3 launches wait"]);
        notes.set_waiting(0);
        assert!(notes.sentences().is_empty());
    }

    #[test]
    fn parked_jobs_are_counted_and_known() {
        let notes = LauncherNotes::default();
        notes.set_parked(&[3, 4].map(|job| Attempt { job, nth: 1 }).into());
        assert_eq!(notes.sentences(), ["memory is short; 2 opportunistic jobs are parked"]);
        assert_eq!(*notes.parked_jobs(), [3, 4].into());
        notes.set_parked(&BTreeSet::new());
        assert!(notes.sentences().is_empty() && notes.parked_jobs().is_empty());
    }

    #[test]
    fn a_change_of_the_parked_jobs_is_announced() {
        let notes = LauncherNotes::default();
        let parking = notes.parking();
        notes.set_parked(&BTreeSet::new());
        assert!(!parking.has_changed().unwrap());
        notes.set_parked(&[Attempt { job: 3, nth: 1 }].into());
        assert!(parking.has_changed().unwrap());
    }
}
