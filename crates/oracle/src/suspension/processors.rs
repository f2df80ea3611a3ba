//! The processors, each as a boolean, and their allocation to jobs.

use miserly_core::{Kind, Resources, Span, draw};

use super::NaiveRule;
use super::world::{State, World};

pub(super) fn count(set: &[bool]) -> u64 {
    set.iter().filter(|has| **has).count() as u64
}

pub(super) fn meet(one: &[bool], other: &[bool]) -> bool {
    one.iter().zip(other).any(|(one, other)| *one && *other)
}

pub(super) fn within(part: &[bool], whole: &[bool]) -> bool {
    part.iter().zip(whole).all(|(part, whole)| !*part || *whole)
}

pub(super) fn without(set: &[bool], other: &[bool]) -> Vec<bool> {
    set.iter().zip(other).map(|(has, gone)| *has && !*gone).collect()
}

pub(super) fn union(one: &[bool], other: &[bool]) -> Vec<bool> {
    one.iter().zip(other).map(|(one, other)| *one || *other).collect()
}

/// Returns `wanted` members of a set, from the lowest on.
pub(super) fn lowest(set: &[bool], wanted: u64) -> Option<Vec<bool>> {
    let mut left = wanted;
    let mut taken = vec![false; set.len()];
    for (pe, has) in set.iter().enumerate() {
        if *has && left > 0 {
            taken[pe] = true;
            left -= 1;
        }
    }
    (left == 0).then_some(taken)
}

/// Returns the shortest prefix of the candidates that fits, without unnecessary ones at its end.
/// Returns `None` if none fits.
pub(super) fn enough(candidates: &[usize], fits: impl Fn(&[usize]) -> bool) -> Option<Vec<usize>> {
    let mut taken = vec![];
    for &candidate in candidates {
        if !fits(&taken) {
            taken.push(candidate);
        }
    }
    if !fits(&taken) {
        return None;
    }
    for candidate in taken.clone().into_iter().rev() {
        let fewer: Vec<usize> = taken.iter().copied().filter(|&other| other != candidate).collect();
        if fits(&fewer) {
            taken = fewer;
        }
    }
    Some(taken)
}

impl World<'_> {
    pub(super) fn nobody(&self) -> Vec<bool> {
        vec![false; usize::try_from(self.machine.capacity().cpus_count().get()).expect("small machines")]
    }

    /// Returns the processors that are available without the victims.
    pub(super) fn had(&self, victims: &[usize]) -> Vec<bool> {
        victims.iter().fold(self.available(), |had, &victim| union(&had, &self.standing[victim].pes))
    }

    /// Returns whether a job fits on any processors without the victims.
    pub(super) fn fits_without(&self, job: usize, victims: &[usize]) -> bool {
        count(&self.had(victims)) >= self.procs(job) && self.has_rest(job, victims)
    }

    pub(super) fn procs(&self, job: usize) -> u64 {
        self.jobs[job].request.procs().get()
    }

    /// Returns whether a job blocks its processors for others.
    pub(super) fn holds_pes(&self, job: usize) -> bool {
        let standing = &self.standing[job];
        match standing.state {
            State::Running => !standing.gone,
            State::Suspended => standing.writes_until.is_some(),
            _ => false,
        }
    }

    fn holds_rest(&self, job: usize) -> bool {
        self.holds_pes(job) || self.standing[job].state == State::Suspended && !self.standing[job].out
    }

    pub(super) fn free(&self) -> Vec<bool> {
        let holders = (0..self.jobs.len()).filter(|&job| self.holds_pes(job));
        let held = holders.fold(self.nobody(), |held, job| union(&held, &self.standing[job].pes));
        held.into_iter().map(|held| !held).collect()
    }

    /// Returns the free processors that no claim covers.
    pub(super) fn available(&self) -> Vec<bool> {
        let claims = self.standing.iter().filter_map(|job| job.claim.as_ref());
        claims.fold(self.free(), |free, (_, pes)| without(&free, pes))
    }

    /// Returns the resources that a job needs besides processors.
    fn rest(&self, job: usize) -> Resources {
        self.machine.amount(&self.jobs[job].request).without_cpus()
    }

    /// Returns whether the resources besides processors are free after the victims are swapped out.
    pub(super) fn has_rest(&self, job: usize, victims: &[usize]) -> bool {
        let gives = |other: &usize| self.rules.disk.is_some() && victims.contains(other);
        let sum = |jobs: &mut dyn Iterator<Item = usize>| {
            jobs.fold(Resources::NONE, |sum, other| sum.plus(&self.rest(other)))
        };
        let held = sum(&mut (0..self.jobs.len()).filter(|&other| self.holds_rest(other) && !gives(&other)));
        // The needs of other claims, beyond the holdings of the victims that are swapped out for
        // them.
        let claims =
            (0..self.jobs.len()).filter(|&other| other != job && self.standing[other].claim.is_some());
        let claimed =
            claims.filter(|&other| !self.holds_rest(other)).fold(Resources::NONE, |sum_of, other| {
                let leaves = |leaver: &usize| {
                    let standing = &self.standing[*leaver];
                    standing.writes_until.is_some() && standing.suspended_for == Some(other)
                };
                let coming = sum(&mut (0..self.jobs.len()).filter(leaves));
                sum_of.plus(&self.rest(other).less(&coming))
            });
        let free = self.machine.capacity().without_cpus().minus(&held).expect("nobody has what is not there");
        self.holds_rest(job) || self.rest(job).fits_in(&free.less(&claimed))
    }

    /// Returns the processors on which a job must be resumed, if it is bound to them.
    pub(super) fn own(&self, job: usize) -> Option<Vec<bool>> {
        let standing = &self.standing[job];
        let bound = standing.state == State::Suspended && !self.rules.migrates;
        bound.then(|| standing.pes.clone())
    }

    /// Returns a place for a job now, among these processors.
    pub(super) fn place(&self, job: usize, of: &[bool]) -> Option<Vec<bool>> {
        if !self.has_rest(job, &[]) {
            return None;
        }
        match self.own(job) {
            Some(own) => within(&own, of).then_some(own),
            None => self.choose(job, of, &[]),
        }
    }

    /// Returns some of these processors for a job without a fixed place, with these victims counted
    /// as suspended.
    pub(super) fn choose(&self, job: usize, of: &[bool], victims: &[usize]) -> Option<Vec<bool>> {
        if !self.rules.spares || self.rules.migrates {
            return lowest(of, self.procs(job));
        }
        let mut back = self.those(State::Suspended);
        back.extend(victims);
        back.sort_by_key(|&other| crate::order::arrival(other, self.jobs));
        let back = match self.rules.rule {
            NaiveRule::Slices { .. } => back,
            NaiveRule::Xfactor { .. } | NaiveRule::Remaining => self.most_urgent_first(back),
        };
        let mut order: Vec<usize> = (0..of.len()).filter(|&pe| of[pe]).collect();
        // The position in the order of the most urgent job that must be resumed there.
        let place = |pe: usize| back.iter().position(|&other| self.standing[other].pes[pe]);
        order.sort_by_key(|&pe| std::cmp::Reverse(place(pe).unwrap_or(usize::MAX)));
        let chosen = order.get(..usize::try_from(self.procs(job)).expect("small machines"))?;
        Some((0..of.len()).map(|pe| chosen.contains(&pe)).collect())
    }

    pub(super) fn go_on(&mut self, job: usize, pes: Vec<bool>) {
        let from = self.now + self.reading(job);
        self.goes_on(job, from, pes);
    }

    /// Suspends the victims so that the job gets those processors: at once, or after their
    /// swap-out.
    pub(super) fn take_over(&mut self, job: usize, victims: &[usize], pes: Vec<bool>) {
        let mut latest = self.now;
        for &victim in victims {
            self.stops(victim);
            self.standing[victim].suspended_for = Some(job);
            if self.rules.disk.is_some() {
                let until = self.now + self.writing(victim);
                self.standing[victim].writes_until = Some(until);
                latest = latest.max(until);
            } else {
                let now = self.now;
                self.standing[victim].life.leave(now);
            }
        }
        self.vacate();
        if latest == self.now {
            self.go_on(job, pes);
        } else {
            self.standing[job].claim = Some((latest, pes));
        }
    }

    /// Frees the resources of jobs whose swap-out is complete.
    pub(super) fn vacate(&mut self) {
        let now = self.now;
        for job in &mut self.standing {
            if job.writes_until.is_some_and(|until| until <= now) {
                (job.writes_until, job.out) = (None, true);
                job.life.leave(now);
            }
        }
    }

    /// Resumes or starts each job whose claim is complete.
    pub(super) fn serve_claims(&mut self) {
        let mut claimants = self.those(State::Waiting);
        claimants.extend(self.those(State::Suspended));
        claimants.sort_by_key(|&job| crate::order::arrival(job, self.jobs));
        for job in claimants {
            let Some((_, pes)) = self.standing[job].claim.clone() else { continue };
            if within(&pes, &self.free()) && self.has_rest(job, &[]) {
                self.go_on(job, pes);
            }
        }
    }

    fn writing(&self, job: usize) -> Span {
        let request = &self.jobs[job].request;
        let Some(disk) = self.rules.disk else { return Span::ZERO };
        let drawn = 100_000 + draw(disk.seed, request.number, 0x6d65_6d6f_7279) % 900_001;
        let known = request.demand.get(Kind::Memory);
        let memory = if known == 0 { drawn } else { known };
        Span::from_ticks(i64::try_from(memory * 1_000_000 / disk.rate).expect("small jobs"))
    }

    pub(super) fn reading(&self, job: usize) -> Span {
        let reads = self.standing[job].out && self.rules.disk.is_some_and(|disk| disk.read);
        if reads { self.writing(job) } else { Span::ZERO }
    }
}
