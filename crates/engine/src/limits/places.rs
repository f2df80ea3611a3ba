//! Places: the jobs that may be in ledgers at the same time.
//!
//! A limit on jobs, processors or GPUs that run at the same time is a limit on the jobs in ledgers: each of these has a *place*. So
//! no more can run, and no promise depends on the limit. Arrays with a limit and users have places alike.
//!
//! Free places go to the waiting jobs by number. A job that finds no room closes the limit that lacks it to all later jobs, so
//! none of them passes it there. A limit on GPUs is closed to jobs with GPUs only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use miserly_api::model::WaitReason;

use super::settings::Bound;
use super::{Scope, UserLimits};
use crate::Record;
use crate::job::record::ArrayLimit;

/// The most that may be in ledgers of the jobs that a limit counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PlaceLimit {
    scope: Scope,
    jobs: Option<u64>,
    cpus: Option<u64>,
    gpus: Option<u64>,
}

/// The conditions of a job for a place. Jobs with equal conditions get places in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PlaceRequest {
    limits: Vec<PlaceLimit>,
    size: Size,
}

/// The processors and GPUs of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Size {
    pub(crate) cpus: u64,
    pub(crate) gpus: u64,
}

/// The jobs in ledgers that a limit counts, and their processors and GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) jobs: u64,
    pub(crate) cpus: u64,
    pub(crate) gpus: u64,
}

/// The taken places, by the jobs that limits count.
pub(crate) type Sums = BTreeMap<Scope, Taken>;

/// The jobs with places.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// Shared with snapshots.
    sums: Arc<Sums>,
    /// The jobs that count anywhere: where, and their sizes.
    holders: BTreeMap<i64, (Vec<Scope>, Size)>,
}

/// The distribution of free places at one instant.
pub(crate) struct Distribution<'p> {
    sums: &'p Sums,
    /// The places that it has given.
    given: Sums,
    /// The limits that lacked room for a job: those of GPUs, and all others.
    closed: BTreeSet<(Scope, bool)>,
}

impl Record {
    /// Returns its processors and GPUs.
    fn size(&self) -> Size {
        Size { cpus: self.submission.cpus, gpus: self.gpus() }
    }
}

impl UserLimits {
    /// Returns whether a number of jobs, of processors or of GPUs in ledgers is limited.
    pub(crate) fn limits_places(&self) -> bool {
        self.any(|limits| limits.running.or(limits.cpus).or(limits.gpus))
    }

    /// Returns the conditions of a job for a place.
    pub(crate) fn place_request(&self, record: &Record) -> PlaceRequest {
        let mut limits: BTreeMap<Scope, [Option<u64>; 3]> = BTreeMap::new();
        for of in self.bounds_of(record, |limits| limits.running) {
            limits.entry(of.scope).or_default()[0] = Some(of.most);
        }
        for of in self.bounds_of(record, |limits| limits.cpus) {
            limits.entry(of.scope).or_default()[1] = Some(of.most);
        }
        // A job without GPUs waits for no others.
        for of in self.bounds_of(record, |limits| limits.gpus.filter(|_| record.gpus() > 0)) {
            limits.entry(of.scope).or_default()[2] = Some(of.most);
        }
        if let Some(array) = record.array_limit() {
            limits.insert(Scope::Array(array.array), [Some(array.limit.into()), None, None]);
        }
        let limits: Vec<PlaceLimit> = limits
            .into_iter()
            .map(|(scope, [jobs, cpus, gpus])| PlaceLimit { scope, jobs, cpus, gpus })
            .collect();
        // Jobs of any size are alike without a limit.
        let size = if limits.is_empty() { Size::default() } else { record.size() };
        PlaceRequest { limits, size }
    }

    /// Returns the limits that lack room for a deferred job; all of them if it waits for its turn only.
    pub(crate) fn missing_places(&self, record: &Record, sums: &Sums) -> Vec<WaitReason> {
        let taken = |scope: &Scope| sums.get(scope).copied().unwrap_or_default();
        let Size { cpus, gpus } = record.size();
        let (mut all, mut lacking) = (vec![], vec![]);
        let mut add = |reason: WaitReason, lacks: bool| {
            lacking.extend(lacks.then(|| reason.clone()));
            all.push(reason);
        };
        if let Some(ArrayLimit { array, limit }) = record.array_limit() {
            let full = taken(&Scope::Array(array)).jobs >= u64::from(limit);
            add(WaitReason::ArrayLimit { limit }, full);
        }
        for Bound { table, scope, most } in self.bounds_of(record, |limits| limits.running) {
            let limit = format!("{table}.running");
            add(WaitReason::UserLimit { limit, most }, taken(&scope).jobs >= most);
        }
        for Bound { table, scope, most } in self.bounds_of(record, |limits| limits.cpus) {
            let limit = format!("{table}.cpus");
            add(WaitReason::UserLimit { limit, most }, taken(&scope).cpus.saturating_add(cpus) > most);
        }
        for Bound { table, scope, most } in self.bounds_of(record, |limits| limits.gpus.filter(|_| gpus > 0))
        {
            let limit = format!("{table}.gpus");
            add(WaitReason::UserLimit { limit, most }, taken(&scope).gpus.saturating_add(gpus) > most);
        }
        if lacking.is_empty() { all } else { lacking }
    }

    /// Returns the scopes in which a job counts while it is in a ledger.
    fn place_scopes(&self, record: &Record) -> Vec<Scope> {
        let array = record.array_limit().map(|limit| Scope::Array(limit.array));
        let scopes = record.scopes().filter(|_| self.limits_places());
        scopes.chain(array).collect()
    }
}

impl Places {
    /// Gives a place to a job that enters a ledger, or that has other processors there.
    pub(crate) fn take(&mut self, limits: &UserLimits, record: &Record) {
        self.leave(record.number);
        let (scopes, size) = (limits.place_scopes(record), record.size());
        if scopes.is_empty() {
            return;
        }
        let sums = Arc::make_mut(&mut self.sums);
        for scope in &scopes {
            sums.entry(scope.clone()).or_default().add(size);
        }
        self.holders.insert(record.number, (scopes, size));
    }

    /// Takes the place from a job that is in no ledger any more.
    pub(crate) fn leave(&mut self, number: i64) {
        let Some((scopes, size)) = self.holders.remove(&number) else { return };
        let sums = Arc::make_mut(&mut self.sums);
        for scope in scopes {
            let Some(taken) = sums.get_mut(&scope) else { continue };
            *taken =
                Taken { jobs: taken.jobs - 1, cpus: taken.cpus - size.cpus, gpus: taken.gpus - size.gpus };
            if taken.jobs == 0 {
                sums.remove(&scope);
            }
        }
    }

    /// Returns the size of a job with a place, if it counts anywhere.
    pub(crate) fn size_of(&self, number: i64) -> Option<Size> {
        self.holders.get(&number).map(|(_, size)| *size)
    }

    /// Returns whether a job with a place may have another size than before. One that does not grow may.
    pub(crate) fn has_room_for_more(&self, request: &PlaceRequest, before: Size) -> bool {
        let fits = |most: Option<u64>, taken: u64, before: u64, after: u64| {
            after <= before
                || most.is_none_or(|most| taken.saturating_sub(before).saturating_add(after) <= most)
        };
        request.limits.iter().all(|limit| {
            let taken = self.sums.get(&limit.scope).copied().unwrap_or_default();
            fits(limit.cpus, taken.cpus, before.cpus, request.size.cpus)
                && fits(limit.gpus, taken.gpus, before.gpus, request.size.gpus)
        })
    }

    /// Returns the taken places.
    pub(crate) fn sums(&self) -> &Arc<Sums> {
        &self.sums
    }
}

impl PlaceRequest {
    /// Returns whether a job needs no place.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.limits.is_empty()
    }
}

impl Taken {
    fn add(&mut self, Size { cpus, gpus }: Size) {
        *self = Taken { jobs: self.jobs + 1, cpus: self.cpus + cpus, gpus: self.gpus + gpus };
    }
}

impl PlaceLimit {
    /// Returns whether it lacks room for GPUs, and whether for the job or its processors; the scope for each lack.
    fn lacking(&self, taken: Taken, Size { cpus, gpus }: Size) -> impl Iterator<Item = (Scope, bool)> {
        let exceeds = |most: Option<u64>, sum: u64| most.is_some_and(|most| sum > most);
        let lacks_gpus = exceeds(self.gpus, taken.gpus.saturating_add(gpus));
        let lacks_others = exceeds(self.jobs, taken.jobs.saturating_add(1))
            || exceeds(self.cpus, taken.cpus.saturating_add(cpus));
        let lack = |of_gpus: bool, lacks: bool| lacks.then(|| (self.scope.clone(), of_gpus));
        [lack(true, lacks_gpus), lack(false, lacks_others)].into_iter().flatten()
    }

    /// Returns whether a job with this limit is behind one that found no room. One without GPUs passes a job that lacks GPUs.
    fn is_behind(&self, closed: &BTreeSet<(Scope, bool)>) -> bool {
        let is_closed = |of_gpus| closed.contains(&(self.scope.clone(), of_gpus));
        is_closed(false) || self.gpus.is_some() && is_closed(true)
    }
}

impl<'p> Distribution<'p> {
    /// Returns the distribution of the places that are not taken.
    pub(crate) fn new(sums: &'p Sums) -> Distribution<'p> {
        Distribution { sums, given: Sums::new(), closed: BTreeSet::new() }
    }

    /// Gives a place to the next job, if there is one. Otherwise closes the limits that lack room.
    pub(crate) fn admit(&mut self, request: &PlaceRequest) -> bool {
        let lacking =
            |limit: &'_ PlaceLimit| limit.lacking(self.taken(&limit.scope), request.size).collect::<Vec<_>>();
        let lacking: Vec<(Scope, bool)> = request.limits.iter().flat_map(lacking).collect();
        let behind = request.limits.iter().any(|limit| limit.is_behind(&self.closed));
        if behind || !lacking.is_empty() {
            self.closed.extend(lacking);
            return false;
        }
        for limit in &request.limits {
            self.given.entry(limit.scope.clone()).or_default().add(request.size);
        }
        true
    }

    fn taken(&self, scope: &Scope) -> Taken {
        let [before, given] = [self.sums, &self.given].map(|of| of.get(scope).copied().unwrap_or_default());
        Taken {
            jobs: before.jobs + given.jobs,
            cpus: before.cpus + given.cpus,
            gpus: before.gpus + given.gpus,
        }
    }
}
