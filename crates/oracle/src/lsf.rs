//! NCSA-LSF* (Chiang and Vernon 2001, section 2.1) on hosts with memory, with a separate event
//! loop.

use std::cmp::Reverse;

use miserly_classes::lsf::{Class, Length, Size};
use miserly_core::{EventOrder, Kind, Machine, Resources, Sharing, Time};

use crate::NaiveJob;
use crate::order::arrival;

/// The configuration of LSF.
#[derive(Clone, Copy, Debug)]
pub struct NaiveLsf {
    /// The maximum number of running jobs of a user, if there is a limit.
    pub user_limit: Option<usize>,
    /// The maximum number of jobs of length `mt`.
    pub mt_limit: Option<usize>,
    /// The maximum number of jobs of length `lt`.
    pub lt_limit: Option<usize>,
    /// Whether hosts are reserved for jobs with a long wait.
    pub reserve: bool,
}

/// Returns the start and the host of each job, in the order of the slice, or `None` if it is
/// refused.
///
/// # Panics
/// If a job waits forever.
pub fn lsf_schedule(
    machine: &Machine,
    jobs: &[NaiveJob],
    lsf: NaiveLsf,
    event_order: EventOrder,
) -> Vec<Option<(Time, usize)>> {
    let future = (0..jobs.len()).collect();
    let starts = vec![None; jobs.len()];
    let (waiting, kept, running) = (Vec::new(), Vec::new(), Vec::new());
    World { machine, jobs, lsf, now: Time::ZERO, future, waiting, kept, running, starts }.run(event_order)
}

/// Returns the maximum number of jobs of a size that a host runs at a time (Table 2).
fn most(host: &str, size: Size) -> usize {
    match (host, size) {
        ("eir" | "nerthus" | "jord1" | "saga1" | "huldra", Size::Large) => 3,
        ("eir" | "nerthus" | "jord1" | "saga1" | "huldra", Size::Medium) => 4,
        ("hod1", Size::Large) => 6,
        ("hod1", Size::Medium) => 2,
        ("mimir", Size::Medium | Size::Large) | ("modi2", Size::Small | Size::Large) => 0,
        _ => usize::MAX,
    }
}

struct Running {
    job: usize,
    host: usize,
    expected: Time,
    end: Time,
    /// Whether the job was reported as overdue.
    noticed: bool,
    /// Whether it ends now, as expected. Its resources then count as free.
    gone: bool,
}

/// The state of the run. Jobs are identified by their positions in `jobs`, hosts by theirs in the
/// machine.
struct World<'a> {
    machine: &'a Machine,
    jobs: &'a [NaiveJob],
    lsf: NaiveLsf,
    now: Time,
    future: Vec<usize>,
    waiting: Vec<usize>,
    /// The reserved hosts, each with its waiting job.
    kept: Vec<(usize, usize)>,
    /// The running jobs, in the order of the starts.
    running: Vec<Running>,
    starts: Vec<Option<(Time, usize)>>,
}

/// The event loop.
impl World<'_> {
    fn run(mut self, event_order: EventOrder) -> Vec<Option<(Time, usize)>> {
        while let Some(now) = self.next_instant() {
            self.now = now;
            let ended: Vec<usize> = self.running.iter().filter(|r| r.end == now).map(|r| r.job).collect();
            let mut submitted = self.future.clone();
            submitted.retain(|&job| self.jobs[job].request.submit == now);
            submitted.sort_by_key(|&job| arrival(job, self.jobs));
            match event_order {
                EventOrder::Batched => {
                    let hosts = ended.into_iter().map(|job| self.end(job)).collect();
                    self.notice();
                    for job in submitted {
                        self.submit(job);
                    }
                    self.pass(hosts);
                }
                EventOrder::Sequential => {
                    for running in &mut self.running {
                        running.gone = running.end == now && running.expected == now;
                    }
                    if self.notice() {
                        self.pass(vec![]);
                    }
                    for job in submitted {
                        self.submit(job);
                        self.pass(vec![]);
                    }
                    for job in ended {
                        let host = self.end(job);
                        self.pass(vec![host]);
                    }
                }
            }
        }
        assert!(self.waiting.is_empty(), "jobs {:?} wait for ever", self.waiting);
        self.starts
    }

    fn next_instant(&self) -> Option<Time> {
        let submits = self.future.iter().map(|&job| self.jobs[job].request.submit);
        let ends = self.running.iter().map(|running| running.end);
        let overdue = self.running.iter().filter(|r| !r.noticed && r.expected < r.end).map(|r| r.expected);
        submits.chain(ends).chain(overdue).min()
    }

    fn submit(&mut self, job: usize) {
        self.future.retain(|&other| other != job);
        self.waiting.push(job);
    }

    /// Ends the job and returns its host.
    fn end(&mut self, job: usize) -> usize {
        let at = self.running.iter().position(|running| running.job == job).expect("it runs");
        self.running.remove(at).host
    }

    /// Reports overdue jobs and returns whether there are any.
    fn notice(&mut self) -> bool {
        let mut any = false;
        for running in &mut self.running {
            if !running.noticed && running.expected == self.now && running.end > self.now {
                running.noticed = true;
                any = true;
            }
        }
        any
    }
}

/// Queries of the state.
impl World<'_> {
    fn class(&self, job: usize) -> Option<Class> {
        let request = &self.jobs[job].request;
        Class::for_request(request.procs(), request.demand.get(Kind::Memory), request.estimate)
    }

    /// Returns the class of a job. The job must have one.
    fn its_class(&self, job: usize) -> Class {
        self.class(job).expect("those beyond the classes are gone")
    }

    /// Returns the holdings of the job on the host, or `None` if it could never run there.
    fn held(&self, job: usize, host: usize) -> Option<Resources> {
        let host = &self.machine.hosts()[host];
        let demand = self.machine.amount(&self.jobs[job].request);
        let whole = self.machine.sharing() == Sharing::Whole;
        let possible = most(&host.name, self.class(job)?.size) > 0 && demand.fits_in(&host.capacity);
        possible.then_some(if whole { host.capacity } else { demand })
    }

    fn free(&self, host: usize) -> Resources {
        let here = self.running.iter().filter(|running| running.host == host && !running.gone);
        let held = here.filter_map(|running| self.held(running.job, host));
        let capacity = self.machine.hosts()[host].capacity;
        held.fold(capacity, |free, held| free.minus(&held).expect("nobody has what is not there"))
    }

    fn fits(&self, job: usize, host: usize) -> bool {
        self.held(job, host).is_some_and(|held| held.fits_in(&self.free(host)))
    }

    /// Returns whether the host is below every limit that applies to the job.
    fn below_limits(&self, job: usize, host: usize) -> bool {
        let class = self.its_class(job);
        let count = |same: &dyn Fn(&Running) -> bool| self.running.iter().filter(|r| same(r)).count();
        let name = &self.machine.hosts()[host].name;
        let of_size = count(&|r| r.host == host && self.its_class(r.job).size == class.size);
        let of_length = count(&|r| self.its_class(r.job).length == class.length);
        let user = self.jobs[job].request.user;
        let of_user = count(&|r| self.jobs[r.job].request.user == user);
        let length_limit = match class.length {
            Length::VeryShort | Length::Short => None,
            Length::Medium => self.lsf.mt_limit,
            Length::Long => self.lsf.lt_limit,
        };
        let user_limit = self.lsf.user_limit.filter(|_| user.is_some());
        of_size < most(name, class.size)
            && length_limit.is_none_or(|limit| of_length < limit)
            && user_limit.is_none_or(|limit| of_user < limit)
    }

    fn holder(&self, host: usize) -> Option<usize> {
        self.kept.iter().find(|(kept, _)| *kept == host).map(|(_, job)| *job)
    }

    /// Returns the jobs that wait for the host, in its order.
    fn line(&self, host: usize) -> Vec<usize> {
        let mut line = self.waiting.clone();
        line.retain(|&job| self.kept.iter().all(|(_, holder)| *holder != job));
        line.retain(|&job| self.held(job, host).is_some() && self.below_limits(job, host));
        line.sort_by_key(|&job| {
            let class = self.its_class(job);
            (Reverse(class.size), class.length != Length::VeryShort, arrival(job, self.jobs))
        });
        line
    }
}

/// The policy.
impl World<'_> {
    fn pass(&mut self, mut ended: Vec<usize>) {
        let hosts = 0..self.machine.hosts().len();
        let mut waiting = self.waiting.clone();
        waiting.retain(|&job| hosts.clone().any(|host| self.held(job, host).is_some()));
        self.waiting = waiting;
        for host in hosts.clone() {
            let Some(job) = self.holder(host) else { continue };
            if self.fits(job, host) && self.below_limits(job, host) {
                self.start(job, host);
                if let Some(at) = ended.iter().position(|&other| other == host) {
                    ended.remove(at);
                }
            }
        }
        for host in ended {
            self.reserve(host);
        }
        loop {
            let turns: Vec<Option<usize>> = hosts.clone().map(|host| self.turn(host)).collect();
            let Some(&job) = turns.iter().flatten().next() else { return };
            let its_hosts = hosts.clone().filter(|&host| turns[host] == Some(job));
            let host = its_hosts.min_by_key(|&host| (self.free(host).cpus_count(), host));
            self.start(job, host.expect("there is one"));
        }
    }

    /// Serves the first job with a long wait after an end on the host: starts it or reserves the
    /// host for it.
    fn reserve(&mut self, host: usize) {
        if !self.lsf.reserve || self.holder(host).is_some() {
            return;
        }
        let waited = |job: usize| self.now - self.jobs[job].request.submit;
        let mut line = self.line(host).into_iter();
        let Some(job) = line.find(|&job| waited(job) >= self.its_class(job).reserve_wait()) else { return };
        if self.fits(job, host) {
            self.start(job, host);
        } else {
            self.kept.push((host, job));
        }
    }

    /// Returns the next job for the host: the first that fits, of the first size in rotation.
    fn turn(&self, host: usize) -> Option<usize> {
        if self.holder(host).is_some() {
            return None;
        }
        let line = self.line(host);
        let size = self.its_class(*line.first()?).size;
        line.into_iter().find(|&job| self.its_class(job).size == size && self.fits(job, host))
    }

    fn start(&mut self, job: usize, host: usize) {
        let NaiveJob { request, runtime } = &self.jobs[job];
        let (expected, end) = (self.now + request.planned(), self.now + runtime.0);
        self.waiting.retain(|&other| other != job);
        self.kept.retain(|(_, holder)| *holder != job);
        self.running.push(Running { job, host, expected, end, noticed: false, gone: false });
        self.starts[job] = Some((self.now, host));
    }
}
