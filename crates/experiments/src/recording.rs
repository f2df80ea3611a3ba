//! The recording of a run for its charts.

use std::io;

use miserly_core::{PeSet, Request, System, Time};
use miserly_sim::{Allocation, Finished, MatrixWatch, MostSlots, Observer};

use crate::queue_record::QueueRecord;
use crate::run_result::{GanttRow, MatrixRows, Schedule, StayRow, secs};

/// The limit of places of jobs in a matrix. The record ends where there would be more.
pub(crate) const PLACES: usize = 10_000;

/// An observer that records the jobs of a run and the matrix of its policy, for charts of any window of time.
///
/// Memory grows with the log. Run with numbered processors.
#[derive(Debug)]
pub struct Recording {
    /// Jobs that neither run nor wait in this period are left out.
    period: [Time; 2],
    pub(crate) jobs: Vec<EndedJob>,
    matrix: MatrixWatch,
    most_slots: MostSlots,
}

/// A job that ended.
#[derive(Debug)]
pub(crate) struct EndedJob {
    /// Its position in the order of submission: the same under every policy.
    pub(crate) admission: u64,
    pub(crate) number: i64,
    pub(crate) user: Option<u32>,
    pub(crate) procs: u64,
    pub(crate) submit: Time,
    pub(crate) start: Time,
    pub(crate) end: Time,
    reason: &'static str,
    promised: Option<Time>,
    killed: bool,
    pes: Option<PeSet>,
    allocations: Vec<Allocation>,
}

impl Default for Recording {
    fn default() -> Recording {
        Recording::of_period([Time::ZERO, Time::MAX], usize::MAX)
    }
}

impl Recording {
    /// Returns a recording of a window, in the log's seconds.
    pub(crate) fn of_window(window: [i64; 2]) -> Recording {
        Recording::of_period(window.map(time), PLACES)
    }

    fn of_period(period: [Time; 2], places: usize) -> Recording {
        let matrix = MatrixWatch::new(period[0], period[1], places);
        Recording { period, jobs: Vec::new(), matrix, most_slots: MostSlots::default() }
    }

    /// Returns the recording of jobs that were recorded and not simulated: the reasons of their starts are not known.
    pub fn of_recorded(jobs: impl IntoIterator<Item = Finished>) -> Recording {
        let job = |job: Finished| EndedJob { reason: "", ..EndedJob::new(&job) };
        Recording { jobs: jobs.into_iter().map(job).collect(), ..Recording::default() }
    }

    fn add(&mut self, job: EndedJob) {
        let [from, to] = self.period;
        if job.waits_in(from, to) || job.runs_in(from, to) {
            self.jobs.push(job);
        }
    }

    /// Returns the jobs in a window of the period, in the log's seconds.
    pub(crate) fn schedule(&self, window: [i64; 2]) -> Schedule {
        let [from, to] = window.map(time);
        let mut queue = QueueRecord::default();
        for job in self.jobs.iter().filter(|job| job.waits_in(from, to)) {
            queue.add([job.submit.max(from), job.began()], job.procs);
        }
        let matrix = self.matrix.part(from, to, PLACES);
        Schedule {
            window,
            jobs: self.jobs.iter().filter(|job| job.runs_in(from, to)).map(EndedJob::row).collect(),
            queue: queue.rows(from),
            matrix: matrix.as_ref().map(MatrixRows::from_record),
        }
    }

    /// Returns the first instant with the most slots; `None` if no policy slices time.
    pub(crate) fn most_slots(&self) -> Option<Time> {
        self.most_slots.at()
    }
}

impl Observer for Recording {
    fn system(&mut self, now: Time, system: &System) {
        self.matrix.system(now, system);
        self.most_slots.system(now, system);
    }

    fn removed(&mut self, admission: u64, request: &Request, allocations: &[Allocation]) {
        let (Some(first), Some(last)) = (allocations.first(), allocations.last()) else { return };
        self.add(EndedJob {
            admission,
            number: request.number,
            user: request.user,
            procs: request.procs().into(),
            submit: request.submit,
            start: first.from,
            end: last.to,
            reason: "",
            promised: None,
            killed: true,
            pes: Some(last.pes.clone()),
            allocations: allocations.to_vec(),
        });
    }

    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        self.add(EndedJob::new(job));
        Ok(())
    }
}

impl EndedJob {
    fn new(job: &Finished) -> EndedJob {
        EndedJob {
            admission: job.admission,
            number: job.request.number,
            user: job.request.user,
            procs: job.request.procs().into(),
            submit: job.request.submit,
            start: job.start,
            end: job.end,
            reason: job.reason_word(),
            promised: job.promised,
            killed: job.killed,
            pes: job.pes.clone(),
            allocations: job.allocations.clone(),
        }
    }

    /// Returns when it was first on the machine. A job that was put back into the queue was there before its last start.
    fn began(&self) -> Time {
        self.allocations.first().map_or(self.start, |stay| stay.from)
    }

    fn waits_in(&self, from: Time, to: Time) -> bool {
        self.submit < to && self.began() > from.max(self.submit)
    }

    fn runs_in(&self, from: Time, to: Time) -> bool {
        self.began() < to && self.end > from
    }

    fn row(&self) -> GanttRow {
        let stay = |stay: &Allocation| StayRow {
            start: secs(stay.from),
            end: secs(stay.to),
            pes: stay.pes.ranges().to_vec(),
            worked: (stay.worked != (stay.from, stay.to)).then(|| [secs(stay.worked.0), secs(stay.worked.1)]),
        };
        GanttRow {
            job: self.number,
            user: self.user,
            submit: secs(self.submit),
            start: secs(self.start),
            end: secs(self.end),
            reason: self.reason.into(),
            promised: self.promised.map(secs),
            killed: self.killed,
            procs: self.procs,
            pes: self.pes.iter().flat_map(PeSet::ranges).copied().collect(),
            stays: self.allocations.iter().map(stay).collect(),
        }
    }
}

fn time(secs: i64) -> Time {
    Time::from_secs(secs).unwrap_or(Time::MAX)
}

#[cfg(test)]
mod tests {
    use miserly_run::{RunOptions, RunSetup};
    use miserly_workload::Trace;

    use super::*;

    /// The first job is cancelled for the second one, and is drawn up to then.
    #[test]
    fn a_job_that_was_taken_off_for_good_is_drawn() {
        let log = "; MaxProcs: 4\n1 0 0 500 4 -1 -1 4 500 -1 1 1 1 -1 1 -1 -1 -1\n2 100 0 60 4 -1 -1 4 60 -1 1 1 1 -1 2 -1 -1 -1\n";
        let setup = RunSetup::new(Trace::memory("log", log.into()), RunOptions::default()).unwrap();
        let policy = "slurm(preempt='1: by=2, mode=cancel')".parse().unwrap();
        let mut recording = Recording::default();
        let run = setup.outcome(&policy, true, &mut [&mut recording]).unwrap();
        assert_eq!(run.jobs.simulated, 1);
        let rows = recording.schedule([0, 1000]).jobs;
        let found: Vec<_> =
            rows.iter().map(|row| (row.job, row.start, row.killed, row.pes.clone())).collect();
        let all = vec![(0, 3)];
        assert_eq!(found[0], (1, 0.0, true, all.clone()));
        assert_eq!((found[1].0, found[1].2, &found[1].3), (2, false, &all));
        assert!(rows[0].end <= rows[1].start, "not at the same time");
    }
}
