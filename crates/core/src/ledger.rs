//! The one truth of who holds what.

use crate::violation::Rule;
use crate::{Broken, JobId, Machine, Placement, Request, Resources, SlotId, Span, Time};

/// When a running job will be gone, as far as anybody may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Its start plus its estimate.
    At(Time),
    /// Its estimate is over and it runs on. A plan holds its resources until the next tick, whenever now is.
    Overdue {
        /// When it should have ended.
        since: Time,
    },
}

/// Where a job stands; each state holds what only that state has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// In the queue.
    Waiting,
    /// On the machine.
    Running {
        /// When it started.
        start: Time,
        /// When it will be gone.
        expected: Expected,
        /// What it holds.
        placement: Placement,
        /// Its end at this very instant is certain, so others may count on its resources already.
        released: bool,
    },
}

/// A latest start that the user was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// As it was first told.
    pub told: Time,
    /// The best so far; later than `told` only if the promise was broken.
    pub best: Time,
    /// Why it could not be kept, if so.
    pub broken: Option<Broken>,
}

/// A job that is in the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What its user asked for.
    pub request: Request,
    /// Its rank by admission: the last tie-break, and the order of [`Ledger::waiting`].
    pub admitted: u64,
    /// Where it stands.
    pub state: State,
    /// What it was promised, if anything.
    pub promise: Option<Promise>,
    /// When the policy last said that it means to start it, if it did: a plan, which binds nobody.
    pub planned: Option<Time>,
}

/// Who holds what: an Ousterhout matrix over hosts, of one row as yet, and the state of every job in the system.
///
/// Everybody reads it; only the driver and a policy's [`Desk`](crate::Desk) change it, and every change is
/// checked first. Each change is O(shares of the job).
#[derive(Clone, Debug)]
pub struct Ledger {
    machine: Machine,
    /// What each host has free. One row: the slot is checked to be 0.
    free: Vec<Resources>,
    jobs: Vec<Option<Entry>>,
    admissions: u64,
    waiting: usize,
    running: usize,
    overdue_seen: bool,
}

impl Ledger {
    /// An empty ledger of this machine.
    pub fn new(machine: Machine) -> Ledger {
        let free = machine.hosts().iter().map(|host| host.capacity).collect();
        Ledger { machine, free, jobs: vec![], admissions: 0, waiting: 0, running: 0, overdue_seen: false }
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// What all hosts have free together.
    pub fn free(&self) -> Resources {
        match &self.free[..] {
            [only] => *only,
            hosts => hosts.iter().fold(Resources::NONE, |sum, host| sum.plus(host)),
        }
    }

    /// The job, if it is in the system.
    pub fn get(&self, job: JobId) -> Option<&Entry> {
        self.jobs.get(job.index())?.as_ref()
    }

    /// The job.
    ///
    /// # Panics
    /// If it is not in the system: whoever asks was told that it is.
    #[track_caller]
    pub fn entry(&self, job: JobId) -> &Entry {
        self.get(job).expect("the job is in the system")
    }

    /// What the job's user asked for.
    ///
    /// # Panics
    /// If the job is not in the system.
    #[track_caller]
    pub fn request(&self, job: JobId) -> &Request {
        &self.entry(job).request
    }

    /// The jobs in the queue, in the order of their admission. O(n log n): for rebuilding a policy.
    pub fn waiting(&self) -> impl Iterator<Item = JobId> + '_ {
        self.in_order(|state| matches!(state, State::Waiting))
    }

    /// The jobs on the machine, in the order of their admission. O(n log n): for rebuilding a policy.
    pub fn running(&self) -> impl Iterator<Item = JobId> + '_ {
        self.in_order(|state| matches!(state, State::Running { .. }))
    }

    /// How many jobs wait.
    pub fn waiting_count(&self) -> usize {
        self.waiting
    }

    /// How many jobs run.
    pub fn running_count(&self) -> usize {
        self.running
    }

    fn in_order(&self, wanted: fn(&State) -> bool) -> impl Iterator<Item = JobId> + use<> {
        let mut found: Vec<(u64, JobId)> = (0..)
            .map(JobId)
            .zip(&self.jobs)
            .filter_map(|(job, entry)| entry.as_ref().map(|entry| (job, entry)))
            .filter(|(_, entry)| wanted(&entry.state))
            .map(|(job, entry)| (entry.admitted, job))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, job)| job)
    }

    pub(crate) fn admit(&mut self, job: JobId, request: Request) -> Result<(), Rule> {
        if self.get(job).is_some() {
            return Err(Rule::HandleInUse);
        }
        if self.jobs.len() <= job.index() {
            self.jobs.resize_with(job.index() + 1, || None);
        }
        self.jobs[job.index()] = Some(Entry {
            request,
            admitted: self.admissions,
            state: State::Waiting,
            promise: None,
            planned: None,
        });
        self.admissions += 1;
        self.waiting += 1;
        Ok(())
    }

    /// Starts a job and returns how long it is planned to hold what it got.
    pub(crate) fn start(&mut self, job: JobId, now: Time, placement: Placement) -> Result<Span, Rule> {
        let entry = self.get(job).ok_or(Rule::UnknownJob)?;
        if entry.state != State::Waiting {
            return Err(Rule::NotWaiting);
        }
        if now < entry.request.submit {
            return Err(Rule::StartBeforeSubmit);
        }
        if entry.promise.is_some_and(|promise| promise.broken.is_none() && promise.best < now) {
            return Err(Rule::PromiseMissed);
        }
        if placement.total() != self.machine.demand(&entry.request) {
            return Err(Rule::WrongAmount);
        }
        let planned = entry.request.planned();
        self.take(&placement)?;
        let expected = Expected::At(now + planned);
        self.entry_mut(job).state = State::Running { start: now, expected, placement, released: false };
        self.waiting -= 1;
        self.running += 1;
        Ok(planned)
    }

    fn take(&mut self, placement: &Placement) -> Result<(), Rule> {
        if placement.slot != SlotId(0) {
            return Err(Rule::NoSuchHost);
        }
        for (done, share) in placement.shares().iter().enumerate() {
            let host = share.host.0 as usize;
            let left = self
                .free
                .get(host)
                .ok_or(Rule::NoSuchHost)
                .and_then(|free| free.minus(&share.amount).ok_or(Rule::OverCommitted));
            match left {
                Ok(left) => self.free[host] = left,
                Err(rule) => {
                    give(&mut self.free, &placement.shares()[..done]);
                    return Err(rule);
                }
            }
        }
        Ok(())
    }

    /// Frees what a job holds ahead of its end, which is certain for this instant.
    pub(crate) fn release(&mut self, job: JobId) -> Result<(), Rule> {
        let Ledger { jobs, free, .. } = self;
        match jobs.get_mut(job.index()).and_then(Option::as_mut).map(|entry| &mut entry.state) {
            Some(State::Running { placement, released, .. }) => {
                if !*released {
                    give(free, placement.shares());
                    *released = true;
                }
                Ok(())
            }
            Some(State::Waiting) => Err(Rule::NotRunning),
            None => Err(Rule::UnknownJob),
        }
    }

    /// Takes a job that ended out of the ledger.
    pub(crate) fn end(&mut self, job: JobId) -> Result<Entry, Rule> {
        self.release(job)?;
        self.running -= 1;
        self.jobs[job.index()].take().ok_or(Rule::UnknownJob)
    }

    /// Marks a running job whose expected end has come and gone.
    pub(crate) fn overdue(&mut self, job: JobId) -> Result<(), Rule> {
        match &mut self.known_mut(job)?.state {
            State::Running { expected, .. } => {
                if let Expected::At(since) = *expected {
                    *expected = Expected::Overdue { since };
                }
            }
            State::Waiting => return Err(Rule::NotRunning),
        }
        self.overdue_seen = true;
        Ok(())
    }

    /// Records a promise; says whether it is news: the first one, or an earlier one.
    pub(crate) fn promise(&mut self, job: JobId, latest: Time) -> Result<bool, Rule> {
        let entry = self.known_mut(job)?;
        if entry.state != State::Waiting {
            return Err(Rule::NotWaiting);
        }
        match &mut entry.promise {
            None => entry.promise = Some(Promise { told: latest, best: latest, broken: None }),
            Some(promise) if latest < promise.best => promise.best = latest,
            Some(promise) if latest == promise.best => return Ok(false),
            Some(_) => return Err(Rule::PromiseMovedLater),
        }
        Ok(true)
    }

    pub(crate) fn break_promise(&mut self, job: JobId, latest: Time, why: Broken) -> Result<(), Rule> {
        let overdue_seen = self.overdue_seen;
        let entry = self.known_mut(job)?;
        let Some(promise) = &mut entry.promise else { return Err(Rule::BrokenWithoutCause) };
        let caused = match why {
            Broken::Overdue => overdue_seen,
        };
        if !caused || latest <= promise.best {
            return Err(Rule::BrokenWithoutCause);
        }
        promise.best = latest;
        promise.broken.get_or_insert(why);
        Ok(())
    }

    pub(crate) fn plan(&mut self, job: JobId, start: Time) -> Result<(), Rule> {
        let entry = self.known_mut(job)?;
        if entry.state != State::Waiting {
            return Err(Rule::NotWaiting);
        }
        entry.planned = Some(start);
        Ok(())
    }

    fn known_mut(&mut self, job: JobId) -> Result<&mut Entry, Rule> {
        self.jobs.get_mut(job.index()).and_then(Option::as_mut).ok_or(Rule::UnknownJob)
    }

    fn entry_mut(&mut self, job: JobId) -> &mut Entry {
        self.jobs[job.index()].as_mut().expect("the caller has just read the entry")
    }

    /// Derives every invariant again from the jobs' states; for debug builds and tests. O(jobs in the system).
    ///
    /// # Panics
    /// If the ledger contradicts itself, or a promise was missed by `now` without being broken.
    pub fn sanity_check(&self, now: Time) {
        let mut free: Vec<Resources> = self.machine.hosts().iter().map(|host| host.capacity).collect();
        let (mut waiting, mut running) = (0, 0);
        for entry in self.jobs.iter().flatten() {
            match &entry.state {
                State::Waiting => {
                    waiting += 1;
                    let missed = entry.promise.is_some_and(|p| p.broken.is_none() && p.best < now);
                    assert!(!missed, "job {} waits past its promise at {now}", entry.request.number);
                }
                State::Running { start, placement, released, .. } => {
                    running += 1;
                    assert!(*start >= entry.request.submit, "job {} started early", entry.request.number);
                    for share in placement.shares().iter().filter(|_| !released) {
                        let host = &mut free[share.host.0 as usize];
                        *host = host.minus(&share.amount).expect("no host is over-committed");
                    }
                }
            }
        }
        assert_eq!(free, self.free, "the free counts follow from the placements at {now}");
        assert_eq!((waiting, running), (self.waiting, self.running), "the counts follow from the states");
    }
}

fn give(free: &mut [Resources], shares: &[crate::Share]) {
    for share in shares {
        let host = &mut free[share.host.0 as usize];
        *host = host.plus(&share.amount);
    }
}
