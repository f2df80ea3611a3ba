//! A plain count of jobs under limits: every question goes through all jobs.

use std::collections::BTreeMap;

use miserly_engine::Limits;

use super::{ANN, BOB, EVE, NON};

/// The limits that are drawn: those of each user, and those of the group together.
#[derive(Clone, Copy)]
pub(super) struct Drawn {
    pub(super) each: Limits,
    pub(super) course: Limits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Held,
    Waits,
    HasPlace,
    Runs {
        /// Microseconds.
        since: i64,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub(super) uid: u32,
    pub(super) cpus: u64,
    /// Seconds.
    pub(super) time: u64,
    pub(super) state: State,
}

/// The jobs, and the processor time that was used.
#[derive(Default)]
pub(super) struct Count {
    pub(super) jobs: BTreeMap<i64, Counted>,
    /// Processor-microseconds of ended windows, by user.
    pub(super) ended: BTreeMap<u32, i64>,
}

/// The users that a limit counts.
pub(super) fn members(of: Option<u32>) -> Vec<u32> {
    of.map_or_else(|| vec![ANN, BOB, EVE], |uid| vec![uid])
}

impl Drawn {
    /// Returns the limits that apply to a user: whose jobs count, and the limits.
    pub(super) fn of(self, uid: u32) -> Vec<(Vec<u32>, Limits)> {
        let mut all = vec![(members(Some(uid)), self.each)];
        all.extend((uid != NON).then(|| (members(None), self.course)));
        all
    }
}

impl Count {
    pub(super) fn among(&self, users: &[u32]) -> impl Iterator<Item = &Counted> {
        self.jobs.values().filter(move |job| users.contains(&job.uid))
    }

    pub(super) fn placed(&self, users: &[u32]) -> (u64, u64) {
        let placed = |job: &&Counted| matches!(job.state, State::HasPlace | State::Runs { .. });
        self.among(users).filter(placed).fold((0, 0), |(jobs, cpus), job| (jobs + 1, cpus + job.cpus))
    }

    /// Gives free places to waiting jobs by number. A job without room closes the limits that lack it.
    pub(super) fn give_places(&mut self, limits: &Drawn) {
        let mut closed: Vec<Vec<u32>> = vec![];
        let waiting: Vec<i64> = self
            .jobs
            .iter()
            .filter(|(_, job)| job.state == State::Waits)
            .map(|(number, _)| *number)
            .collect();
        for number in waiting {
            let Counted { uid, cpus, .. } = self.jobs[&number];
            let lacking: Vec<Vec<u32>> = limits
                .of(uid)
                .into_iter()
                .filter(|(users, most)| {
                    let (jobs, taken) = self.placed(users);
                    most.running.is_some_and(|most| jobs >= most)
                        || most.cpus.is_some_and(|most| taken + cpus > most)
                })
                .map(|(users, _)| users)
                .collect();
            let behind = limits.of(uid).iter().any(|(users, _)| closed.contains(users));
            if lacking.is_empty() && !behind {
                self.jobs.get_mut(&number).unwrap().state = State::HasPlace;
            }
            closed.extend(lacking);
        }
    }

    pub(super) fn unfinished(&self, users: &[u32]) -> u64 {
        self.among(users).count() as u64
    }

    pub(super) fn waiting(&self, users: &[u32]) -> u64 {
        self.among(users).filter(|job| !matches!(job.state, State::Runs { .. })).count() as u64
    }

    /// Returns the processor-microseconds that count.
    pub(super) fn time(&self, users: &[u32]) -> i64 {
        let unfinished: u64 = self.among(users).map(|job| job.cpus * job.time * 1_000_000).sum();
        let ended: i64 = users.iter().filter_map(|uid| self.ended.get(uid)).sum();
        ended + i64::try_from(unfinished).unwrap()
    }

    pub(super) fn admits(&self, limits: &Drawn, uid: u32, cpus: u64, time: u64) -> bool {
        limits.of(uid).iter().all(|(users, most)| {
            let added = i64::try_from(cpus * time * 1_000_000).unwrap();
            most.jobs.is_none_or(|most| self.unfinished(users) < most)
                && most.queued.is_none_or(|most| self.waiting(users) < most)
                && most.cpus.is_none_or(|most| cpus <= most)
                && most.cpu_hours.is_none_or(|most| self.time(users) + added <= most.most)
        })
    }

    /// Returns whether a job may have another number of processors. Fewer always fit.
    pub(super) fn admits_change(&self, limits: &Drawn, number: i64, cpus: u64) -> bool {
        let job = &self.jobs[&number];
        let added = i64::try_from(cpus * job.time * 1_000_000).unwrap();
        let before = i64::try_from(job.cpus * job.time * 1_000_000).unwrap();
        let in_ledger = job.state == State::HasPlace;
        cpus <= job.cpus
            || limits.of(job.uid).iter().all(|(users, most)| {
                let others = self.placed(users).1 - if in_ledger { job.cpus } else { 0 };
                let room = if in_ledger { others + cpus } else { cpus };
                most.cpus.is_none_or(|most| room <= most)
                    && most.cpu_hours.is_none_or(|most| self.time(users) - before + added <= most.most)
            })
    }

    pub(super) fn remove(&mut self, number: i64, end: i64) {
        let job = self.jobs.remove(&number).unwrap();
        if let State::Runs { since } = job.state {
            *self.ended.entry(job.uid).or_default() += (end - since) * i64::try_from(job.cpus).unwrap();
        }
    }
}
