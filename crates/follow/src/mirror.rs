//! The known state of a daemon.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use miserly_api::client::{Client, ClientError};
use miserly_api::model::{
    DaemonEvent, Filter, ForecastsEvent, JobView, JobsEvent, Pools, QueueStatus, Status, listing,
};
use miserly_view::{DaemonFacts, Facts, Job, State, job_of};

/// The most ended jobs that are remembered. Those with the lowest numbers are forgotten first.
const ENDED_MOST: usize = 20_000;

/// The jobs, the queues and the pools of a daemon.
pub(crate) struct Mirror {
    status: Status,
    pools: Pools,
    jobs: BTreeMap<i64, Known>,
    machine: String,
}

/// A job, and the name of its queue.
struct Known {
    queue: String,
    job: Arc<Job>,
}

impl Mirror {
    /// Reads the state of a daemon: the unfinished jobs, and the newest of the ended ones.
    pub(crate) fn read(client: &Client) -> Result<Mirror, ClientError> {
        let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let (status, pools) = (client.status()?, client.pools()?);
        let mut mirror = Mirror { status, pools, jobs: BTreeMap::new(), machine };
        let ended = client.jobs(&Filter { all: true, limit: Some(listing::MOST), ..Filter::default() })?;
        let all = client.all_jobs(&Filter { all: true, ..Filter::default() })?;
        ended.iter().chain(&all).for_each(|job| mirror.set(job));
        Ok(mirror)
    }

    /// Takes an event.
    pub(crate) fn take(&mut self, client: &Client, event: DaemonEvent) -> Result<(), ClientError> {
        match event {
            DaemonEvent::Snapshot(snapshot) => return self.take_snapshot(client, &snapshot),
            DaemonEvent::Change(change) => {
                change.jobs.iter().for_each(|job| self.set(job));
                change.gone.into_iter().for_each(|number| self.forget_unless_ended(number));
            }
            DaemonEvent::Forecasts(forecasts) => self.set_forecasts(&forecasts),
        }
        Ok(())
    }

    /// Takes all unfinished jobs. Reads the jobs that ended since the last event.
    fn take_snapshot(&mut self, client: &Client, snapshot: &JobsEvent) -> Result<(), ClientError> {
        let unfinished: BTreeSet<i64> = snapshot.jobs.iter().map(|job| job.number).collect();
        let is_missing =
            |known: &&Known| known.job.state != State::Ended && !unfinished.contains(&known.job.number);
        let missing: Vec<i64> = self.jobs.values().filter(is_missing).map(|known| known.job.number).collect();
        let next = self.jobs.last_key_value().map_or(0, |(number, _)| number + 1);
        let mut after = Some(missing.first().copied().unwrap_or(next).min(next).saturating_sub(1));
        // Nothing is taken before all is read: after a failure the next snapshot finds the same jobs missing.
        let mut read = vec![];
        while let Some(from) = after {
            let page = Filter {
                all: true,
                after: Some(from).filter(|from| *from >= 0),
                limit: Some(listing::MOST),
                ..Filter::default()
            };
            let jobs = client.jobs(&page)?;
            after = jobs.last().map(|job| job.number).filter(|_| jobs.len() >= listing::MOST as usize);
            read.extend(jobs);
        }
        read.iter().chain(&snapshot.jobs).for_each(|job| self.set(job));
        for number in missing {
            self.forget_unless_ended(number);
        }
        Ok(())
    }

    /// Forgets a job that the daemon has no longer: its history was pruned.
    fn forget_unless_ended(&mut self, number: i64) {
        if self.jobs.get(&number).is_some_and(|known| known.job.state != State::Ended) {
            self.jobs.remove(&number);
        }
    }

    /// Forgets the oldest of too many ended jobs.
    fn bound(&mut self) {
        let ended = |known: &Known| known.job.state == State::Ended;
        let count = self.jobs.values().filter(|known| ended(known)).count();
        let mut left = count.saturating_sub(ENDED_MOST);
        self.jobs.retain(|_, known| {
            let forget = left > 0 && ended(known);
            left -= usize::from(forget);
            !forget
        });
    }

    /// Takes the forecasts of all jobs, which are by job number. The others have none.
    fn set_forecasts(&mut self, forecasts: &ForecastsEvent) {
        let made = |number: i64| {
            let place = forecasts.forecasts.binary_search_by_key(&number, |made| made.job).ok()?;
            let made = forecasts.forecasts[place].forecast;
            Some(made.bounds()?.map(Timestamp::as_millisecond))
        };
        for known in self.jobs.values_mut().filter(|known| known.job.state.is_before_start()) {
            let likely = made(known.job.number);
            if known.job.likely != likely {
                Arc::make_mut(&mut known.job).likely = likely;
            }
        }
    }

    /// Reads the queues and the free capacity of their pools.
    pub(crate) fn refresh(&mut self, client: &Client) -> Result<(), ClientError> {
        let status = client.status()?;
        let names =
            |status: &Status| status.queues.iter().map(|queue| queue.name.clone()).collect::<Vec<_>>();
        let same = names(&status) == names(&self.status);
        self.status = status;
        self.pools = client.pools()?;
        if !same {
            for known in self.jobs.values_mut() {
                Arc::make_mut(&mut known.job).pool = place(&self.status.queues, &known.queue);
            }
        }
        self.bound();
        Ok(())
    }

    fn set(&mut self, job: &JobView) {
        let pool = place(&self.status.queues, &job.queue);
        let known = Known { queue: job.queue.clone(), job: Arc::new(job_of(job, pool)) };
        self.jobs.insert(job.number, known);
    }

    /// Returns the facts at present.
    pub(crate) fn facts(&self) -> Facts {
        Facts::from(DaemonFacts {
            status: &self.status,
            pools: &self.pools,
            jobs: self.jobs.values().map(|known| Arc::clone(&known.job)).collect(),
            now: Timestamp::now(),
            zone: TimeZone::system(),
            uid: rustix::process::geteuid().as_raw(),
            machine: &self.machine,
        })
    }
}

/// Returns the place of a queue; the one after the last for a job in none of them.
fn place(queues: &[QueueStatus], name: &str) -> usize {
    queues.iter().position(|queue| queue.name == name).unwrap_or(queues.len())
}
