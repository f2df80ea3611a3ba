//! The processors by number: who has them, who is about to have them, and how a job comes to them.

use miserly_core::{
    Context, Entry, Holds, HostId, JobId, Ledger, PeSet, Placement, Procs, Resources, Span, StartReason,
    State, Time, Violation,
};

use super::Moving;

/// The only host of a machine that these policies run on.
pub(super) const HOST: HostId = HostId(0);

/// What has to be known of processors besides what the ledger says of them.
///
/// Where jobs are written out, a job for which others were suspended has a claim on processors as long as that takes: nobody
/// else may have them. Its claim is in the ledger, as the place where it is planned to be.
#[derive(Debug)]
pub(super) struct PeAllocator {
    moving: Moving,
    /// The jobs with a claim.
    claimants: Vec<JobId>,
    /// The jobs that are being written out, and until when.
    leaving: Vec<(Time, JobId)>,
    /// The jobs that are being read back, and until when.
    coming: Vec<(Time, JobId)>,
}

impl PeAllocator {
    pub(super) fn new(moving: Moving) -> PeAllocator {
        PeAllocator { moving, claimants: vec![], leaving: vec![], coming: vec![] }
    }

    pub(super) fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        let there = there(ledger);
        let claims = |job: &JobId| claim(ledger.entry(*job)).is_some_and(|pes| there.contains_all(pes));
        let leaves = |job: JobId| match ledger.entry(job).state {
            State::Suspended { holds: Holds::All { until }, .. } => Some((until, job)),
            _ => None,
        };
        self.leaving = ledger.suspended().filter_map(leaves).collect();
        let read_until = |job| (ledger.entry(job).progress.at, job);
        self.coming = ledger.running().map(read_until).filter(|(until, _)| *until > now).collect();
        // Nobody claims anything but while somebody leaves, or after that until the next pass.
        self.claimants = ledger.waiting().chain(ledger.suspended()).filter(claims).collect();
    }

    /// A job is not here any more.
    pub(super) fn forget(&mut self, job: JobId) {
        self.claimants.retain(|claimant| *claimant != job);
        self.leaving.retain(|(_, leaving)| *leaving != job);
        self.coming.retain(|(_, coming)| *coming != job);
    }

    pub(super) fn claims(&self, job: JobId) -> bool {
        self.claimants.contains(&job)
    }

    /// Whether a job that does not run waits for nothing that is certain already.
    pub(super) fn is_free_to_go(&self, ledger: &Ledger, job: JobId) -> bool {
        !self.claims(job) && !leaves(ledger.entry(job))
    }

    /// The processors that are free, and that nobody has a claim on.
    pub(super) fn available(&self, ledger: &Ledger) -> PeSet {
        self.unclaimed(ledger, ledger.free_pes(HOST).cloned().unwrap_or_default())
    }

    /// The same, once these jobs have left theirs.
    pub(super) fn available_without(&self, ledger: &Ledger, leaving: &[JobId]) -> PeSet {
        self.unclaimed(ledger, ledger.free_pes_without(HOST, leaving))
    }

    fn unclaimed(&self, ledger: &Ledger, mut available: PeSet) -> PeSet {
        for pes in self.claimants.iter().filter_map(|job| claim(ledger.entry(*job))) {
            available.remove_all(pes);
        }
        available
    }

    /// The processors that nobody can be suspended on: those of jobs that are written out or read back, and those with a claim on them.
    pub(super) fn settled(&self, ledger: &Ledger) -> PeSet {
        let moving = self.leaving.iter().chain(&self.coming).map(|(_, job)| pes(ledger.entry(*job)));
        let claims = self.claimants.iter().map(|job| claim(ledger.entry(*job)));
        let mut settled = PeSet::empty();
        moving.chain(claims).flatten().for_each(|pes| settled.insert_all(pes));
        settled
    }

    /// What is free besides processors, and no claim counts on: what a claimant lacks that those who are written out for it do not still
    /// have. So there is enough for it when they are gone.
    pub(super) fn free_rest(&self, ledger: &Ledger) -> Resources {
        let lacks = |job: &JobId| {
            let by = ledger.entry(*job).admitted;
            let theirs =
                self.leaving.iter().map(|(_, job)| ledger.entry(*job)).filter(|leaves| is_for(leaves, by));
            let coming =
                theirs.fold(Resources::NONE, |sum, entry| sum.plus(&self.moving.transfer.frees(entry)));
            rest(ledger, *job).less(&coming)
        };
        let claimed = self.claimants.iter().fold(Resources::NONE, |sum, job| sum.plus(&lacks(job)));
        ledger.free().without_cpus().less(&claimed)
    }

    /// Whether what a job needs besides processors is free for it.
    pub(super) fn has_rest(&self, ledger: &Ledger, job: JobId) -> bool {
        rest(ledger, job).fits_in(&self.free_rest(ledger))
    }

    /// Frees what was written out by now.
    pub(super) fn vacate(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let now = context.now();
        self.coming.retain(|(until, _)| *until > now);
        let gone = self.leaving.extract_if(.., |(until, _)| *until <= now).map(|(_, job)| job);
        in_order(context.ledger(), gone.collect())
            .into_iter()
            .try_for_each(|job| context.finish_swap_out(job))
    }

    /// Lets those go on who have all that they claim; who that was.
    pub(super) fn serve_claims(&mut self, context: &mut Context<'_>) -> Result<Vec<JobId>, Violation> {
        let mut served = vec![];
        for job in in_order(context.ledger(), std::mem::take(&mut self.claimants)) {
            let ledger = context.ledger();
            let free = ledger.free_pes(HOST);
            let pes = claim(ledger.entry(job)).filter(|pes| free.is_some_and(|free| free.contains_all(pes)));
            match pes.cloned().filter(|_| rest(ledger, job).fits_in(&ledger.free())) {
                Some(pes) => {
                    self.go_on(context, job, pes, StartReason::Reserved)?;
                    served.push(job);
                }
                None => self.claimants.push(job),
            }
        }
        Ok(served)
    }

    /// Where a job could be now, of these processors; `None` if nowhere. The suspended jobs, the most urgent first, are asked for only
    /// if that matters.
    pub(super) fn place<'s>(
        &self,
        ledger: &Ledger,
        job: JobId,
        available: &PeSet,
        suspended: impl FnOnce() -> &'s [JobId],
    ) -> Option<PeSet> {
        let entry = ledger.entry(job);
        if !self.has_rest(ledger, job) {
            return None;
        }
        match own(entry).filter(|_| self.must_return(ledger, entry)) {
            Some(own) => available.contains_all(own).then(|| own.clone()),
            None if available.count() < entry.request.procs() => None,
            None => self.choose(ledger, entry.request.procs(), available, suspended()),
        }
    }

    /// So many of these processors for a job that may be anywhere, with an eye to where these jobs have to come back to.
    pub(super) fn choose(
        &self,
        ledger: &Ledger,
        procs: Procs,
        of: &PeSet,
        returning: &[JobId],
    ) -> Option<PeSet> {
        let returning = returning.iter().filter(|_| !self.moving.migrates);
        let returning = returning.filter_map(|job| pes(ledger.entry(*job)));
        self.moving.place.choose(of, procs, returning)
    }

    /// Whether a job can only be where it was: not where the machine has lost some of that.
    pub(super) fn must_return(&self, ledger: &Ledger, entry: &Entry) -> bool {
        !self.moving.migrates && own(entry).is_some_and(|own| there(ledger).contains_all(own))
    }

    /// Starts a job, or lets it run on, on these processors, which are free.
    pub(super) fn go_on(
        &mut self,
        context: &mut Context<'_>,
        job: JobId,
        pes: PeSet,
        reason: StartReason,
    ) -> Result<(), Violation> {
        let entry = context.ledger().entry(job);
        let State::Suspended { ref placement, .. } = entry.state else {
            let demand = context.ledger().machine().demand(&entry.request);
            return context.start(job, Placement::on_pes(HOST, demand, pes), reason);
        };
        let read = self.moving.transfer.read(entry);
        if read > Span::ZERO {
            self.coming.push((context.now() + read, job));
        }
        let moves = placement.pes() != Some(&pes);
        let on = moves.then(|| Placement::on_pes(HOST, placement.total(), pes));
        context.resume_on(job, on, read)
    }

    /// Suspends these jobs, so that another one can have these processors: at once, or once they were written out.
    pub(super) fn take_over(
        &mut self,
        context: &mut Context<'_>,
        job: JobId,
        victims: &[JobId],
        pes: PeSet,
        reason: StartReason,
    ) -> Result<(), Violation> {
        let (now, by) = (context.now(), context.ledger().entry(job).admitted);
        let mut latest = now;
        for victim in victims {
            let Some(write) = self.moving.transfer.write(context.ledger().entry(*victim)) else {
                context.suspend(*victim, Time::MAX, by)?;
                continue;
            };
            let until = now + write;
            context.swap_out(*victim, until, by)?;
            self.leaving.push((until, *victim));
            latest = latest.max(until);
        }
        // What takes no time is done.
        self.vacate(context)?;
        if latest == now {
            return self.go_on(context, job, pes, reason);
        }
        let demand = context.ledger().machine().demand(context.ledger().request(job));
        context.plan_on(job, latest, Placement::on_pes(HOST, demand, pes))?;
        self.claimants.push(job);
        Ok(())
    }

    /// When somebody has been written out next.
    pub(super) fn next_written(&self) -> Option<Time> {
        self.leaving.iter().map(|(until, _)| *until).min()
    }

    /// When somebody has been read back next, and can be suspended again.
    pub(super) fn next_read(&self) -> Option<Time> {
        self.coming.iter().map(|(until, _)| *until).min()
    }
}

/// The jobs in the order of their admission.
fn in_order(ledger: &Ledger, mut jobs: Vec<JobId>) -> Vec<JobId> {
    jobs.sort_unstable_by_key(|job| ledger.entry(*job).admitted);
    jobs
}

/// The processors that the machine has.
fn there(ledger: &Ledger) -> PeSet {
    PeSet::first(u32::try_from(ledger.machine().capacity().cpus_count()).unwrap_or(u32::MAX))
}

/// The processors that a job had when it was suspended.
pub(super) fn own(entry: &Entry) -> Option<&PeSet> {
    match &entry.state {
        State::Suspended { placement, .. } => placement.pes(),
        _ => None,
    }
}

/// The processors that a job runs on, or leaves.
pub(super) fn pes(entry: &Entry) -> Option<&PeSet> {
    entry.placement().and_then(Placement::pes)
}

/// What a job that does not run has a claim on.
pub(super) fn claim(entry: &Entry) -> Option<&PeSet> {
    entry.planned_on.as_ref().and_then(Placement::pes)
}

/// What a job needs besides processors and does not hold.
pub(super) fn rest(ledger: &Ledger, job: JobId) -> Resources {
    let entry = ledger.entry(job);
    match entry.state {
        State::Suspended { holds: Holds::AllButCpus, .. } => Resources::NONE,
        _ => ledger.machine().demand(&entry.request).without_cpus(),
    }
}

/// Whether a job was suspended for the one of that admission.
fn is_for(entry: &Entry, admitted: u64) -> bool {
    matches!(entry.state, State::Suspended { by, .. } if by == admitted)
}

/// Whether a job is suspended and is still being written out.
fn leaves(entry: &Entry) -> bool {
    matches!(entry.state, State::Suspended { holds: Holds::All { .. }, .. })
}
