//! What is known of a daemon.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use miserly_api::client::{Client, ClientError};
use miserly_api::model::{DaemonEvent, Filter, JobView, Pools, Status};
use miserly_view::{DaemonFacts, Facts, Job, State, job_of};

/// The most ended jobs that are read at the start.
const ENDED_MOST: u32 = 10_000;

/// The jobs, the queues and the pools of a daemon.
pub(crate) struct Mirror {
    status: Status,
    pools: Pools,
    jobs: BTreeMap<i64, Job>,
    machine: String,
}

impl Mirror {
    /// Reads the state of a daemon.
    pub(crate) fn read(client: &Client) -> Result<Mirror, ClientError> {
        let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let (status, pools) = (client.status()?, client.pools()?);
        let mut mirror = Mirror { status, pools, jobs: BTreeMap::new(), machine };
        let ended = client.jobs(&Filter { all: true, limit: Some(ENDED_MOST), ..Filter::default() })?;
        let unfinished = client.all_jobs(&Filter::default())?;
        ended.iter().chain(&unfinished).for_each(|job| mirror.set(job));
        Ok(mirror)
    }

    /// Takes an event. A snapshot without a job that was unfinished means that the job has ended.
    pub(crate) fn take(&mut self, client: &Client, event: DaemonEvent) -> Result<(), ClientError> {
        match event {
            DaemonEvent::Snapshot(snapshot) => {
                let unfinished: BTreeSet<i64> = snapshot.jobs.iter().map(|job| job.number).collect();
                let ended = |job: &&Job| job.state != State::Ended && !unfinished.contains(&job.number);
                let ended: Vec<i64> = self.jobs.values().filter(ended).map(|job| job.number).collect();
                snapshot.jobs.iter().for_each(|job| self.set(job));
                for job in ended {
                    self.set(&client.job(job)?);
                }
            }
            DaemonEvent::Change(change) => change.jobs.iter().for_each(|job| self.set(job)),
            DaemonEvent::Forecasts(forecasts) => {
                for made in forecasts.forecasts {
                    if let Some(job) = self.jobs.get_mut(&made.job) {
                        let likely = [made.forecast.median, made.forecast.by_80, made.forecast.by_95];
                        job.likely = Some(likely.map(Timestamp::as_millisecond));
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads the queues and what is free in their pools.
    pub(crate) fn refresh(&mut self, client: &Client) -> Result<(), ClientError> {
        self.status = client.status()?;
        self.pools = client.pools()?;
        Ok(())
    }

    fn set(&mut self, job: &JobView) {
        self.jobs.extend(job_of(job, &self.status.queues).map(|known| (job.number, known)));
    }

    /// Returns the facts at present.
    pub(crate) fn facts(&self) -> Facts {
        Facts::from(DaemonFacts {
            status: &self.status,
            pools: &self.pools,
            jobs: self.jobs.values().cloned().collect(),
            now: Timestamp::now(),
            zone: TimeZone::system(),
            uid: rustix::process::geteuid().as_raw(),
            machine: &self.machine,
        })
    }
}
